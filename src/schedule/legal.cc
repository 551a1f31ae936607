// Checks whether a schedule can run, without times: first which rank runs which action, then each
// rank's order from the start as far as its waits allow.

#include <algorithm>
#include <array>

#include "schedule/schedule.h"

namespace foretrace {
namespace {

/// The position of an action.
struct Site {
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

/// Who knows a result. A held result is first known only to its own rank.
enum class Known : std::uint8_t { to_none, to_its_rank, to_all };

class Inspection {
 public:
  explicit Inspection(const Schedule& schedule)
      : schedule_(schedule),
        made_(kResults * static_cast<std::size_t>(schedule.stages) *
              static_cast<std::size_t>(schedule.micro_batches)),
        known_(made_.size(), Known::to_none) {}

  std::optional<ScheduleFault> run() {
    if (!find_makers() || !find_missing() || !check_versions() || !run_orders() ||
        !run_reductions() || !check_limits())
      return fault_;
    return std::nullopt;
  }

 private:
  const std::vector<Action>& order(std::int32_t rank) const {
    return schedule_.orders[static_cast<std::size_t>(rank)];
  }
  std::size_t place(Result result, std::int32_t stage, std::int32_t micro_batch) const {
    const auto stages = static_cast<std::size_t>(schedule_.stages);
    const auto micro_batches = static_cast<std::size_t>(schedule_.micro_batches);
    return (result * stages + static_cast<std::size_t>(stage)) * micro_batches +
           static_cast<std::size_t>(micro_batch);
  }

  bool fail(Site site, const std::string& text) {
    fault_ = {
        site.rank, site.slot,
        "rank " + std::to_string(site.rank) + ", slot " + std::to_string(site.slot) + ": " + text};
    return false;
  }
  static std::string words(Site site) {
    return "rank " + std::to_string(site.rank) + " runs at slot " + std::to_string(site.slot);
  }

  bool find_makers() {
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(order(rank).size()); ++slot) {
        const Action& action = order(rank)[static_cast<std::size_t>(slot)];
        const Site site{rank, slot};
        if (action.stage < 0 || action.stage >= schedule_.stages || action.micro_batch < 0 ||
            action.micro_batch >= schedule_.micro_batches)
          return fail(site, to_string(action) + " is not among the " +
                                std::to_string(schedule_.stages) + " stages and " +
                                std::to_string(schedule_.micro_batches) + " micro-batches");
        for (const Result result : results_of(action)) {
          Site& maker = made_[place(result, action.stage, action.micro_batch)];
          if (maker.rank >= 0)
            return fail(site, to_string(action) + " repeats work that " + words(maker));
          maker = site;
        }
      }
    }
    return true;
  }

