// Makes ranks slower, or removes the time that slow ranks take beyond the others.
//
//     rank 0   |AA~~~~~~TT|      remove      |AA~TT|        ~ waits for the others
//     rank 1   |AA~~~~~~TT|        ->        |AA~TT|
//     rank 2   |AAAAAAAATT|                  |AAATT|
//
// The excess of a rank is found step by step and thread by thread (or stream by stream): its work
// is aligned with that of every other rank, and where all of them do the same in less time, its
// tasks take the median time that they take on the others; work that no other rank has takes no
// time. Where the ranks do not do the same, the time under each name that all of them have is
// compared in place of tasks.
//
// Ignored: that a slow rank may have been given more to do.

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/align.h"
#include "base/numbers/scaling.h"
#include "base/random_generator.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// A rank is slower where its work takes this share more than on any other. Chosen above the 1 % by
/// which equal work differs between ranks of the recordings at hand.
constexpr double kClearlyMore = 0.02;
/// Less than this is noise, whatever its share. Chosen.
constexpr Nanoseconds kMinExcess = 100us;

/// Whether a task is work of the rank itself. Collectives are not: the network decides how long
/// they take.
bool is_local_work(const Task& task) {
  return (runs_on_device(task.kind) || runs_on_host(task.kind)) && !is_between_peers(task.kind) &&
         task.kind != TaskKind::sync;
}

/// The work of one thread or stream in one step.
struct LaneWork {
  std::vector<TaskId> tasks;
  std::vector<std::uint64_t> keys;
};

/// Identifies a lane and a step: kind, device and number of the lane among lanes like it (names of
/// threads differ between ranks), and name of the step.
using LaneKey = std::pair<std::tuple<LaneKind, std::int32_t, std::size_t>, std::string_view>;
using WorkByLane = std::map<LaneKey, LaneWork>;

WorkByLane work_by_lane(const Graph& graph) {
  WorkByLane work_by_key;
  std::map<std::pair<LaneKind, std::int32_t>, std::size_t> numbers;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    if (lane.kind != LaneKind::host_thread && lane.kind != LaneKind::stream) continue;
    const std::size_t number = numbers[{lane.kind, lane.device}]++;
    for (TaskId id = graph.first(LaneId{i}); id != kNoTask; id = graph.next(id)) {
      const Task& task = graph.task(id);
      if (!is_local_work(task)) continue;
      const std::string_view step = task.step < 0
                                        ? std::string_view{}
                                        : graph.steps()[static_cast<std::size_t>(task.step)].name;
      LaneWork& work = work_by_key[{{lane.kind, lane.device, number}, step}];
      work.tasks.push_back(id);
      work.keys.push_back(std::hash<std::string_view>()(graph.name(id)) * 31 +
                          static_cast<std::uint64_t>(task.kind));
    }
  }
  return work_by_key;
}

