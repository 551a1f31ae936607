#include "analysis/doubt/interval.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <tuple>
#include <utility>

#include "base/random_generator.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

/// Assumed if the recording does not show how much its steps vary.
constexpr double kAssumedSpread = 0.05;
/// Four of five normal numbers are within this many deviations.
constexpr double kDeviations = 1.2816;
constexpr std::size_t kDraws = 4000;
/// A what-if may change this share of the step beside the work that it models. Chosen.
constexpr double kUnmodelled = 0.1;
/// With this many outcomes or more, a scale counts as known.
constexpr std::size_t kManyOutcomes = 30;
/// A smaller error of the replay, as a share, is left out, because it rounds to 0.0 % in reports.
/// Chosen.
constexpr double kVisibleError = 5e-5;

/// One source of doubt: how far each draw moves the step time, in ns.
struct Source {
  std::string name, text;
  std::vector<double> moves;
};

/// Widens a draw whose scale was estimated from `outcomes`: the fewer there are, the wider.
double widened(RandomGenerator& draws, double value, std::size_t outcomes) {
  return draws.studentized(value,
                           static_cast<int>(std::clamp<std::size_t>(outcomes, 1, kManyOutcomes)));
}

Nanoseconds rounded(double value) {
  constexpr double kMax = 9e18;
  return Nanoseconds(static_cast<std::int64_t>(std::clamp(value, 0.0, kMax) + 0.5));
}

class IntervalDraws {
 public:
  explicit IntervalDraws(const IntervalInputs& inputs)
      : inputs_(inputs), point_(static_cast<double>(inputs.point.count())) {
    add_variation();
    for (const ErrorScale& model : inputs.models) add_model(model);
    for (const AlternativeTime& alternative : inputs.alternatives) add_alternative(alternative);
    for (const UnsureTransfers& transfers : inputs.transfers) add_transfers(transfers);
    if (inputs.replay_error >= kVisibleError) add_replay();
  }

  Interval interval() const {
    std::vector<double> all(kDraws, 0);
    Interval found;
    for (const Source& source : sources_) {
      for (std::size_t i = 0; i < kDraws; ++i) all[i] += source.moves[i];
      const auto [lower, upper] = bounds_of(source.moves);
      found.parts.push_back({source.name, lower, upper, source.text});
      found.source += (found.source.empty() ? "" : "; ") + source.text;
    }
    std::tie(found.lower, found.upper) = bounds_of(std::move(all));
    return found;
  }

 private:
  std::pair<Nanoseconds, Nanoseconds> bounds_of(std::vector<double> moves) const {
    std::sort(moves.begin(), moves.end());
    const double low = interpolated_quantile(moves, (1 - kIntervalLevel) / 2);
    const double high = interpolated_quantile(moves, (1 + kIntervalLevel) / 2);
    return {std::min(inputs_.point, rounded(point_ + low)),
            std::max(inputs_.point, rounded(point_ + high))};
  }

  Source& add(std::string name, const std::function<double(std::size_t, RandomGenerator&)>& move) {
    // Each source has its own seed, so that adding a source does not change the others.
    RandomGenerator draws(kIntervalSeed + (std::uint64_t{sources_.size()} << 32U));
    Source source{.name = std::move(name), .text = {}, .moves = {}};
    for (std::size_t i = 0; i < kDraws; ++i) source.moves.push_back(move(i, draws));
    sources_.push_back(std::move(source));
    return sources_.back();
  }

  /// The move to a time that a relative error leads to. Errors are symmetric as factors: half of
  /// the time is as likely as twice the time, and no step takes none.
  double moved_by(double error) const {
    return (error < 0 ? point_ / (1 - error) : point_ * (1 + error)) - point_;
  }