  /// Checks that each result has a producer, on the rank of its stage.
  bool find_missing() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) {
      for (std::int32_t i = 0; i < schedule_.micro_batches; ++i) {
        const Site home = made_[place(activations, stage, i)];
        for (std::size_t result = 0; result < kResults; ++result) {
          const Site maker = made_[place(Result(result), stage, i)];
          if (maker.rank < 0) return fail_missing(home, Result(result), stage, i);
          if (maker.rank != home.rank)
            return fail(maker, name_of(maker) + " must be run by the rank of the forward pass, " +
                                   std::to_string(home.rank));
        }
      }
    }
    return true;
  }

  bool fail_missing(Site home, Result result, std::int32_t stage, std::int32_t micro_batch) {
    const auto name = [&](ActionKind kind) {
      return to_string(Action{.kind = kind, .stage = stage, .micro_batch = micro_batch});
    };
    const std::string forward = name(ActionKind::forward);
    if (result == activations) return fail({0, 0}, "no rank runs " + forward);
    const bool input = result == input_a || result == input_b;
    return fail(home, "no rank runs " + name(ActionKind::backward) + " or " +
                          name(input ? ActionKind::input_gradient : ActionKind::weight_gradient) +
                          ", which " + forward + " needs");
  }

  std::string name_of(Site site) const {
    return to_string(order(site.rank)[static_cast<std::size_t>(site.slot)]);
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
          return fail({rank, slot}, to_string(action) + " waits for version " +
                                        std::to_string(action.version) +
                                        " of the weights, which no update before it makes");
        const Site forward = made_[place(activations, action.stage, action.micro_batch)];
        const std::int32_t version =
            order(forward.rank)[static_cast<std::size_t>(forward.slot)].version;
        if (action.version != version)
          return fail({rank, slot}, to_string(action) + " must use version " +
                                        std::to_string(version) +
                                        " of the weights, as its forward pass does, not " +
                                        std::to_string(action.version));
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
      needs[count++] = place(result, of, i);
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
      const Known known = known_[needs[at]];
      const bool own = made_[needs[at]].rank == rank;
      if (known != Known::to_all && !(own && known == Known::to_its_rank)) return needs[at];
    }
    return std::nullopt;
  }

  void make_known(const Action& action, Known to) {
    for (const Result result : results_of(action))
      known_[place(result, action.stage, action.micro_batch)] = to;
  }

  /// Runs one rank as far as possible; returns whether it made progress.
  bool advance(std::int32_t rank) {
    std::int32_t& next = next_[static_cast<std::size_t>(rank)];
    const std::int32_t before = next;
    const std::vector<Action>& own = order(rank);
    while (next < static_cast<std::int32_t>(own.size())) {
      const auto at = static_cast<std::size_t>(next);
      if (missing(own[at], rank)) break;
      // A pair begins when both actions have what they wait for.
      if (own[at].overlaps_next && at + 1 < own.size() && missing(own[at + 1], rank)) break;
      make_known(own[at], own[at].held ? Known::to_its_rank : Known::to_all);
      if (at > 0 && own[at - 1].held) make_known(own[at - 1], Known::to_all);
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
        rank = made_[stuck_at(rank).what].rank;
      }
      const Stuck stuck = stuck_at(rank);
      const Site maker = made_[stuck.what];
      return fail(stuck.site, name_of(stuck.site) + " waits for " + name_of(maker) + ", which " +
                                  words(maker) + "; this is a deadlock");
    }
    return true;
  }

  bool has_ended(std::int32_t rank) const {
    const auto next = static_cast<std::size_t>(next_[static_cast<std::size_t>(rank)]);
    return next == order(rank).size();
  }

  /// The action that a rank cannot run, and the result it waits for.
  struct Stuck {
    Site site;
    std::size_t what = 0;
  };
  Stuck stuck_at(std::int32_t rank) const {
    Site site{rank, next_[static_cast<std::size_t>(rank)]};
    const auto at = [&] { return order(rank)[static_cast<std::size_t>(site.slot)]; };
    if (!missing(at(), rank)) ++site.slot;  // The second action of a pair.
    return {site, *missing(at(), rank)};
  }

  /// All ranks with a copy of a stage reduce its gradients together; each rank has its own order.
  bool run_reductions() {
    std::vector<std::vector<Site>> queues(schedule_.orders.size());
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

  bool run_queues(const std::vector<std::vector<Site>>& queues,
                  const std::vector<std::size_t>& members) {
    std::vector<std::size_t> next(queues.size(), 0);
    std::vector<std::vector<std::size_t>> ready(
        members.size());             // Ranks whose next reduction it is, by stage.
    std::vector<std::size_t> whole;  // Stages for which all ranks are ready.
    const auto come = [&](std::size_t rank) {
      if (next[rank] == queues[rank].size()) return;
      const Site site = queues[rank][next[rank]];
      const auto stage =
          static_cast<std::size_t>(order(site.rank)[static_cast<std::size_t>(site.slot)].stage);
      ready[stage].push_back(rank);
      if (ready[stage].size() == members[stage]) whole.push_back(stage);
    };
    for (std::size_t rank = 0; rank < queues.size(); ++rank) come(rank);
    while (!whole.empty()) {
      const std::vector<std::size_t> done = std::move(ready[whole.back()]);
      ready[whole.back()].clear();
      whole.pop_back();
      for (const std::size_t rank : done) ++next[rank], come(rank);
    }
    for (std::size_t rank = 0; rank < queues.size(); ++rank) {
      if (next[rank] == queues[rank].size()) continue;
      const Site site = queues[rank][next[rank]];
      return fail(site,
                  name_of(site) +
                      " waits for other ranks with this stage, which reduce another stage first");
    }
    return true;
  }

  bool check_limits() {
    if (schedule_.in_flight_limits.empty()) return true;
    const std::vector<std::int32_t> peaks = peaks_in_flight(schedule_);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (peaks[at] <= schedule_.in_flight_limits[at]) continue;
      return fail({rank, 0}, "has " + std::to_string(peaks[at]) +
                                 " forward passes in flight, but must have at most " +
                                 std::to_string(schedule_.in_flight_limits[at]));
    }
    return true;
  }

  const Schedule& schedule_;
  std::vector<Site> made_;
  std::vector<Known> known_;
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
