// Checks whether a schedule can run, without times: first which rank runs which action, then each
// rank's order from the start as far as its waits allow.

#include <algorithm>
#include <array>
#include <fmt/core.h>

#include "schedule/schedule.h"

namespace foretrace {
namespace {

/// The position of an action.
struct RankSlot {
  std::int32_t rank = -1, slot = -1;
};

/// The results of a micro-batch in a stage: its activations, and the gradients of inputs and
/// weights for each half of the micro-batch.
enum Result : std::uint8_t { activations, input_a, input_b, weight_a, weight_b };
constexpr std::size_t kResults = 5;

std::vector<Result> results_of(const Action& action) {
  std::vector<Result> results;
  const bool first = action.half != 2, second = action.half != 1;
  const bool input =
      action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
  const bool weight =
      action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient;
  if (action.kind == ActionKind::forward) results.push_back(activations);
  if (input && first) results.push_back(input_a);
  if (input && second) results.push_back(input_b);
  if (weight && first) results.push_back(weight_a);
  if (weight && second) results.push_back(weight_b);
  return results;
}

/// The ranks that have a result. A result that is sent late is first on its own rank only.
enum class Visibility : std::uint8_t { none, own_rank, all_ranks };

class Inspection {
 public:
  explicit Inspection(const Schedule& schedule)
      : schedule_(schedule),
        producers_(kResults * static_cast<std::size_t>(schedule.stages) *
                   static_cast<std::size_t>(schedule.micro_batches)),
        visibility_(producers_.size(), Visibility::none) {}

  std::optional<ScheduleFault> run() {
    if (!find_producers() || !find_missing() || !check_versions() || !run_orders() ||
        !run_reductions() || !check_limits())
      return fault_;
    return std::nullopt;
  }

 private:
  const std::vector<Action>& order(std::int32_t rank) const {
    return schedule_.orders[static_cast<std::size_t>(rank)];
  }
  std::size_t result_index(Result result, std::int32_t stage, std::int32_t micro_batch) const {
    const auto stages = static_cast<std::size_t>(schedule_.stages);
    const auto micro_batches = static_cast<std::size_t>(schedule_.micro_batches);
    return (result * stages + static_cast<std::size_t>(stage)) * micro_batches +
           static_cast<std::size_t>(micro_batch);
  }

  bool fail(RankSlot position, const std::string& text) {
    fault_ = {position.rank, position.slot,
              fmt::format("rank {}, slot {}: {}", position.rank, position.slot, text)};
    return false;
  }
  static std::string position_text(RankSlot position) {
    return fmt::format("rank {} runs at slot {}", position.rank, position.slot);
  }

  bool find_producers() {
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(order(rank).size()); ++slot) {
        const Action& action = order(rank)[static_cast<std::size_t>(slot)];
        const RankSlot position{rank, slot};
        if (action.stage < 0 || action.stage >= schedule_.stages || action.micro_batch < 0 ||
            action.micro_batch >= schedule_.micro_batches)
          return fail(position,
                      fmt::format("{} is not among the {} stages and {} micro-batches",
                                  to_string(action), schedule_.stages, schedule_.micro_batches));
        for (const Result result : results_of(action)) {
          RankSlot& producer = producers_[result_index(result, action.stage, action.micro_batch)];
          if (producer.rank >= 0)
            return fail(position, fmt::format("{} repeats work that {}", to_string(action),
                                              position_text(producer)));
          producer = position;
        }
      }
    }
    return true;
  }

