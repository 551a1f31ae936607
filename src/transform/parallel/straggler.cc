// Makes ranks slower, or removes the time that slow ranks take beyond the others.
//
//     rank 0   |AA~~~~~~TT|      remove      |AA~TT|        ~ waits for the others
//     rank 1   |AA~~~~~~TT|        ->        |AA~TT|
//     rank 2   |AAAAAAAATT|                  |AAATT|
//
// The excess of a rank is found step by step and thread by thread (or stream by stream): its work
// is aligned with that of every other rank, and where all of them do the same in less time, its
// tasks take the median time that they take on the others; work that no other rank has takes no
// time.
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
#include "base/draws.h"
#include "base/numbers/scaling.h"
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
constexpr Nanoseconds kLeastExcess = 100us;

/// Whether a task is work of the rank itself. Collectives are not: the network decides how long
/// they take.
bool is_own_work(const Task& task) {
  return (runs_on_device(task.kind) || runs_on_host(task.kind)) && !is_between_peers(task.kind) &&
         task.kind != TaskKind::sync;
}

/// The work of one thread or stream in one step.
struct Line {
  std::vector<TaskId> tasks;
  std::vector<std::uint64_t> keys;
};

/// Where a line belongs: kind, device and number of its lane among lanes like it (names of threads
/// differ between ranks), and the step.
using LinePlace = std::pair<std::tuple<LaneKind, std::int32_t, std::size_t>, std::string_view>;
using Lines = std::map<LinePlace, Line>;

Lines lines_of(const Graph& graph) {
  Lines lines;
  std::map<std::pair<LaneKind, std::int32_t>, std::size_t> numbers;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    if (lane.kind != LaneKind::host_thread && lane.kind != LaneKind::stream) continue;
    const std::size_t number = numbers[{lane.kind, lane.device}]++;
    for (TaskId id = graph.first(LaneId{i}); id != kNoTask; id = graph.next(id)) {
      const Task& task = graph.task(id);
      if (!is_own_work(task)) continue;
      const std::string_view step = task.step < 0
                                        ? std::string_view{}
                                        : graph.steps()[static_cast<std::size_t>(task.step)].name;
      Line& line = lines[{{lane.kind, lane.device, number}, step}];
      line.tasks.push_back(id);
      line.keys.push_back(std::hash<std::string_view>()(graph.name(id)) * 31 +
                          static_cast<std::uint64_t>(task.kind));
    }
  }
  return lines;
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
      say(effect, "nothing: give remove, factor, pause or jitter");
    if (remove_) remove_excess(graph, context, effect);
    if (factor_ != 1 || jitter_ > 0) slow_down(graph, effect);
    if (pause_ > 0ns) add_pauses(graph, effect);
    return effect;
  }

 private:
  static void say(Effect& effect, const std::string& text) {
    effect.summary += (effect.summary.empty() ? "" : "; ") + text;
  }

  void remove_excess(Graph& graph, const Context& context, Effect& effect) const {
    if (context.other_ranks.empty())
      throw Error("remove: needs the recordings of other ranks; give the folder of all of them");
    Lines own = lines_of(graph);
    std::vector<Lines> others;
    for (const Graph* other : context.other_ranks) others.push_back(lines_of(*other));
    Nanoseconds excess{0};
    for (auto& [place, line] : own) {
      std::vector<Compared> compared;
      for (std::size_t i = 0; i < others.size(); ++i) {
        const auto found = others[i].find(place);
        if (found == others[i].end()) continue;
        compared.push_back({context.other_ranks[i], &found->second});
      }
      excess += shorten(graph, line, compared, effect.changed);
    }
    say(effect, to_text(excess) + " removed that other ranks do not need for the same work");
    effect.figures.push_back({"excess", excess});
    effect.assumptions.emplace_back(
        "a rank that needs longer than all others for the same work could do it as they do");
  }

  struct Compared {
    const Graph* graph = nullptr;
    const Line* line = nullptr;
  };

  /// Gives the tasks of a line the times of the other ranks, if it takes clearly longer than on all
  /// of them. Returns the time removed.
  static Nanoseconds shorten(Graph& graph, const Line& line, const std::vector<Compared>& others,
                             std::size_t& changed) {
    std::vector<std::vector<Nanoseconds>> theirs(line.tasks.size());
    Nanoseconds own{0}, least = Nanoseconds::max();
    for (const TaskId id : line.tasks) own += graph.task(id).duration;
    std::size_t alike = 0;
    for (const Compared& other : others) {
      const std::size_t size = line.keys.size() + other.line->keys.size();
      const auto pairs =
          align(line.keys, other.line->keys, std::min<std::size_t>(20 + size / 5, 4000));
      if (!pairs || 10 * pairs->size() < 8 * line.keys.size()) continue;
      ++alike;
      Nanoseconds all{0};
      for (const TaskId id : other.line->tasks) all += other.graph->task(id).duration;
      least = std::min(least, own - all);
      for (const auto& [a, b] : *pairs)
        theirs[a].push_back(other.graph->task(other.line->tasks[b]).duration);
    }
    if (alike == 0 || least < std::max(kLeastExcess, scaled(own, kClearlyMore))) return 0ns;
    Nanoseconds taken{0};
    for (std::size_t i = 0; i < line.tasks.size(); ++i) {
      Nanoseconds& duration = graph.task(line.tasks[i]).duration;
      const Nanoseconds typical = median(std::move(theirs[i]));
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
    Draws draws(seed_of(graph));
    std::vector<double> factors{factor_};  // First for work outside all steps, then for each step.
    for (std::size_t i = 0; i < graph.steps().size(); ++i)
      factors.push_back(std::max(0.0, factor_ * (1 + jitter_ * draws.normal())));
    std::size_t slowed = 0;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      Task& task = graph.task(TaskId{i});
      if (graph.removed(TaskId{i}) || !is_own_work(task)) continue;
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
    say(effect, text);
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
    say(effect, fmt::format("{} of {}", counted(pauses, "pause"), to_text(pause_)));
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
      .make = made<Straggler>,
      .assumes =
          "Slows down one rank or all: all its own work by a factor, by a share that varies from "
          "step to step, or by pauses of the thread that launches it. Collectives keep their "
          "transfer; the other ranks wait. With remove, the opposite: where a rank needs longer "
          "than every other one for the same work of a step on the same thread or stream, its "
          "tasks take the median of theirs. That it may have been given more to do (longer "
          "sequences, more of a table) is not seen.",
      .worth = {.why_not = "say which rank is slower or faster: straggler:remove=true with the "
                           "traces of all ranks"}};
}

}  // namespace foretrace
