#include "transform/memory/recompute_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "foretrace/error.h"
#include "transform/memory/cheapest_drop.h"

namespace foretrace {
namespace {

constexpr std::int64_t kEffort = 2'000'000;  // Limit over all searches; about a fifth of a second.

/// An activation that could be dropped.
struct Droppable {
  Activation activation;
  TaskId written_by = kNoTask;  ///< The last forward writer.
  std::int32_t pass = -1;
  Bytes bytes{};
  Bytes net{};  ///< Saved bytes, less the blocks that must be kept for it.
  std::vector<TaskId> work;
};

class Chooser {
 public:
  Chooser(const MemoryView& view, const std::vector<Activation>& activations,
          const RecomputeSettings& settings)
      : view_(view), activations_(activations), settings_(settings) {}

  RecomputeChoice choose() {
    if (settings_.policy == "budget" && settings_.peak > Bytes{}) return under_peak();
    if (settings_.policy == "every") return by_segments(settings_.layers, settings_.share);
    if (settings_.policy == "sqrt") return by_segments(0, settings_.share);
    if (settings_.policy == "budget") return by_budget(settings_.share);
    const ForwardSegments segments = cut_forward(view_, activations_, 0);
    return finished(first_share(droppable(activations_, segments, nullptr), settings_.share),
                    segments, nullptr);
  }

 private:
  TaskId last_writer(std::uint32_t block) const {
    TaskId last = kNoTask;
    for (const Access& access : view_.uses.of_block(block)) {
      if (access.writes && !view_.is_late(access.task)) last = access.task;
    }
    return last;
  }

  /// The `activations` that can be computed again, in order of the forward pass.
  std::vector<Droppable> droppable(const std::vector<Activation>& activations,
                                   const ForwardSegments& segments, const ForwardSegments* pass) {
    std::vector<RecomputeCost> costs = recompute_costs(view_, activations, pass);
    std::vector<Droppable> found;
    impossible_ = 0;
    all_ = {};
    for (std::size_t i = 0; i < activations.size(); ++i) {
      if (!costs[i].possible) {
        ++impossible_;
        continue;
      }
      const std::uint32_t block = activations[i].allocation;
      Droppable droppable{.activation = activations[i],
                          .written_by = last_writer(block),
                          .bytes = view_.block(block).bytes,
                          .work = std::move(costs[i].work)};
      droppable.net = droppable.bytes - costs[i].kept;
      const std::int32_t segment = segments.segment[index(droppable.written_by)];
      if (segment != kNoSegment) droppable.pass = segments.pass[static_cast<std::size_t>(segment)];
      all_[droppable.pass] += droppable.bytes;
      found.push_back(std::move(droppable));
    }
    std::sort(found.begin(), found.end(), [&](const Droppable& a, const Droppable& b) {
      if (a.written_by != b.written_by) return view_.before(a.written_by, b.written_by);
      return a.activation.allocation < b.activation.allocation;
    });
    return found;
  }

  /// Returns the first activations of each pass, which are kept longest, up to `share` of its
  /// bytes.
  std::vector<Droppable> first_share(std::vector<Droppable> all, double share) {
    std::map<std::int32_t, Bytes> taken;
    std::erase_if(all, [&](const Droppable& droppable) {
      const auto limit = static_cast<double>(all_[droppable.pass].count) * share;
      Bytes& so_far = taken[droppable.pass];
      if (static_cast<double>((so_far + droppable.bytes).count) > limit) return true;
      so_far += droppable.bytes;
      return false;
    });
    return all;
  }

  RecomputeChoice finished(const std::vector<Droppable>& chosen, const ForwardSegments& segments,
                           const ForwardSegments* inside) {
    RecomputeChoice choice;
    std::vector<Activation> dropped;
    std::map<std::int32_t, Bytes> saved;
    for (const Droppable& droppable : chosen) {
      dropped.push_back(droppable.activation);
      choice.saved = std::max(choice.saved, saved[droppable.pass] += droppable.bytes);
    }
    for (const auto& [pass, bytes] : all_) choice.droppable = std::max(choice.droppable, bytes);
    choice.passes = segments.passes;
    choice.impossible = impossible_;
    choice.by_layer = segments.by_layer;
    choice.by_repetition = segments.by_repetition;
    choice.plan = plan_recompute(view_, dropped, inside);
    return choice;
  }

  /// Blocks that a segment makes for itself are dropped; blocks that it passes to others are kept,
  /// and so are all of the last one, which the backward pass needs at once.
  RecomputeChoice by_segments(std::int64_t length, double share) {
    const ForwardSegments segments = cut_forward(view_, activations_, length);
    std::vector<Activation> inner;
    for (const Activation& activation : activations_) {
      if (stays_inside(activation, segments)) inner.push_back(activation);
    }
    RecomputeChoice choice =
        finished(first_share(droppable(inner, segments, &segments), share), segments, &segments);
    choice.length = length;
    return choice;
  }