  /// Checks that each result has a producer, on the rank of its stage.
  bool find_missing() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) {
      for (std::int32_t i = 0; i < schedule_.micro_batches; ++i) {
        const RankSlot home = producers_[result_index(activations, stage, i)];
        for (std::size_t result = 0; result < kResults; ++result) {
          const RankSlot producer = producers_[result_index(Result(result), stage, i)];
          if (producer.rank < 0) return fail_missing(home, Result(result), stage, i);
          if (producer.rank != home.rank)
            return fail(producer, fmt::format("{} must be run by the rank of the forward pass, {}",
                                              name_of(producer), home.rank));
        }
      }
    }
    return true;
  }

  bool fail_missing(RankSlot home, Result result, std::int32_t stage, std::int32_t micro_batch) {
    const auto name = [&](ActionKind kind) {
      return to_string(Action{.kind = kind, .stage = stage, .micro_batch = micro_batch});
    };
    const std::string forward = name(ActionKind::forward);
    if (result == activations) return fail({0, 0}, "no rank runs " + forward);
    const bool input = result == input_a || result == input_b;
    return fail(home,
                fmt::format("no rank runs {} or {}, which {} needs", name(ActionKind::backward),
                            name(input ? ActionKind::input_gradient : ActionKind::weight_gradient),
                            forward));
  }

  std::string name_of(RankSlot position) const {
    return to_string(order(position.rank)[static_cast<std::size_t>(position.slot)]);
  }

  /// Checks that both passes use the same version of the weights, made before the forward pass.
  bool check_versions() {
    std::vector<std::int32_t> newest(static_cast<std::size_t>(schedule_.stages));
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      std::fill(newest.begin(), newest.end(), 0);
      for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(order(rank).size()); ++slot) {
        const Action& action = order(rank)[static_cast<std::size_t>(slot)];
        const auto stage = static_cast<std::size_t>(action.stage);
        if (action.kind == ActionKind::update) newest[stage] = action.version;
        if (!is_pass(action)) continue;
        if (action.version > newest[stage])
          return fail(
              {rank, slot},
              fmt::format("{} waits for version {} of the weights, which no update before it makes",
                          to_string(action), action.version));
        const RankSlot forward =
            producers_[result_index(activations, action.stage, action.micro_batch)];
        const std::int32_t version =
            order(forward.rank)[static_cast<std::size_t>(forward.slot)].version;
        if (action.version != version)
          return fail(
              {rank, slot},
              fmt::format("{} must use version {} of the weights, as its forward pass does, not {}",
                          to_string(action), version, action.version));
      }
    }
    return true;
  }

  /// Returns a result that an action waits for and that is not known yet; nullopt if the action can
  /// run.
  std::optional<std::size_t> missing(const Action& action, std::int32_t rank) const {
    if (!is_pass(action)) return std::nullopt;
    const std::int32_t stage = action.stage, i = action.micro_batch;
    std::array<std::size_t, 4> needs{};
    std::size_t count = 0;
    const auto need = [&](Result result, std::int32_t of) {
      needs[count++] = result_index(result, of, i);
    };
    if (action.kind == ActionKind::forward) {
      if (stage > 0) need(activations, stage - 1);
    } else if (action.kind == ActionKind::weight_gradient) {
      if (action.half != 2) need(input_a, stage);
      if (action.half != 1) need(input_b, stage);
    } else {
      need(activations, stage);
      if (stage + 1 < schedule_.stages) {
        if (action.half != 2) need(input_a, stage + 1);
        if (action.half != 1) need(input_b, stage + 1);
      }
    }
    for (std::size_t at = 0; at < count; ++at) {
      const Visibility visibility = visibility_[needs[at]];
      const bool is_own = producers_[needs[at]].rank == rank;
      if (visibility != Visibility::all_ranks && !(is_own && visibility == Visibility::own_rank))
        return needs[at];
    }
    return std::nullopt;
  }

  void set_visibility(const Action& action, Visibility visibility) {
    for (const Result result : results_of(action))
      visibility_[result_index(result, action.stage, action.micro_batch)] = visibility;
  }

  /// Runs one rank as far as possible; returns whether it made progress.
  bool advance(std::int32_t rank) {
    std::int32_t& next = next_[static_cast<std::size_t>(rank)];
    const std::int32_t before = next;
    const std::vector<Action>& actions = order(rank);
    while (next < static_cast<std::int32_t>(actions.size())) {
      const auto at = static_cast<std::size_t>(next);
      if (missing(actions[at], rank)) break;
      // A pair begins when both actions have what they wait for.
      if (actions[at].overlaps_next && at + 1 < actions.size() && missing(actions[at + 1], rank))
        break;
      set_visibility(actions[at],
                     actions[at].sends_late ? Visibility::own_rank : Visibility::all_ranks);
      if (at > 0 && actions[at - 1].sends_late)
        set_visibility(actions[at - 1], Visibility::all_ranks);
      ++next;
    }
    return next > before;
  }

  bool run_orders() {
    next_.assign(static_cast<std::size_t>(schedule_.ranks), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) moved |= advance(rank);
    }
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      if (has_ended(rank)) continue;
      // Follows the waits from rank to rank until a rank repeats: that rank is part of a cycle.
      std::vector<bool> seen(schedule_.orders.size(), false);
      while (!seen[static_cast<std::size_t>(rank)]) {
        seen[static_cast<std::size_t>(rank)] = true;
        rank = producers_[blocked_at(rank).result].rank;
      }
      const BlockedAction blocked = blocked_at(rank);
      const RankSlot producer = producers_[blocked.result];
      return fail(blocked.position, fmt::format("{} waits for {}, which {}; this is a deadlock",
                                                name_of(blocked.position), name_of(producer),
                                                position_text(producer)));
    }
    return true;
  }

  bool has_ended(std::int32_t rank) const {
    const auto next = static_cast<std::size_t>(next_[static_cast<std::size_t>(rank)]);
    return next == order(rank).size();
  }

  /// The action that a rank cannot run, and the result it waits for.
  struct BlockedAction {
    RankSlot position;
    std::size_t result = 0;
  };
  BlockedAction blocked_at(std::int32_t rank) const {
    RankSlot position{rank, next_[static_cast<std::size_t>(rank)]};
    const auto at = [&] { return order(rank)[static_cast<std::size_t>(position.slot)]; };
    if (!missing(at(), rank)) ++position.slot;  // The second action of a pair.
    return {position, *missing(at(), rank)};
  }

  /// All ranks with a copy of a stage reduce its gradients together; each rank has its own order.
  bool run_reductions() {
    std::vector<std::vector<RankSlot>> queues(schedule_.orders.size());
    std::vector<std::size_t> members(
        static_cast<std::size_t>(schedule_.stages));  // Ranks by stage.
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      std::vector<bool> seen(members.size(), false);
      for (std::size_t slot = 0; slot < order(rank).size(); ++slot) {
        const Action& action = order(rank)[slot];
        if (action.kind != ActionKind::reduce) continue;
        const auto stage = static_cast<std::size_t>(action.stage);
        queues[static_cast<std::size_t>(rank)].push_back({rank, static_cast<std::int32_t>(slot)});
        if (!seen[stage]) ++members[stage];
        seen[stage] = true;
      }
    }
    return run_queues(queues, members);
  }

  bool run_queues(const std::vector<std::vector<RankSlot>>& queues,
                  const std::vector<std::size_t>& members) {
    std::vector<std::size_t> next(queues.size(), 0);
    std::vector<std::vector<std::size_t>> ready(
        members.size());                // Ranks whose next reduction it is, by stage.
    std::vector<std::size_t> complete;  // Stages for which all ranks are ready.
    const auto enter = [&](std::size_t rank) {
      if (next[rank] == queues[rank].size()) return;
      const RankSlot position = queues[rank][next[rank]];
      const auto stage = static_cast<std::size_t>(
          order(position.rank)[static_cast<std::size_t>(position.slot)].stage);
      ready[stage].push_back(rank);
      if (ready[stage].size() == members[stage]) complete.push_back(stage);
    };
    for (std::size_t rank = 0; rank < queues.size(); ++rank) enter(rank);
    while (!complete.empty()) {
      const std::vector<std::size_t> done = std::move(ready[complete.back()]);
      ready[complete.back()].clear();
      complete.pop_back();
      for (const std::size_t rank : done) ++next[rank], enter(rank);
    }
    for (std::size_t rank = 0; rank < queues.size(); ++rank) {
      if (next[rank] == queues[rank].size()) continue;
      const RankSlot position = queues[rank][next[rank]];
      return fail(
          position,
          fmt::format("{} waits for other ranks with this stage, which reduce another stage first",
                      name_of(position)));
    }
    return true;
  }

  bool check_limits() {
    if (schedule_.in_flight_limits.empty()) return true;
    const std::vector<std::int32_t> peaks = peaks_in_flight(schedule_);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (peaks[at] <= schedule_.in_flight_limits[at]) continue;
      return fail({rank, 0},
                  fmt::format("has {} forward passes in flight, but must have at most {}",
                              peaks[at], schedule_.in_flight_limits[at]));
    }
    return true;
  }

  const Schedule& schedule_;
  std::vector<RankSlot> producers_;
  std::vector<Visibility> visibility_;
  std::vector<std::int32_t> next_;
  ScheduleFault fault_;
};

}  // namespace