  void add_variation() {
    if (inputs_.recorded_steps < 2 || inputs_.times.empty()) {
      const double deviation = kAssumedSpread / kDeviations * point_;
      add("steps", [&](std::size_t, RandomGenerator& draws) { return draws.normal() * deviation; })
          .text = fmt::format("{}: {} either way is assumed",
                              inputs_.no_replay_reason.empty()
                                  ? "too few steps in the trace to know how much they vary"
                                  : inputs_.no_replay_reason,
                              to_share(kAssumedSpread));
      return;
    }
    const auto steps = static_cast<double>(inputs_.recorded_steps);
    const double unbiased = std::sqrt(steps / (steps - 1) * (1 + 1 / steps));
    Source& source = add("steps", [&](std::size_t i, RandomGenerator& draws) {
      const Nanoseconds time = inputs_.times[i % inputs_.times.size()];
      const auto move = static_cast<double>((time - inputs_.point).count());
      if (inputs_.between_kinds) return move;
      const double wide = widened(draws, move * unbiased, inputs_.recorded_steps - 1);
      return point_ <= 0 ? wide : moved_by(wide / point_);
    });
    source.text = variation_text(source);
  }

  std::string variation_text(const Source& source) const {
    const auto [lower, upper] = bounds_of(source.moves);
    const auto share = [&](Nanoseconds end) {
      return to_percent(point_ <= 0 ? 0 : (static_cast<double>(end.count()) - point_) / point_);
    };
    if (inputs_.resamples > 0)
      return fmt::format("steps vary by {} to {} in {} replays with the work of {} recorded steps",
                         share(lower), share(upper), inputs_.resamples, inputs_.recorded_steps);
    if (inputs_.between_kinds)
      return fmt::format("steps vary by {} to {}, as the fastest and the slowest recorded step do",
                         share(lower), share(upper));
    return fmt::format(
        "steps vary by {} to {} as {} recorded steps do{}", share(lower), share(upper),
        inputs_.recorded_steps,
        inputs_.no_replay_reason.empty() ? "" : fmt::format(" ({})", inputs_.no_replay_reason));
  }

  void add_model(const ErrorScale& model) {
    if (model.scale <= 0) return;
    const auto most = static_cast<double>(inputs_.changed_work.count());
    const double least = static_cast<double>(inputs_.least.count()) * (1 - kUnmodelled);
    const double down = std::min(most, point_ - least);
    const auto greatest = static_cast<double>(inputs_.greatest.count()) * (1 + kUnmodelled);
    const double up = greatest > 0 ? std::min(most, greatest - point_) : most;
    add("model", [&](std::size_t, RandomGenerator& draws) {
      const double error =
          widened(draws, draws.normal() * model.scale, static_cast<std::size_t>(model.outcomes));
      return std::clamp(moved_by(-error), -std::max(down, 0.0), std::max(up, 0.0));
    }).text = model.text;
  }

  void add_alternative(const AlternativeTime& alternative) {
    const auto distance = static_cast<double>((alternative.step_time - inputs_.point).count());
    add(alternative.source, [&](std::size_t, RandomGenerator& draws) {
      return draws.uniform() * distance;
    }).text = alternative.text;
  }

  void add_transfers(const UnsureTransfers& transfers) {
    const auto exposed = static_cast<double>(transfers.exposed.count());
    add("transfers", [&](std::size_t, RandomGenerator& draws) {
      const double far = draws.normal();
      const double factor = far < 0 ? transfers.doubt.faster : transfers.doubt.slower;
      return exposed * (std::pow(factor, far / kDeviations) - 1);
    }).text = transfers.text;
  }

  void add_replay() {
    const double distance = inputs_.replay_error * point_;
    add("replay", [&](std::size_t, RandomGenerator& draws) {
      return (2 * draws.uniform() - 1) * distance;
    }).text = fmt::format("the unmodified replay is {} off", to_share(inputs_.replay_error, 2));
  }

  const IntervalInputs& inputs_;
  double point_;
  std::vector<Source> sources_;
};

}  // namespace

Interval interval_of(const IntervalInputs& inputs) { return IntervalDraws(inputs).interval(); }

}  // namespace foretrace
