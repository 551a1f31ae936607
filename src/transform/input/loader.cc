// Loads data in worker processes, as PyTorch's DataLoader does. With W workers, each of which may
// be p batches ahead:
//
//     batch k          on worker k mod W, not before batch k - W*p was handed over:
//                      read on "storage" (loader_fetch.cc), then prepared by the worker
//     training thread  waits for batch k, then spends hand_over + bytes / first_touch on it
//
//     train  |iiiiAAiiiiBB|        train          |..xAA.xBB|
//                            ->    train+worker0  |iiii.....|   (already at work when the
//                                  train+worker1  |iiii.....|    recording begins)
//
// Workers are assumed to be evenly staggered when the recording begins: their start-up is over, and
// the first W batches become ready at the loader's own pace, that is, its pace without the
// training. With `cores`, workers and the threads of the training process share that many cores,
// each using at most one. Ignored: time that a worker is off its core for other reasons, and the
// caches and memory bandwidth that cores share (measured prep_rates include them).

#include "transform/input/loader.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "foretrace/error.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class Loader final : public Transform {
 public:
  void describe(Fields& fields) override { settings_.describe(fields); }

  bool happens_once() const override { return true; }

  Effect apply(Graph& graph, const Context&) const override {
    settings_.check();
    Batches batches = find_batches(graph);
    Effect effect;
    const std::optional<Nanoseconds> given =
        settings_.batch_time ? settings_.batch_time : prep_time(settings_);
    if (given) {
      for (auto& [lane, of_lane] : batches) effect.changed += set_work(graph, of_lane, *given);
    }
    if (!given) refuse_recorded_workers(graph, batches);
    LoaderTally tally = count(graph, batches);
    const StageTimes times = settings_.workers == 0
                                 ? load_without_workers(graph, batches, tally)
                                 : load_with_workers(graph, batches, tally, effect);
    effect.figures = loader_figures(settings_, times, tally.work_of_step(settings_));
    describe_loading(settings_, tally, times, effect);
    return effect;
  }

 private:
  /// Loading tasks that directly follow each other on a thread make one batch.
  Batches find_batches(const Graph& graph) const {
    std::map<std::int32_t, Bytes> copied;
    for (const TaskId id : Selector("copy_in").select(graph)) {
      copied[graph.task(id).step] += graph.task(id).bytes;
    }
    std::map<std::pair<LaneId, std::int32_t>, std::int64_t> batches_of_step;
    Batches batches;
    for (Group& work : grouped(graph, settings_.where.select_some(graph), "run")) {
      const LaneId lane = graph.lane_of(work.front());
      if (!runs_on_host(graph.task(work.front()).kind)) {
        throw Error(fmt::format("where: must select work of the host, got \"{}\" on \"{}\"",
                                graph.name(work.front()), graph.lane(lane).name));
      }
      ++batches_of_step[{lane, graph.task(work.front()).step}];
      batches[lane].push_back({.work = std::move(work)});
    }
    for (auto& [lane, of_lane] : batches) {
      for (Batch& batch : of_lane) {
        const std::int32_t step = graph.task(batch.work.front()).step;
        if (step < 0) continue;
        batch.bytes = Bytes{copied[step].count / batches_of_step[{lane, step}]};
      }
    }
    return batches;
  }

  /// Throws Error if the recorded job had workers: the training thread then took batches and did
  /// not load them.
  static void refuse_recorded_workers(const Graph& graph, const Batches& batches) {
    for (const auto& [lane, of_lane] : batches) {
      for (const TaskId task : of_lane.front().work) {
        if (graph.name(task).find("_MultiProcessingDataLoaderIter") == std::string_view::npos) {
          continue;
        }
        throw Error(
            "batch_time: must be given, because the recorded job already had workers and their "
            "work is not in its trace");
      }
    }
  }

  /// Spreads the given time over the tasks of each batch, in proportion.
  static std::size_t set_work(Graph& graph, const std::vector<Batch>& batches, Nanoseconds given) {
    std::size_t changed = 0;
    for (const Batch& batch : batches) {
      const Nanoseconds recorded = total_duration(graph, batch.work);
      Nanoseconds left = given;
      for (const TaskId task : batch.work) {
        Nanoseconds& duration = graph.task(task).duration;
        const double share = recorded > Nanoseconds(0) ? static_cast<double>(duration.count()) /
                                                             static_cast<double>(recorded.count())
                                                       : 0;
        const bool last = task == batch.work.back();
        const Nanoseconds wanted = last ? left : std::min(left, scaled(given, share));
        if (wanted != duration) ++changed;
        duration = wanted;
        left -= wanted;
      }
    }
    return changed;
  }

  LoaderTally count(const Graph& graph, const Batches& batches) const {
    LoaderTally tally{.threads = batches.size()};
    std::set<std::int32_t> ranks;
    std::set<std::int32_t> steps;
    for (const auto& [lane, of_lane] : batches) {
      ranks.insert(graph.lane(lane).rank);
      tally.batches += of_lane.size();
      for (const Batch& batch : of_lane) {
        tally.work += total_duration(graph, batch.work);
        for (const TaskId id : batch.work)
          if (graph.name(id).starts_with("aten::")) tally.ops += graph.task(id).duration;
        tally.largest = std::max(tally.largest, batch.bytes);
        if (graph.task(batch.work.front()).step >= 0) {
          steps.insert(graph.task(batch.work.front()).step);
        }
      }
    }
    // A recording without steps counts as one step.
    tally.steps = std::max<std::size_t>(steps.size(), 1);
    each_host_task(graph, ranks, [&](TaskId id) {
      const Task& task = graph.task(id);
      if (steps.empty() || steps.contains(task.step)) tally.host += task.duration;
    });
    return tally;
  }

  /// Visits the work, other than loading, of the threads of these ranks.
  template <class Visit>
  static void each_host_task(const Graph& graph, const std::set<std::int32_t>& ranks,
                             const Visit& visit) {
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      const Lane& lane = graph.lane(static_cast<LaneId>(i));
      if (lane.kind != LaneKind::host_thread || !ranks.contains(lane.rank)) continue;
      for (TaskId id = graph.first(static_cast<LaneId>(i)); id != kNoTask; id = graph.next(id)) {
        const TaskKind kind = graph.task(id).kind;
        if (kind == TaskKind::host || kind == TaskKind::launch) visit(id);
      }
    }
  }

  static std::vector<TaskId> all_work(const Batches& batches) {
    std::vector<TaskId> work;
    for (const auto& [lane, of_lane] : batches) {
      for (const Batch& batch : of_lane) {
        work.insert(work.end(), batch.work.begin(), batch.work.end());
      }
    }
    return work;
  }

  /// Without workers, the training thread itself reads and prepares the batches.
  StageTimes load_without_workers(Graph& graph, const Batches& batches,
                                  const LoaderTally& tally) const {
    const StageTimes times = stage_times(settings_, times_without_loading(graph, all_work(batches)),
                                         tally.work_of_step(settings_));
    for (const auto& [lane, of_lane] : batches) {
      FetchLanes lanes(settings_, lane);
      for (const Batch& batch : of_lane) {
        const Fetch fetch = lanes.add(graph);
        if (fetch.first == kNoTask) continue;
        const TaskId before = graph.previous(batch.work.front());
        if (before != kNoTask) wait(graph, before, fetch.first, Rule::in_line);
        wait(graph, fetch.last, batch.work.front(), wait_reason_named(graph.names(), "batch read"));
      }
    }
    return times;
  }

  StageTimes load_with_workers(Graph& graph, const Batches& batches, LoaderTally& tally,
                               Effect& effect) const {
    std::vector<std::vector<LaneId>> workers;
    for (const auto& [lane, of_lane] : batches) {
      workers.push_back(hand_to_workers(graph, lane, of_lane, tally));
    }
    effect.changed += tally.batches;
    tally.slowed = slow_host(graph, batches);
    effect.changed += tally.slowed;
    if (settings_.pin_memory) effect.changed += speed_copies(graph);
    const StageTimes times = stage_times(settings_, times_without_loading(graph, all_work(batches)),
                                         tally.work_of_step(settings_));
    const std::optional<double> cores = settings_.cores_of_job();
    // A table of rates already includes contention between cores.
    if (!cores || !settings_.prep_rates.empty()) return times;
    for (const std::vector<LaneId>& of_lane : workers) {
      if (static_cast<double>(settings_.workers + 1) <= *cores) continue;
      share_cores(graph, *cores, of_lane);
      tally.shares_cores = true;
    }
    return times;
  }

  static Nanoseconds mean_work(const Graph& graph, const std::vector<Batch>& batches) {
    Nanoseconds sum{0};
    for (const Batch& batch : batches) sum += total_duration(graph, batch.work);
    return sum / static_cast<std::int64_t>(std::max<std::size_t>(batches.size(), 1));
  }

  std::vector<LaneId> hand_to_workers(Graph& graph, LaneId train, const std::vector<Batch>& batches,
                                      LoaderTally& tally) const {
    const auto at_once = static_cast<std::size_t>(settings_.workers);
    std::vector<LaneId> workers;
    for (std::size_t i = 0; i < std::min(at_once, batches.size()); ++i) {
      workers.push_back(add_lane(graph, train, "+worker" + std::to_string(i)));
    }
    const LaneId pin = settings_.pin_memory ? add_lane(graph, train, "+pin") : kNoLane;
    FetchLanes lanes(settings_, train);
    const auto ahead = static_cast<std::size_t>(settings_.workers * settings_.prefetch_factor);
    const double factor = settings_.work_factor * cost_of_batch(settings_).part;
    const Nanoseconds mean = scaled(mean_work(graph, batches), factor);
    std::vector<TaskId> handed_over;
    for (std::size_t k = 0; k < batches.size(); ++k) {
      const Batch& batch = batches[k];
      const Nanoseconds work = scaled(total_duration(graph, batch.work), factor);
      // For the first batches, only the time at which they are ready matters. It does not vary with
      // their own work, because in a loader that has run for long, batches loaded ahead even that
      // out.
      const Nanoseconds left = k < at_once ? initial_work_left(mean, k, lanes) : work;
      const double share = work > 0ns ? factor * static_cast<double>(left.count()) /
                                            static_cast<double>(work.count())
                                      : 1;
      handed_over.push_back(add_hand_over(graph, batch, pin));
      tally.hand_over += graph.task(handed_over.back()).duration;
      TaskId begins = batch.work.front();
      const Fetch fetch = lanes.add(graph);
      const LaneId worker = workers[k % at_once];
      if (fetch.first != kNoTask) {
        begins = fetch.first;
        if (graph.last(worker) != kNoTask) wait(graph, graph.last(worker), begins, Rule::in_line);
        wait(graph, fetch.last, batch.work.front(), wait_reason_named(graph.names(), "batch read"));
      }
      for (const TaskId id : batch.work) {
        Task& task = graph.task(id);
        task.duration = scaled(task.duration, share);
        task.gap = Nanoseconds(0);
        // A worker is ahead of the training thread: its work does not mark the beginning of a step.
        task.step = -1;
        graph.move_to_end(id, worker);
      }
      if (k >= ahead)
        wait(graph, handed_over[k - ahead], begins,
             wait_reason_named(graph.names(), "free place in the loader"));
    }
    return workers;
  }

  /// Returns how much preparation of the first batch of worker k is left when the recording begins,
  /// if every batch takes `work`. Without the training, the loader would have a batch ready every
  ///
  ///     pace = max(read, (read + work) / W)
  ///
  /// and read one every `read`. The preparation left makes each of the first W batches ready one
  /// `pace` after the previous one. The last of them has all its preparation left, so that later
  /// batches continue at the same pace.
  Nanoseconds initial_work_left(Nanoseconds work, std::size_t k, const FetchLanes& lanes) const {
    const auto workers = static_cast<double>(settings_.workers);
    const Nanoseconds beyond =
        std::max(0ns, scaled(work + lanes.time(), 1 / workers) - lanes.slower());
    const double behind = workers - 1 - static_cast<double>(k);
    return std::clamp(work - scaled(beyond, behind), 0ns, work);
  }

  static void wait(Graph& graph, TaskId before, TaskId after, WaitReason why) {
    graph.add({.before = before, .after = after, .provenance = Provenance::assumed, .why = why});
  }

  static LaneId add_lane(Graph& graph, LaneId train, const std::string& suffix) {
    return graph.add_lane({.name = graph.lane(train).name + suffix,
                           .kind = LaneKind::worker,
                           .device = -1,
                           .rank = graph.lane(train).rank});
  }

  /// Puts the hand-over on the training thread, in place of the batch's work, and returns its task.
  TaskId add_hand_over(Graph& graph, const Batch& batch, LaneId pin) const {
    const Nanoseconds touch = settings_.first_touch.bytes_per_second > 0
                                  ? time_for(batch.bytes, settings_.first_touch)
                                  : Nanoseconds(0);
    const Task& first = graph.task(batch.work.front());
    Task task{.duration = settings_.hand_over + (settings_.pin_memory ? Nanoseconds(0) : touch),
              .gap = first.gap,
              .name = graph.names().intern("take batch"),
              .step = first.step,
              .kind = TaskKind::input,
              .phase = Phase::input};
    const TaskId taken = graph.insert_before(batch.work.front(), task);
    TaskId ready = batch.work.back();
    if (settings_.pin_memory) {
      task.duration = touch;
      task.gap = Nanoseconds(0);
      task.name = graph.names().intern("pin batch");
      task.step = -1;
      const TaskId pinned = graph.append(pin, task);
      wait(graph, ready, pinned, wait_reason_named(graph.names(), "batch ready"));
      ready = pinned;
    }
    wait(graph, ready, taken, wait_reason_named(graph.names(), "batch ready"));
    return taken;
  }

  /// Slows host work on every thread of the ranks that have a loader. Returns how many tasks it
  /// slowed.
  std::size_t slow_host(Graph& graph, const Batches& batches) const {
    if (settings_.host_factor == 1) return 0;
    std::set<std::int32_t> ranks;
    for (const auto& [lane, of_lane] : batches) ranks.insert(graph.lane(lane).rank);
    std::size_t slowed = 0;
    each_host_task(graph, ranks, [&](TaskId id) {
      Task& task = graph.task(id);
      task.duration = scaled(task.duration, settings_.host_factor);
      ++slowed;
    });
    return slowed;
  }

  std::size_t speed_copies(Graph& graph) const {
    if (settings_.pinned_bandwidth.bytes_per_second <= 0) return 0;
    std::size_t changed = 0;
    for (const TaskId id : Selector("copy_in").select(graph)) {
      Task& task = graph.task(id);
      const Nanoseconds pinned = time_for(task.bytes, settings_.pinned_bandwidth);
      if (task.bytes.count == 0 || pinned >= task.duration) continue;
      task.duration = pinned;
      ++changed;
    }
    return changed;
  }

  LoaderSettings settings_;
};

}  // namespace

TransformEntry loader_entry() {
  return {.make = create<Loader>,
          .assumes =
              "The recorded loading work moves to worker processes, which run ahead of the "
              "training thread by workers times prefetch_factor batches; the thread waits for its "
              "batch and pays for receiving it. Defaults of hand_over, first_touch and host_factor "
              "are recalled or fitted, as their help says. If the recorded job already used "
              "workers, give batch_time: their work is not in a trace of the training process. "
              "With storage, dataset_bytes, dataset_samples and samples, batches are read before "
              "they are prepared, from disk where the cache's policy misses (formulas of Mohan et "
              "al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB'21, after the first "
              "epoch); jobs on one server share its storage, network and cores evenly. With cores, "
              "workers and the threads of the training process share them. The stalls among the "
              "figures are closed forms; the step time is replayed. Worker start-up, the first "
              "epoch and storage that slows down with more readers are not modelled.",
          .advice = {.goal = Goal::time,
                     .tries = {"loader:workers=1", "loader:workers=2", "loader:workers=4",
                               "loader:workers=8", "loader:workers=16", "loader:workers=32"},
                     .applies_to = {"loading"}}};
}

}  // namespace foretrace