  bool stays_inside(const Activation& activation, const ForwardSegments& segments) const {
    const TaskId writer = last_writer(activation.allocation);
    if (writer == kNoTask) return false;
    const std::int32_t own = segments.segment[index(writer)];
    if (own == kNoSegment) return false;
    const auto i = static_cast<std::size_t>(own);
    const bool last = i + 1 == segments.pass.size() || segments.pass[i + 1] != segments.pass[i];
    if (last) return false;
    for (const Access& access : view_.uses.of_block(activation.allocation)) {
      if (access.task == activation.first_backward) break;
      if (!view_.is_late(access.task) && segments.segment[index(access.task)] != own) return false;
    }
    return true;
  }

  RecomputeChoice by_budget(double share) {
    const ForwardSegments segments = cut_forward(view_, activations_, 0);
    const std::vector<Droppable> all = droppable(activations_, segments, nullptr);
    std::map<std::int32_t, std::vector<const Droppable*>> passes;
    for (const Droppable& droppable : all) {
      if (droppable.net > Bytes{}) passes[droppable.pass].push_back(&droppable);
    }
    std::vector<Droppable> chosen;
    // One pass that reaches the goal is enough: a recording may cut its last pass off.
    bool least = true, reached = false;
    for (const auto& [pass, of_pass] : passes) {
      DropProblem problem = problem_of(of_pass);
      Bytes most{};
      for (const DropItem& item : problem.items) most += item.bytes;
      problem.wanted = settings_.save > Bytes{} && share == settings_.share
                           ? settings_.save
                           : Bytes{static_cast<std::int64_t>(
                                 std::floor(static_cast<double>(most.count) * share))};
      const auto effort = kEffort / static_cast<std::int64_t>(passes.size());
      const DropChoice best = settings_.exact && share == settings_.share
                                  ? drop_cheapest(problem, effort)
                                  : drop_greedily(problem);
      least = least && best.least;
      reached = reached || best.bytes >= problem.wanted;
      for (const std::uint32_t item : best.items) chosen.push_back(*of_pass[item]);
    }
    RecomputeChoice choice = finished(chosen, segments, nullptr);
    choice.least = least;
    choice.reached = reached;
    return choice;
  }

  DropProblem problem_of(const std::vector<const Droppable*>& items) const {
    DropProblem problem;
    std::map<TaskId, std::uint32_t> known;
    for (const Droppable* droppable : items) {
      DropItem item{.bytes = droppable->net, .work = {}};
      for (const TaskId task : droppable->work) {
        const auto number = static_cast<std::uint32_t>(problem.times.size());
        const auto [at, added] = known.try_emplace(task, number);
        if (added) problem.times.push_back(view_.graph.task(task).duration);
        item.work.push_back(at->second);
      }
      problem.items.push_back(std::move(item));
    }
    return problem;
  }

  /// Tries many plans, by segments of different lengths and greedily by different shares. Returns
  /// the cheapest plan that stays under the peak or, if none does, the plan with the lowest peak.
  RecomputeChoice under_peak() {
    std::optional<RecomputeChoice> best;
    bool best_fits = false;
    std::pair<Nanoseconds, Bytes> best_cost;
    const auto consider = [&](RecomputeChoice choice) {
      const Bytes peak = peak_of(view_, choice.plan);
      const bool fits = peak <= settings_.peak;
      const std::pair cost(fits ? time_of(choice.plan) : 0ns, peak);
      if (best && (best_fits != fits ? best_fits : best_cost <= cost)) return;
      best = std::move(choice);
      best_fits = fits;
      best_cost = cost;
    };
    for (int eighths = 0; eighths <= 8; ++eighths) consider(by_budget(eighths / 8.0));
    const ForwardSegments segments = cut_forward(view_, activations_, 1);
    const std::int32_t units = *std::max_element(segments.unit.begin(), segments.unit.end()) + 1;
    for (std::int32_t length = 1; length < units; length += std::max(length / 2, 1)) {
      consider(by_segments(length, 1));
    }
    best->reached = best_fits;
    best->least = false;
    return std::move(*best);
  }

  Nanoseconds time_of(const RecomputePlan& plan) const {
    Nanoseconds time{0};
    for (const RecomputeUnit& unit : plan.units) time += total_duration(view_.graph, unit.work);
    return time;
  }

  const MemoryView& view_;
  const std::vector<Activation>& activations_;
  const RecomputeSettings& settings_;
  std::size_t impossible_ = 0;
  std::map<std::int32_t, Bytes> all_;  ///< Droppable bytes of each pass.
};

/// The memory in use on each device, as changes over time.
class Levels {
 public:
  explicit Levels(const MemoryView& view) : view_(view) {}

