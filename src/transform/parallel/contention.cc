// A kernel of duration d that overlaps collectives for a part o of its time takes
//
//     d (1 + kernels o),   a collective beside kernels likewise   d (1 + collectives o)
//
// where d is the duration without contention. Both default shares are measured:
//
//     collectives 0.3    with a synchronization in front, collectives of four servers of four
//                        RTX 2080 Ti took 22.8 % less (Zhu et al., Daydream, ATC'20, section 6.4)
//     kernels 0.13       two H100: a backward pass whose 8 GB of gradients were sent meanwhile took
//                        11 ms longer, of which copies into buckets explain 5 (cs336 course, DDP)
//
// Ignored: that contention depends on the kernel and on how many channels a collective has.

#include "transform/parallel/contention.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "timeline/covered_time.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

constexpr int kMaxRounds = 4;
constexpr double kSettled = 0.001;

CoveredTime covered_by(const std::vector<TaskId>& tasks, const Timeline& timeline) {
  CoveredTime covered;
  for (const TaskId id : tasks) covered.add(timeline.start[index(id)], timeline.finish[index(id)]);
  covered.finish();
  return covered;
}

std::vector<TaskId> kernels_of(const Graph& graph) {
  std::vector<TaskId> kernels;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (!graph.removed(id) && graph.task(id).kind == TaskKind::kernel) kernels.push_back(id);
  }
  return kernels;
}

/// Sets each task to its duration in `idle`, lengthened in proportion to the part of it that
/// `others` cover. Returns the total time added.
Nanoseconds lengthen(Graph& graph, const std::vector<TaskId>& tasks,
                     const std::vector<Nanoseconds>& idle, const Timeline& timeline,
                     const CoveredTime& others, double share) {
  Nanoseconds added{0};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::size_t at = index(tasks[i]);
    const Nanoseconds start = timeline.start[at], finish = timeline.finish[at];
    const double covered = ratio(others.within(start, finish), finish - start);
    Nanoseconds& duration = graph.task(tasks[i]).duration;
    duration = scaled(idle[i], 1 + share * covered);
    added += duration - idle[i];
  }
  return added;
}

std::vector<Nanoseconds> durations_of(const Graph& graph, const std::vector<TaskId>& tasks) {
  std::vector<Nanoseconds> durations;
  for (const TaskId id : tasks) durations.push_back(graph.task(id).duration);
  return durations;
}

/// The collectives that transforms have added.
std::vector<TaskId> added_collectives(const Graph& graph) {
  std::vector<TaskId> added;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    const Task& task = graph.task(id);
    if (!graph.removed(id) && task.kind == TaskKind::collective && task.record == Task{}.record)
      added.push_back(id);
  }
  return added;
}

}  // namespace

void release_contention(Graph& graph) {
  for (const auto& [task, factor] : graph.contended().tasks) {
    Nanoseconds& duration = graph.task(task).duration;
    duration = scaled(duration, 1 / factor);
  }
  graph.contended().tasks.clear();
}

void restore_contention(Graph& graph) {
  const Contended& contended = graph.contended();
  if (contended.tasks.empty()) contend(graph, {contended.kernels, contended.collectives});
}

Contention contend(Graph& graph, const ContentionShares& shares) {
  Contention found;
  release_contention(graph);
  Contended& contended = graph.contended();
  contended = {.kernels = shares.kernels, .collectives = shares.collectives};
  if (shares.kernels == 0 && shares.collectives == 0) return found;
  const std::vector<TaskId> added = added_collectives(graph);
  if (added.empty()) return found;
  const std::vector<TaskId> kernels = kernels_of(graph);
  const std::vector<Nanoseconds> idle_kernels = durations_of(graph, kernels);
  const std::vector<Nanoseconds> idle_added = durations_of(graph, added);
  Timeline timeline = simulate(graph, {.memory = false});
  for (found.rounds = 1; found.rounds <= kMaxRounds; ++found.rounds) {
    const CoveredTime by_collectives = covered_by(added, timeline);
    const CoveredTime by_kernels = covered_by(kernels, timeline);
    found.kernels =
        lengthen(graph, kernels, idle_kernels, timeline, by_collectives, shares.kernels);
    found.collectives =
        lengthen(graph, added, idle_added, timeline, by_kernels, shares.collectives);
    const Nanoseconds before = timeline.length;
    timeline = simulate(graph, {.memory = false});
    found.residual = std::abs(ratio(timeline.length - before, before));
    if (found.residual < kSettled) break;
  }
  found.rounds = std::min(found.rounds, kMaxRounds);
  const auto note = [&](const std::vector<TaskId>& tasks, const std::vector<Nanoseconds>& idle) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Nanoseconds duration = graph.task(tasks[i]).duration;
      if (duration != idle[i]) contended.tasks.push_back({tasks[i], ratio(duration, idle[i])});
    }
  };
  note(kernels, idle_kernels);
  note(added, idle_added);
  found.changed = contended.tasks.size();
  return found;
}

namespace {

class ContentionStep final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("kernels", shares_.kernels,
                  "A kernel takes this share longer while a collective runs beside it", 0, 100);
    fields.number("collectives", shares_.collectives,
                  "A collective takes this share longer while kernels run beside it", 0, 100);
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::size_t added = added_collectives(graph).size();
    if (added == 0)
      throw Error(
          "no earlier step adds communication, and recorded durations already include "
          "contention; put this step after data_parallel");
    const Contention found = contend(graph, shares_);
    Effect effect;
    effect.changed = found.changed;
    effect.summary = fmt::format(
        "kernels beside {} take {} longer in all, collectives {}; after {} the length of the run "
        "still changed by {}",
        counted(added, "collective"), to_text(found.kernels), to_text(found.collectives),
        counted(found.rounds, "replay"), to_percent(found.residual, 2));
    effect.figures = {{"kernels_added", found.kernels}, {"collectives_added", found.collectives}};
    effect.assumptions.emplace_back("every kernel suffers alike from a collective beside it");
    return effect;
  }

 private:
  ContentionShares shares_;
};

}  // namespace

TransformEntry contention_entry() {
  return {.make = create<ContentionStep>,
          .assumes =
              "Kernels and the collectives that earlier steps have added slow each "
              "other down for as long as they overlap. By default a collective takes 30 % longer "
              "beside kernels (the Daydream paper, ATC'20, section 6.4, on RTX 2080 Ti) and a "
              "kernel 13 % beside a collective (two H100). Because these times decide what "
              "overlaps, it replays up to four times. Recorded collectives stay as they are.",
          .advice = {.why_not = "it belongs after steps that add communication"}};
}

}  // namespace foretrace
