#include "scenario/interval.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "scenario/ledger.h"

namespace foretrace {
namespace {

/// Of sorted times, by linear interpolation.
double quantile(const std::vector<Nanoseconds>& sorted, double at) {
  const double place = at * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(low);
  return static_cast<double>(sorted[low].count()) * (1 - part) +
         static_cast<double>(sorted[high].count()) * part;
}

/// Taken where the recording does not show how much its steps vary; assumed.
constexpr double kAssumedSpread = 0.05;

/// How far fast and slow steps are from the median one, as factors around 1. The first step is
/// warm-up where there are more.
struct Spread {
  double fast = 1 - kAssumedSpread, slow = 1 + kAssumedSpread;
  bool measured = false;
};

Spread spread_of(const StepTimes& measured) {
  std::vector<Nanoseconds> steps = measured.each;
  if (steps.size() >= 2) steps.erase(steps.begin());
  if (steps.size() < 2 || measured.step_time <= 0ns) return {};
  std::sort(steps.begin(), steps.end());
  const auto median = static_cast<double>(measured.step_time.count());
  return {.fast = std::min(1.0, quantile(steps, 0.1) / median),
          .slow = std::max(1.0, quantile(steps, 0.9) / median),
          .measured = true};
}

double share(Nanoseconds part, Nanoseconds whole) {
  return whole <= 0ns ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string percent(double fraction) { return to_fixed(100 * fraction, 1) + " %"; }

/// What is known of the kinds of what-if that were applied.
struct Record {
  double error = 0;
  std::string text;
};

Record record_of(const std::vector<std::string>& uses) {
  Record record;
  std::vector<std::string> seen;
  for (const std::string& use : uses) {
    const std::string name = use.substr(0, use.find(':'));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    const LedgerEntry* entry = ledger_entry(name);
    if (entry == nullptr) {
      record.text += "; how far " + name + " is off was never measured";
    } else if (entry->error > 0) {
      record.error += entry->error;
      record.text += "; " + name + " may be off by " + percent(entry->error) + " (" +
                     std::string(entry->source) + ")";
    }
  }
  return record;
}

std::string spread_text(const Spread& spread) {
  if (spread.measured) {
    return "steps in the trace vary by -" + percent(1 - spread.fast) + " to +" +
           percent(spread.slow - 1);
  }
  return "too few steps in the trace to know how much they vary: " + percent(kAssumedSpread) +
         " either way are assumed";
}

std::string open_text(double unexplained, double inferred) {
  if (std::max(unexplained, inferred) < 0.0005) return {};
  std::string text;
  if (unexplained >= 0.0005)
    text = percent(unexplained) + " of the time is unexplained or up to other ranks";
  if (inferred >= 0.0005) {
    text += (text.empty() ? "" : ", and ") + std::string("during ") + percent(inferred) +
            " of the critical path something waits for what was only inferred";
  }
  return "; " + text + ": as much of the change is open";
}

}  // namespace

Interval interval_of(const IntervalInputs& inputs) {
  const Spread spread = spread_of(inputs.measured);
  const double unexplained = std::min(
      1.0, share(inputs.unexplained.lag + inputs.unexplained.peers, inputs.unexplained.window));
  const double open = std::min(1.0, unexplained + inputs.inferred_share);
  const Nanoseconds change{std::abs((inputs.predicted - inputs.baseline).count())};
  const Record record = record_of(inputs.uses);
  const Nanoseconds slack = scaled(change, open) +
                            std::min(change, scaled(inputs.predicted, record.error)) +
                            scaled(inputs.predicted, inputs.replay_error);
  Interval interval;
  interval.lower = std::max(0ns, scaled(inputs.predicted, spread.fast) - slack);
  interval.upper = scaled(inputs.predicted, spread.slow) + slack;
  interval.source = spread_text(spread);
  if (change != 0ns) interval.source += open_text(unexplained, inputs.inferred_share) + record.text;
  return interval;
}

}  // namespace foretrace
