#include "ask/interval/interval.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "base/draws.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

/// Assumed if the recording does not show how much its steps vary.
constexpr double kAssumedSpread = 0.05;
/// Four of five normal numbers are within this many deviations.
constexpr double kDeviations = 1.2816;
constexpr std::size_t kDraws = 4000;
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
double widened(Draws& draws, double value, std::size_t outcomes) {
  return draws.studentized(value,
                           static_cast<int>(std::clamp<std::size_t>(outcomes, 1, kManyOutcomes)));
}

Nanoseconds rounded(double value) {
  constexpr double kMost = 9e18;
  return Nanoseconds(static_cast<std::int64_t>(std::clamp(value, 0.0, kMost) + 0.5));
}

class IntervalDraws {
 public:
  explicit IntervalDraws(const IntervalInputs& inputs)
      : inputs_(inputs), point_(static_cast<double>(inputs.point.count())) {
    add_variation();
    for (const ErrorScale& model : inputs.models) add_model(model);
    for (const Bracket& bracket : inputs.brackets) add_bracket(bracket);
    if (inputs.replay_error >= kVisibleError) add_replay();
  }

  Interval interval() const {
    std::vector<double> all(kDraws, 0);
    Interval found;
    for (const Source& source : sources_) {
      for (std::size_t i = 0; i < kDraws; ++i) all[i] += source.moves[i];
      const auto [lower, upper] = ends(source.moves);
      found.parts.push_back({source.name, lower, upper, source.text});
      found.source += (found.source.empty() ? "" : "; ") + source.text;
    }
    std::tie(found.lower, found.upper) = ends(std::move(all));
    return found;
  }

 private:
  std::pair<Nanoseconds, Nanoseconds> ends(std::vector<double> moves) const {
    std::sort(moves.begin(), moves.end());
    const double low = interpolated_quantile(moves, (1 - kIntervalLevel) / 2);
    const double high = interpolated_quantile(moves, (1 + kIntervalLevel) / 2);
    return {std::min(inputs_.point, rounded(point_ + low)),
            std::max(inputs_.point, rounded(point_ + high))};
  }

  Source& add(std::string name, const std::function<double(std::size_t, Draws&)>& move) {
    // Each source has its own seed, so that adding a source does not change the others.
    Draws draws(kIntervalSeed + (std::uint64_t{sources_.size()} << 32U));
    Source source{.name = std::move(name), .text = {}, .moves = {}};
    for (std::size_t i = 0; i < kDraws; ++i) source.moves.push_back(move(i, draws));
    sources_.push_back(std::move(source));
    return sources_.back();
  }

  void add_variation() {
    if (inputs_.seen < 2 || inputs_.times.empty()) {
      const double deviation = kAssumedSpread / kDeviations * point_;
      add("steps", [&](std::size_t, Draws& draws) { return draws.normal() * deviation; }).text =
          (inputs_.why_not.empty() ? "too few steps in the trace to know how much they vary"
                                   : inputs_.why_not) +
          ": " + to_share(kAssumedSpread) + " either way are assumed";
      return;
    }
    const auto seen = static_cast<double>(inputs_.seen);
    const double unbiased = std::sqrt(seen / (seen - 1) * (1 + 1 / seen));
    Source& source = add("steps", [&](std::size_t i, Draws& draws) {
      const Nanoseconds time = inputs_.times[i % inputs_.times.size()];
      const auto move = static_cast<double>((time - inputs_.point).count());
      return widened(draws, move * unbiased, inputs_.seen - 1);
    });
    source.text = variation_text(source);
  }

  std::string variation_text(const Source& source) const {
    const auto [lower, upper] = ends(source.moves);
    const auto share = [&](Nanoseconds end) {
      return to_percent(point_ <= 0 ? 0 : (static_cast<double>(end.count()) - point_) / point_);
    };
    std::string text = "steps vary by " + share(lower) + " to " + share(upper);
    const std::string steps = std::to_string(inputs_.seen) + " recorded steps";
    if (inputs_.resamples > 0) {
      return text + " in " + std::to_string(inputs_.resamples) + " replays with the work of " +
             steps;
    }
    return text + " as " + steps + " do" +
           (inputs_.why_not.empty() ? "" : " (" + inputs_.why_not + ")");
  }

  /// Errors are symmetric as factors: a prediction of half the outcome is as likely as one of twice
  /// the outcome.
  void add_model(const ErrorScale& model) {
    if (model.scale <= 0) return;
    const auto most = static_cast<double>(inputs_.touched.count());
    add("model", [&](std::size_t, Draws& draws) {
      const double error =
          widened(draws, draws.normal() * model.scale, static_cast<std::size_t>(model.outcomes));
      const double truth = error < 0 ? point_ * (1 - error) : point_ / (1 + error);
      return std::clamp(truth - point_, -most, most);
    }).text = model.text;
  }

  void add_bracket(const Bracket& bracket) {
    const auto far = static_cast<double>((bracket.other - inputs_.point).count());
    add(bracket.source, [&](std::size_t, Draws& draws) { return draws.uniform() * far; }).text =
        bracket.text;
  }

  void add_replay() {
    const double far = inputs_.replay_error * point_;
    add("replay", [&](std::size_t, Draws& draws) { return (2 * draws.uniform() - 1) * far; }).text =
        "the unmodified replay is " + to_share(inputs_.replay_error, 2) + " off";
  }

  const IntervalInputs& inputs_;
  double point_;
  std::vector<Source> sources_;
};

}  // namespace

Interval interval_of(const IntervalInputs& inputs) { return IntervalDraws(inputs).interval(); }

}  // namespace foretrace
