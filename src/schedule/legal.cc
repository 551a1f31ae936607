// Whether a schedule can be run, without times: first who runs what, then every order from its
// begin as far as its waits allow.

#include <algorithm>
#include <array>

#include "foretrace/schedule.h"

namespace foretrace {
namespace {

/// Where an action stands.
struct Site {
  std::int32_t rank = -1, slot = -1;
};

/// What a pass of a micro-batch through a stage leaves: its activations, and by halves of the
/// micro-batch the gradients of inputs and weights.
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

bool is_pass(const Action& action) {
  return action.kind != ActionKind::reduce && action.kind != ActionKind::update;
}

class Inspection {
 public:
  explicit Inspection(const Schedule& schedule)
      : schedule_(schedule),
        made_(kResults * static_cast<std::size_t>(schedule.stages) *
              static_cast<std::size_t>(schedule.micro_batches)),
        known_(made_.size(), false) {}

  std::optional<ScheduleFault> run() {
    if (!find_makers() || !find_missing() || !check_versions() || !run_orders() || !check_limits())
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
            return fail(site,
                        to_string(action) + " is run again: " + words(maker) + " what it does");
          maker = site;
        }
      }
    }
    return true;
  }

  /// Each result has a maker, on the rank of its stage.
  bool find_missing() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) {
      for (std::int32_t i = 0; i < schedule_.micro_batches; ++i) {
        const Site home = made_[place(activations, stage, i)];
        for (std::size_t result = 0; result < kResults; ++result) {
          const Site maker = made_[place(Result(result), stage, i)];
          const std::string name = to_string(named(Result(result), stage, i));
          if (maker.rank < 0)
            return fail(home.rank < 0 ? Site{0, 0} : home, name + " is run by no rank");
          if (maker.rank != home.rank)
            return fail(maker, name + " must be run by the rank of the forward pass, " +
                                   std::to_string(home.rank));
        }
      }
    }
    return true;
  }

  static Action named(Result result, std::int32_t stage, std::int32_t micro_batch) {
    Action action{.stage = stage, .micro_batch = micro_batch};
    if (result == activations) return action;
    const bool input = result == input_a || result == input_b;
    action.kind = input ? ActionKind::input_gradient : ActionKind::weight_gradient;
    return action;
  }

  /// Both passes use one version of the weights, which was made before the forward pass.
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

  /// What an action waits for and is not known yet; nothing if it can run.
  std::optional<std::size_t> missing(const Action& action) const {
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
      if (!known_[needs[at]]) return needs[at];
    }
    return std::nullopt;
  }

  void make_known(const Action& action) {
    for (const Result result : results_of(action))
      known_[place(result, action.stage, action.micro_batch)] = true;
  }

  /// Runs one rank as far as it gets; whether it got anywhere.
  bool advance(std::int32_t rank) {
    std::int32_t& next = next_[static_cast<std::size_t>(rank)];
    const std::int32_t before = next;
    const std::vector<Action>& own = order(rank);
    while (next < static_cast<std::int32_t>(own.size())) {
      const auto at = static_cast<std::size_t>(next);
      if (missing(own[at])) break;
      // A pair begins when both have what they wait for.
      if (own[at].overlaps_next && at + 1 < own.size() && missing(own[at + 1])) break;
      make_known(own[at]);
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
      const auto at = static_cast<std::size_t>(next_[static_cast<std::size_t>(rank)]);
      if (at >= order(rank).size()) continue;
      const Action& first = order(rank)[at];
      const bool pair = !missing(first);
      const Action& action = pair ? order(rank)[at + 1] : first;
      return fail_waiting({rank, static_cast<std::int32_t>(pair ? at + 1 : at)}, action,
                          *missing(action));
    }
    return true;
  }

  bool fail_waiting(Site site, const Action& action, std::size_t what) {
    const auto micro_batches = static_cast<std::size_t>(schedule_.micro_batches);
    const auto stages = static_cast<std::size_t>(schedule_.stages);
    const auto result = Result(what / micro_batches / stages);
    const auto stage = static_cast<std::int32_t>(what / micro_batches % stages);
    const auto i = static_cast<std::int32_t>(what % micro_batches);
    return fail(site, to_string(action) + " waits for " + to_string(named(result, stage, i)) +
                          ", which " + words(made_[what]) + ", and that waits for this one");
  }

  bool check_limits() {
    if (schedule_.in_flight_limits.empty()) return true;
    const std::vector<std::int32_t> peaks = peaks_in_flight(schedule_);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (peaks[at] <= schedule_.in_flight_limits[at]) continue;
      return fail({rank, 0}, "has " + std::to_string(peaks[at]) +
                                 " forward passes in flight, and must not exceed " +
                                 std::to_string(schedule_.in_flight_limits[at]));
    }
    return true;
  }

  const Schedule& schedule_;
  std::vector<Site> made_;
  std::vector<bool> known_;
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
    // A version is needed from the update that makes it to the last pass that uses it.
    std::vector<std::int32_t> last_use;  // By version: the slot.
    std::vector<std::int32_t> made;
    std::int32_t most = 1;
    for (std::size_t slot = 0; slot < order.size(); ++slot) {
      const auto version = static_cast<std::size_t>(order[slot].version);
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