std::optional<ScheduleFault> find_fault(const Schedule& schedule) {
  return Inspection(schedule).run();
}

std::vector<std::int32_t> peaks_in_flight(const Schedule& schedule) {
  std::vector<std::int32_t> peaks;
  for (const auto& order : schedule.orders) {
    std::int32_t now = 0, most = 0;
    for (const Action& action : order) {
      if (action.kind == ActionKind::forward) most = std::max(most, ++now);
      const bool input =
          action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
      if (input && action.half != 1) --now;
    }
    peaks.push_back(most);
  }
  return peaks;
}

std::vector<std::int32_t> versions_kept(const Schedule& schedule) {
  std::vector<std::int32_t> kept;
  for (const auto& order : schedule.orders) {
    // A version is kept from the update that makes it to the last pass that uses it.
    std::vector<std::int32_t> last_use;  // The last slot, by version.
    std::vector<std::int32_t> made;
    std::int32_t most = 1;
    for (std::size_t slot = 0; slot < order.size(); ++slot) {
      const auto version = static_cast<std::size_t>(order[slot].version);
      if (order[slot].kind == ActionKind::reduce) continue;
      if (version >= last_use.size()) last_use.resize(version + 1), made.resize(version + 1);
      const bool makes = order[slot].kind == ActionKind::update;
      if (makes && made[version] == 0) made[version] = static_cast<std::int32_t>(slot);
      last_use[version] = static_cast<std::int32_t>(slot);
    }
    for (std::size_t version = 0; version < made.size(); ++version) {
      std::int32_t now = 0;
      for (std::size_t other = 0; other <= version; ++other)
        now += other == version || last_use[other] > made[version] ? 1 : 0;
      most = std::max(most, now);
    }
    kept.push_back(most);
  }
  return kept;
}

}  // namespace foretrace