class Straggler final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.optional_integer("rank", rank_, "The rank that is changed; by default each", 0);
    fields.flag("remove", remove_,
                "Remove the time that a rank takes beyond all others for the same work");
    fields.number("factor", factor_, "Work of the rank takes this many times as long", 0, 1e6);
    fields.time("pause", pause_,
                "The thread that launches its work pauses for this long, as a garbage collector "
                "makes it do",
                0ns);
    fields.integer("every", every_, "Steps from one pause to the next", 1, 1'000'000);
    fields.number("jitter", jitter_,
                  "Standard deviation of the work of a step, as a share of it, drawn for each rank "
                  "and step",
                  0, 10);
    fields.integer("seed", seed_, "Seed of the random numbers that jitter draws", 0);
  }

  Effect apply(Graph& graph, const Context& context) const override {
    Effect effect;
    if (!remove_ && factor_ == 1 && pause_ == 0ns && jitter_ == 0)
      append_summary(effect, "nothing: give remove, factor, pause or jitter");
    if (remove_) remove_excess(graph, context, effect);
    if (factor_ != 1 || jitter_ > 0) slow_down(graph, effect);
    if (pause_ > 0ns) add_pauses(graph, effect);
    return effect;
  }

 private:
  static void append_summary(Effect& effect, const std::string& text) {
    effect.summary += fmt::format("{}{}", effect.summary.empty() ? "" : "; ", text);
  }

  void remove_excess(Graph& graph, const Context& context, Effect& effect) const {
    if (context.other_ranks.empty())
      throw Error("remove: needs the recordings of other ranks; give the folder of all of them");
    WorkByLane local = work_by_lane(graph);
    std::vector<WorkByLane> others;
    for (const Graph* other : context.other_ranks) others.push_back(work_by_lane(*other));
    Nanoseconds excess{0};
    for (auto& [key, work] : local) {
      std::vector<PeerWork> peers;
      for (std::size_t i = 0; i < others.size(); ++i) {
        const auto found = others[i].find(key);
        if (found == others[i].end()) continue;
        peers.push_back({context.other_ranks[i], &found->second});
      }
      excess += shorten(graph, work, peers, effect.changed);
    }
    append_summary(effect,
                   to_text(excess) + " removed that other ranks do not need for the same work");
    effect.figures.push_back({"excess", excess});
    effect.assumptions.emplace_back(
        "a rank that needs longer than all others for the same work could be as fast as they are");
  }

  struct PeerWork {
    const Graph* graph = nullptr;
    const LaneWork* work = nullptr;
  };

  static std::map<std::uint64_t, Nanoseconds> time_by_name(const Graph& graph,
                                                           const LaneWork& work) {
    std::map<std::uint64_t, Nanoseconds> times;
    for (std::size_t i = 0; i < work.tasks.size(); ++i)
      times[work.keys[i]] += graph.task(work.tasks[i]).duration;
    return times;
  }

  /// For a lane that does not do the same as others: the tasks of each name that takes clearly
  /// longer than on all others take the median in all. Returns the time removed.
  static Nanoseconds shorten_names(Graph& graph, const LaneWork& work,
                                   const std::vector<PeerWork>& others, std::size_t& changed) {
    std::vector<std::map<std::uint64_t, Nanoseconds>> peers;
    for (const PeerWork& other : others) peers.push_back(time_by_name(*other.graph, *other.work));
    std::map<std::uint64_t, double> factors;
    Nanoseconds taken{0};
    for (const auto& [key, own] : time_by_name(graph, work)) {
      std::vector<Nanoseconds> times;
      for (const auto& peer : peers) {
        if (const auto found = peer.find(key); found != peer.end()) times.push_back(found->second);
      }
      if (times.empty() || times.size() < peers.size()) continue;
      const Nanoseconds least = own - *std::max_element(times.begin(), times.end());
      if (least < std::max(kMinExcess, scaled(own, kClearlyMore))) continue;
      factors[key] = ratio(median(std::move(times)), own);
    }
    for (std::size_t i = 0; i < work.tasks.size(); ++i) {
      const auto factor = factors.find(work.keys[i]);
      if (factor == factors.end()) continue;
      Nanoseconds& duration = graph.task(work.tasks[i]).duration;
      const Nanoseconds now = scaled(duration, factor->second);
      taken += duration - now;
      duration = now;
      ++changed;
    }
    return taken;
  }

  /// Gives the tasks of a lane the times of the other ranks, if it takes clearly longer than on all
  /// of them. Returns the time removed.
  static Nanoseconds shorten(Graph& graph, const LaneWork& work,
                             const std::vector<PeerWork>& others, std::size_t& changed) {
    std::vector<std::vector<Nanoseconds>> peer_durations(work.tasks.size());
    Nanoseconds own{0}, least = Nanoseconds::max();
    for (const TaskId id : work.tasks) own += graph.task(id).duration;
    std::size_t comparable = 0;
    for (const PeerWork& other : others) {
      const std::size_t size = work.keys.size() + other.work->keys.size();
      const auto pairs =
          align(work.keys, other.work->keys, std::min<std::size_t>(20 + size / 5, 4000));
      if (!pairs || 10 * pairs->size() < 8 * work.keys.size()) continue;
      ++comparable;
      Nanoseconds all{0};
      for (const TaskId id : other.work->tasks) all += other.graph->task(id).duration;
      least = std::min(least, own - all);
      for (const auto& [a, b] : *pairs)
        peer_durations[a].push_back(other.graph->task(other.work->tasks[b]).duration);
    }
    if (comparable == 0) return shorten_names(graph, work, others, changed);
    if (least < std::max(kMinExcess, scaled(own, kClearlyMore))) return 0ns;
    Nanoseconds taken{0};
    for (std::size_t i = 0; i < work.tasks.size(); ++i) {
      Nanoseconds& duration = graph.task(work.tasks[i]).duration;
      const Nanoseconds typical = median(std::move(peer_durations[i]));
      if (typical == duration) continue;
      taken += duration - typical;
      duration = typical;
      ++changed;
    }
    return taken;
  }

  std::uint64_t seed_of(const Graph& graph) const {
    const std::int32_t rank = graph.lane_count() == 0 ? 0 : graph.lane(LaneId{0}).rank;
    return static_cast<std::uint64_t>(seed_) + (static_cast<std::uint64_t>(rank) << 32U);
  }

  void slow_down(Graph& graph, Effect& effect) const {
    RandomGenerator draws(seed_of(graph));
    std::vector<double> factors{factor_};  // First for work outside all steps, then for each step.
    for (std::size_t i = 0; i < graph.steps().size(); ++i)
      factors.push_back(std::max(0.0, factor_ * (1 + jitter_ * draws.normal())));
    std::size_t slowed = 0;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      Task& task = graph.task(TaskId{i});
      if (graph.removed(TaskId{i}) || !is_local_work(task)) continue;
      const Nanoseconds now =
          scaled(task.duration, factors[static_cast<std::size_t>(task.step + 1)]);
      if (now == task.duration) continue;
      task.duration = now;
      ++slowed;
    }
    effect.changed += slowed;
    std::string text = counted(slowed, "task");
    if (factor_ != 1) text += fmt::format(" at {} times their duration", to_text(factor_));
    if (jitter_ > 0) text += fmt::format(", varied by {} from step to step", to_percent(jitter_));
    append_summary(effect, text);
  }

  /// Returns the host thread with the most launches; kNoLane if there is no host work.
  static LaneId launching_lane(const Graph& graph) {
    std::map<LaneId, std::size_t> launches;
    LaneId most = kNoLane;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (graph.removed(TaskId{i}) || !runs_on_host(graph.task(TaskId{i}).kind)) continue;
      const LaneId lane = graph.lane_of(TaskId{i});
      std::size_t& count = launches[lane];
      if (graph.task(TaskId{i}).kind == TaskKind::launch) ++count;
      if (most == kNoLane || count > launches[most]) most = lane;
    }
    return most;
  }

  void add_pauses(Graph& graph, Effect& effect) const {
    const LaneId lane = launching_lane(graph);
    if (lane == kNoLane) throw Error("pause: this trace has no host thread that could pause");
    const NameId name = graph.names().intern("pause");
    std::int32_t last = -1;
    std::size_t pauses = 0;
    for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
      const Task task = graph.task(id);
      if (task.step <= last || task.step % every_ != 0) continue;
      last = task.step;
      graph.insert_before(id, {.duration = pause_,
                               .name = name,
                               .step = task.step,
                               .kind = TaskKind::host,
                               .phase = task.phase});
      ++pauses;
    }
    effect.changed += pauses;
    append_summary(effect, fmt::format("{} of {}", counted(pauses, "pause"), to_text(pause_)));
  }

  std::optional<std::int64_t> rank_;
  bool remove_ = false;
  double factor_ = 1, jitter_ = 0;
  Nanoseconds pause_{0};
  std::int64_t every_ = 1, seed_ = 1;
};

}  // namespace

TransformEntry straggler_entry() {
  return {
      .make = create<Straggler>,
      .assumes =
          "Slows down one rank or all: all its own work by a factor, by a share that varies from "
          "step to step, or by pauses of the thread that launches it. Collectives keep their "
          "transfer; the other ranks wait. With remove, the opposite: where a rank needs longer "
          "than every other one for the same work of a step on the same thread or stream, its "
          "tasks take the median of theirs; where it does not do the same as they, the time under "
          "each name is compared. Whether it was given more to do (longer "
          "sequences, a larger part of a table) is not considered.",
      .advice = {.why_not = "say which rank is slower or faster: straggler:remove=true with the "
                            "traces of all ranks"}};
}

}  // namespace foretrace
