// Loading by worker processes, as PyTorch's DataLoader does it. With W workers and p batches ahead
// for each:
//
//     work of batch k  on worker k mod W, not before batch k - W*p was handed over
//     training thread  waits for batch k, then spends the hand-over: hand_over + bytes /
//     first_touch
//
//     train  |iiiiAAiiiiBB|        train          |..xAA.xBB|
//                            ->    train+worker0  |iiii.....|   (already at work when the recording
//                            begins)
//                                  train+worker1  |iiii.....|
//
// Workers are taken to be evenly staggered when the recording begins: their start-up is over, and
// worker j has (j+1)/W of its first batch left to do. Ignored: the time a worker waits for storage
// while others read from it.

#include <algorithm>
#include <map>

#include "foretrace/error.h"
#include "foretrace/select.h"
#include "transform/edit.h"
#include "transform/registered.h"

namespace foretrace {
namespace {

struct Batch {
  Group work;
  Bytes bytes{};  ///< Copied to the device in its step.
};

class Loader final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The loading work on the training thread");
    fields.integer("workers", workers_, "Processes that load; 0: the training thread does", 0,
                   10'000);
    fields.integer("prefetch_factor", prefetch_factor_, "Batches each worker may be ahead", 1,
                   10'000);
    fields.optional_integer("cores", cores_, "At most so many workers run at once; left out: all",
                            1);
    fields.optional_time("batch_time", batch_time_,
                         "Work of each batch; left out: what the training thread spent on it",
                         Nanoseconds(0));
    fields.number("work_factor", work_factor_,
                  "Work in a worker takes this many times as long, as it has one thread only", 0,
                  1e6);
    fields.time("hand_over", hand_over_,
                "What the training thread still spends on each batch: taking it from the queue and "
                "unpacking it "
                "(recalled: about 1ms)",
                Nanoseconds(0));
    fields.bandwidth("first_touch", first_touch_,
                     "How fast a batch is read from shared memory for the first time (fitted to "
                     "public recordings of "
                     "ResNet-50 with 0 and 4 workers: 1.7 to 2.6GB/s more than without)");
    fields.number("host_factor", host_factor_,
                  "Other host work takes this many times as long beside busy workers (fitted to "
                  "the same recordings: "
                  "1.04 to 1.22)",
                  1, 1000);
    fields.flag("pin_memory", pin_memory_, "A thread of its own moves batches into pinned memory");
    fields.bandwidth(
        "pinned_bandwidth", pinned_bandwidth_,
        "With pin_memory: speed of input copies that were slower (recalled: PCIe 3.0 x16)");
  }

  Effect apply(Graph& graph) const override {
    std::map<LaneId, std::vector<Batch>> batches = find_batches(graph);
    Effect effect;
    if (batch_time_) {
      for (auto& [lane, of_lane] : batches) effect.changed += set_work(graph, of_lane);
    }
    if (!batch_time_ && workers_ > 0) refuse_recorded_workers(graph, batches);
    if (workers_ == 0) {
      effect.summary = "the training thread loads its batches itself";
      return effect;
    }
    Tally tally;
    for (auto& [lane, of_lane] : batches) hand_to_workers(graph, lane, of_lane, tally);
    effect.changed += tally.batches;
    const std::size_t slowed = slow_host(graph, batches);
    effect.changed += slowed;
    if (pin_memory_) effect.changed += speed_copies(graph);
    describe_effect(effect, tally, slowed);
    return effect;
  }

 private:
  struct Tally {
    std::size_t batches = 0;
    Nanoseconds work{0};
    Nanoseconds hand_over{0};
    Bytes largest{};
  };

  /// Loading tasks that directly follow each other on a thread make one batch.
  std::map<LaneId, std::vector<Batch>> find_batches(const Graph& graph) const {
    std::map<std::int32_t, Bytes> copied;
    for (const TaskId id : Selector("copy_in").select(graph)) {
      copied[graph.task(id).step] += graph.task(id).bytes;
    }
    std::map<std::pair<LaneId, std::int32_t>, std::int64_t> batches_of_step;
    std::map<LaneId, std::vector<Batch>> batches;
    for (Group& work : grouped(graph, where_.select_some(graph), "run")) {
      const LaneId lane = graph.lane_of(work.front());
      if (!runs_on_host(graph.task(work.front()).kind)) {
        throw Error("where: must select work of the host, got \"" +
                    std::string(graph.name(work.front())) + "\" on \"" + graph.lane(lane).name +
                    "\"");
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

  /// With workers, the training thread was recorded taking batches, not loading them.
  static void refuse_recorded_workers(const Graph& graph,
                                      const std::map<LaneId, std::vector<Batch>>& batches) {
    for (const auto& [lane, of_lane] : batches) {
      for (const TaskId task : of_lane.front().work) {
        if (graph.name(task).find("_MultiProcessingDataLoaderIter") == std::string_view::npos) {
          continue;
        }
        throw Error(
            "batch_time: must be given, as the recorded job had workers already and their work is "
            "not "
            "in its trace");
      }
    }
  }

  /// Spreads the given time over the tasks of each batch, in proportion.
  std::size_t set_work(Graph& graph, const std::vector<Batch>& batches) const {
    std::size_t changed = 0;
    for (const Batch& batch : batches) {
      const Nanoseconds recorded = total_duration(graph, batch.work);
      Nanoseconds left = *batch_time_;
      for (const TaskId task : batch.work) {
        Nanoseconds& duration = graph.task(task).duration;
        const double share = recorded > Nanoseconds(0) ? static_cast<double>(duration.count()) /
                                                             static_cast<double>(recorded.count())
                                                       : 0;
        const bool last = task == batch.work.back();
        const Nanoseconds wanted = last ? left : std::min(left, scaled(*batch_time_, share));
        if (wanted != duration) ++changed;
        duration = wanted;
        left -= wanted;
      }
    }
    return changed;
  }

  void hand_to_workers(Graph& graph, LaneId train, const std::vector<Batch>& batches,
                       Tally& tally) const {
    const auto at_once = static_cast<std::size_t>(std::min(workers_, cores_.value_or(workers_)));
    std::vector<LaneId> workers;
    for (std::size_t i = 0; i < std::min(at_once, batches.size()); ++i) {
      workers.push_back(add_lane(graph, train, "+worker" + std::to_string(i)));
    }
    const LaneId pin = pin_memory_ ? add_lane(graph, train, "+pin") : kNoLane;
    const NameId free = graph.names().intern("free place in the loader");
    const auto ahead = static_cast<std::size_t>(workers_ * prefetch_factor_);
    std::vector<TaskId> handed_over;
    for (std::size_t k = 0; k < batches.size(); ++k) {
      const Batch& batch = batches[k];
      const double left =
          k < at_once ? static_cast<double>(k + 1) / static_cast<double>(at_once) : 1;
      tally.work += scaled(total_duration(graph, batch.work), work_factor_);
      tally.largest = std::max(tally.largest, batch.bytes);
      handed_over.push_back(add_hand_over(graph, batch, pin));
      tally.hand_over += graph.task(handed_over.back()).duration;
      for (const TaskId id : batch.work) {
        Task& task = graph.task(id);
        task.duration = scaled(task.duration, work_factor_ * left);
        task.gap = Nanoseconds(0);
        // A worker is ahead of the training thread: its work does not mark the beginning of a step.
        task.step = -1;
        graph.move_to_end(id, workers[k % at_once]);
      }
      if (k < ahead) continue;
      graph.add({.before = handed_over[k - ahead],
                 .after = batch.work.front(),
                 .provenance = Provenance::assumed,
                 .why = free});
    }
    tally.batches += batches.size();
  }

  static LaneId add_lane(Graph& graph, LaneId train, const std::string& suffix) {
    return graph.add_lane({.name = graph.lane(train).name + suffix,
                           .kind = LaneKind::worker,
                           .device = -1,
                           .rank = graph.lane(train).rank});
  }

  /// Puts the hand-over where the work of the batch stood.
  TaskId add_hand_over(Graph& graph, const Batch& batch, LaneId pin) const {
    const Nanoseconds touch =
        first_touch_.bytes_per_second > 0 ? time_for(batch.bytes, first_touch_) : Nanoseconds(0);
    const Task& first = graph.task(batch.work.front());
    Task task{.duration = hand_over_ + (pin_memory_ ? Nanoseconds(0) : touch),
              .gap = first.gap,
              .name = graph.names().intern("take batch"),
              .step = first.step,
              .kind = TaskKind::input,
              .phase = Phase::input};
    const TaskId taken = graph.insert_before(batch.work.front(), task);
    const NameId why = graph.names().intern("batch ready");
    TaskId ready = batch.work.back();
    if (pin_memory_) {
      task.duration = touch;
      task.gap = Nanoseconds(0);
      task.name = graph.names().intern("pin batch");
      task.step = -1;
      const TaskId pinned = graph.append(pin, task);
      graph.add({.before = ready, .after = pinned, .provenance = Provenance::assumed, .why = why});
      ready = pinned;
    }
    graph.add({.before = ready, .after = taken, .provenance = Provenance::assumed, .why = why});
    return taken;
  }

  /// On every thread of the ranks that have a loader.
  std::size_t slow_host(Graph& graph, const std::map<LaneId, std::vector<Batch>>& batches) const {
    if (host_factor_ == 1) return 0;
    std::size_t slowed = 0;
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      const Lane& lane = graph.lane(static_cast<LaneId>(i));
      if (lane.kind != LaneKind::host_thread) continue;
      const bool loads = std::any_of(batches.begin(), batches.end(), [&](const auto& of_lane) {
        return graph.lane(of_lane.first).rank == lane.rank;
      });
      if (!loads) continue;
      for (TaskId id = graph.first(static_cast<LaneId>(i)); id != kNoTask; id = graph.next(id)) {
        Task& task = graph.task(id);
        if (task.kind != TaskKind::host && task.kind != TaskKind::launch) continue;
        task.duration = scaled(task.duration, host_factor_);
        ++slowed;
      }
    }
    return slowed;
  }

  std::size_t speed_copies(Graph& graph) const {
    if (pinned_bandwidth_.bytes_per_second <= 0) return 0;
    std::size_t changed = 0;
    for (const TaskId id : Selector("copy_in").select(graph)) {
      Task& task = graph.task(id);
      const Nanoseconds pinned = time_for(task.bytes, pinned_bandwidth_);
      if (task.bytes.count == 0 || pinned >= task.duration) continue;
      task.duration = pinned;
      ++changed;
    }
    return changed;
  }

  void describe_effect(Effect& effect, const Tally& tally, std::size_t slowed) const {
    const auto n = static_cast<std::int64_t>(tally.batches);
    effect.summary = std::to_string(n) + (n == 1 ? " batch" : " batches") + " of " +
                     to_text(tally.work / n) + " loaded by " +
                     counted(static_cast<std::size_t>(workers_), "worker") +
                     "; the training thread keeps " + to_text(tally.hand_over / n) + " for each";
    effect.assumptions.push_back("the workers have started and are evenly staggered");
    effect.assumptions.push_back(
        "loading a batch takes a worker " +
        std::string(batch_time_ ? "the time given" : "what it took the training thread") +
        (work_factor_ == 1 ? "" : " times " + to_text(work_factor_)));
    if (slowed > 0) {
      effect.assumptions.push_back("other host work takes " + to_text(host_factor_) +
                                   " times as long beside busy workers (host_factor, fitted)");
    }
    if (tally.largest.count > 0) {
      const Bytes ahead = times(tally.largest, workers_ * prefetch_factor_);
      effect.assumptions.push_back("host memory has room for up to " + to_text(ahead) +
                                   " of loaded batches");
    }
  }

  Selector where_{"input"};
  std::int64_t workers_ = 4;
  std::int64_t prefetch_factor_ = 2;
  std::optional<std::int64_t> cores_;
  std::optional<Nanoseconds> batch_time_;
  double work_factor_ = 1;
  Nanoseconds hand_over_ = 1ms;
  Bandwidth first_touch_{2.5e9};
  double host_factor_ = 1.05;
  bool pin_memory_ = false;
  Bandwidth pinned_bandwidth_{12e9};
};

}  // namespace

std::unique_ptr<Transform> make_loader() { return std::make_unique<Loader>(); }

std::string_view assumes_loader() {
  return "The recorded loading work moves to worker processes, which run ahead of the training "
         "thread by workers times "
         "prefetch_factor batches; the thread waits for its batch and pays for taking it over. "
         "Defaults of hand_over, "
         "first_touch and host_factor are recalled or fitted, as their help says. If the recorded "
         "job used workers already, "
         "give batch_time: their work is not in a trace of the training process. Worker start-up "
         "and a storage that "
         "slows down with more readers are not counted.";
}

}  // namespace foretrace