  void add_lifetime(const Allocation& block, std::optional<Nanoseconds> made,
                    std::optional<Nanoseconds> freed) {
    changes_.push_back({block.device, made.value_or(Nanoseconds::min()), block.bytes.count});
    if (freed) changes_.push_back({block.device, *freed, -block.bytes.count});
  }
  std::optional<Nanoseconds> time_at(TaskId task, Nanoseconds after) const {
    if (task == kNoTask) return std::nullopt;
    const Nanoseconds start = view_.start(task);
    return start + std::clamp(after, 0ns, view_.timeline.finish[index(task)] - start);
  }
  Bytes peak() {
    std::sort(changes_.begin(), changes_.end());
    std::int64_t level = 0, peak = 0;
    std::int32_t device = -1;
    for (const Change& change : changes_) {
      if (change.device != device) level = extra_at_first(device = change.device);
      peak = std::max(peak, level += change.bytes);
    }
    return Bytes{peak};
  }

 private:
  struct Change {
    std::int32_t device;
    Nanoseconds time;
    std::int64_t bytes;  ///< Frees come before allocations at the same time.
    friend auto operator<=>(const Change&, const Change&) = default;
  };

  /// The part of the initial level that no known block explains.
  std::int64_t extra_at_first(std::int32_t device) const {
    std::int64_t known = 0;
    for (const Allocation& block : view_.graph.allocations()) {
      if (block.device == device && block.made_by == kNoTask) known += block.bytes.count;
    }
    return initial_memory(view_.graph, device).count - known;
  }

  const MemoryView& view_;
  std::vector<Change> changes_;
};

/// Returns the most memory that short-lived blocks of a unit take at once.
Bytes most_temporary(const MemoryView& view, const RecomputePlan& plan, const RecomputeUnit& unit) {
  std::map<std::uint32_t, bool> open;
  Bytes level{}, most{};
  for (const TaskId task : unit.work) {
    std::vector<std::uint32_t> done;
    for (const Access& access : view.uses.of_task(task)) {
      const auto life = plan.temporaries.find(access.allocation);
      if (life == plan.temporaries.end()) continue;
      if (open.try_emplace(access.allocation, true).second)
        level += view.block(access.allocation).bytes;
      if (life->second.last == task) done.push_back(access.allocation);
    }
    most = std::max(most, level);
    std::sort(done.begin(), done.end());
    done.erase(std::unique(done.begin(), done.end()), done.end());
    for (const std::uint32_t block : done) level -= view.block(block).bytes;
  }
  return most;
}

}  // namespace

RecomputeChoice choose_recompute(const MemoryView& view, const std::vector<Activation>& activations,
                                 const RecomputeSettings& settings) {
  return Chooser(view, activations, settings).choose();
}

Bytes peak_of(const MemoryView& view, const RecomputePlan& plan) {
  Levels levels(view);
  std::map<std::uint32_t, Nanoseconds> restored_at, kept_until, dropped_at;
  for (const Activation& dropped : plan.dropped) {
    const TaskId allocating = allocating_task(view.graph, view.launches,
                                              view.block(dropped.allocation), dropped.last_forward);
    dropped_at[dropped.allocation] = view.timeline.finish[index(allocating)];
  }
  for (const RecomputeUnit& unit : plan.units) {
    if (unit.restored.empty()) continue;
    const Allocation& first = view.block(unit.restored.front());
    const Nanoseconds now =
        view.start(allocating_task(view.graph, view.launches, first, unit.before));
    for (const std::uint32_t block : unit.restored) restored_at[block] = now;
    for (const TaskId task : unit.work) {
      for (const Access& access : view.uses.of_task(task)) {
        if (plan.kept_until.contains(access.allocation)) kept_until[access.allocation] = now;
      }
    }
    Allocation temporary = first;
    temporary.bytes = most_temporary(view, plan, unit);
    levels.add_lifetime(temporary, now, now + 1ns);
  }
  for (std::uint32_t i = 0; i < view.graph.allocations().size(); ++i) {
    const Allocation& block = view.block(i);
    if (block.bytes <= Bytes{}) continue;
    const auto made = levels.time_at(block.made_by, block.made_after);
    auto freed = levels.time_at(block.freed_by, block.freed_after);
    if (const auto at = restored_at.find(i); at != restored_at.end()) {
      levels.add_lifetime(block, made, dropped_at.at(i));
      if (const auto last = plan.freed_with_segment.find(i);
          last != plan.freed_with_segment.end()) {
        const TaskId allocating = allocating_task(view.graph, view.launches, block, last->second);
        freed = view.timeline.finish[index(allocating)];
      }
      levels.add_lifetime(block, at->second, freed);
      continue;
    }
    if (const auto at = kept_until.find(i); at != kept_until.end() && freed)
      freed = std::max(*freed, at->second);
    levels.add_lifetime(block, made, freed);
  }
  return levels.peak();
}

}  // namespace foretrace
