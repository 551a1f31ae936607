#include "question/words/tables.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "question/words/wording.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxExplained = 12;

std::string percent_of(Nanoseconds part, Nanoseconds whole) {
  if (whole.count() == 0) return "-";
  return to_fixed(100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count()),
                  1) +
         " %";
}

std::string rate_text(double count, Nanoseconds step) {
  const double rate = step > 0ns ? count * 1e9 / static_cast<double>(step.count()) : 0;
  return rate < 1000 ? to_fixed(rate, 1) : grouped(std::llround(rate));
}

std::string share_text(double share) { return to_fixed(100 * share, 1) + " %"; }

/// Returns a share such as "41.2 %", with "at least" if the operations of some kernels are unknown.
std::string utilization_text(const StepRates& rates, Nanoseconds step) {
  constexpr double kNearlyAll = 0.95;
  const std::optional<double> share = flops_utilization(rates, step);
  if (!share) return "-";
  return (rates.known_share < kNearlyAll ? "at least " : "") + share_text(*share);
}

const MemoryPeak* peak_of(const std::vector<MemoryPeak>& peaks, std::int32_t device) {
  for (const MemoryPeak& peak : peaks) {
    if (peak.device == device) return &peak;
  }
  return nullptr;
}

/// Returns the lines of the explanation in which this time is not 0, the longest first.
std::vector<const Explained*> sorted_by(const Prediction& prediction,
                                        Nanoseconds Explained::*part) {
  std::vector<const Explained*> lines;
  for (const Explained& line : prediction.explained) {
    if (line.*part > 0ns) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Explained* a, const Explained* b) { return a->*part > b->*part; });
  if (lines.size() > kMaxExplained) lines.resize(kMaxExplained);
  return lines;
}

}  // namespace

std::string device_text(std::int32_t device) {
  return device < 0 ? "host" : "device " + std::to_string(device);
}

Table time_table(const Prediction& prediction) {
  Table table;
  const bool what_if = is_what_if(prediction);
  table.heading = {"", "now", "share"};
  if (what_if) table.heading.insert(table.heading.end(), {"predicted", "share", "change"});
  const Nanoseconds before = prediction.baseline.step_time;
  const Nanoseconds after = prediction.predicted.step_time;
  const auto add = [&](std::string name, Nanoseconds from, Nanoseconds to) {
    std::vector<std::string> row = {std::move(name), to_text(from), percent_of(from, before)};
    if (what_if) row.insert(row.end(), {to_text(to), percent_of(to, after), change_text(from, to)});
    table.rows.push_back(std::move(row));
  };
  add(prediction.has_steps ? "step" : "recording", before, after);
  for (const StepPart& part : step_parts(prediction)) {
    if (part.baseline == 0ns && part.predicted == 0ns) continue;
    const bool unknown = part.name == "unknown";
    add("  " + (unknown ? "unknown device time" : std::string(part.name)), part.baseline,
        part.predicted);
  }
  return table;
}

std::string rates_text(const StepRates& rates, const Breakdown& breakdown, Nanoseconds step) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (flops_utilization(rates, step)) add("MFU " + utilization_text(rates, step));
  if (const double exposed = exposed_communication(breakdown, step); exposed > 0)
    add("exposed communication " + share_text(exposed));
  return text;
}

Table rate_table(const Prediction& prediction) {
  Table table;
  if (!prediction.has_times) return table;
  const bool what_if = is_what_if(prediction);
  const StepRates& before = prediction.baseline_rates;
  const StepRates& after = prediction.predicted_rates;
  const Nanoseconds now = prediction.baseline.step_time, then = prediction.predicted.step_time;
  table.heading = {"rates", "now"};
  if (what_if) table.heading.emplace_back("predicted");
  const auto add = [&](std::string name, std::string from, std::string to) {
    table.rows.push_back({"  " + std::move(name), std::move(from)});
    if (what_if) table.rows.back().push_back(std::move(to));
  };
  if (before.samples > 0)
    add("samples a second", rate_text(before.samples, now), rate_text(after.samples, then));
  if (before.tokens > 0)
    add("tokens a second", rate_text(before.tokens, now), rate_text(after.tokens, then));
  if (flops_utilization(before, now))
    add("MFU", utilization_text(before, now), utilization_text(after, then));
  const double exposed = exposed_communication(prediction.baseline_breakdown, now);
  const double exposed_then = exposed_communication(prediction.predicted_breakdown, then);
  if (exposed > 0 || exposed_then > 0)
    add("exposed communication", share_text(exposed), share_text(exposed_then));
  return table;
}

Table rank_table(const Prediction& prediction) {
  constexpr std::size_t kMaxRows = 16;
  Table table;
  if (prediction.ranks.empty() || !prediction.has_times) return table;
  const bool changes = is_what_if(prediction);
  const bool has_collectives =
      std::any_of(prediction.ranks.begin(), prediction.ranks.end(),
                  [](const PredictedRank& rank) { return rank.matched > 0; });
  table.heading = {"ranks", "step"};
  if (changes) table.heading.emplace_back("predicted");
  if (has_collectives)
    table.heading.insert(table.heading.end(),
                         {"waits for others in all", "transfers in all", "enters last",
                          "keeps others waiting in all", "clock"});
  std::vector<const PredictedRank*> rows;
  for (const PredictedRank& rank : prediction.ranks) rows.push_back(&rank);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->predicted > b->predicted; });
  for (std::size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    const PredictedRank& rank = *rows[i];
    std::string name = "  rank " + std::to_string(rank.number);
    if (rank.alike > 0) name += fmt::format(" and {} like it", rank.alike);
    std::vector<std::string> row = {std::move(name), to_text(rank.baseline)};
    if (changes) row.push_back(to_text(rank.predicted));
    if (has_collectives)
      row.insert(
          row.end(),
          {to_text(rank.waits), to_text(rank.transfer),
           fmt::format("{} of {}", rank.times_last, rank.matched), to_text(rank.keeps_waiting),
           fmt::format("{} +- {}", to_text(rank.clock_offset), to_text(rank.clock_residual))});
    table.rows.push_back(std::move(row));
  }
  if (rows.size() > kMaxRows)
    table.rows.push_back({fmt::format("  {} more", rows.size() - kMaxRows)});
  return table;
}

Table memory_table(const Prediction& prediction) {
  Table table;
  const bool changes = asks_memory(prediction);
  table.heading = {"peak memory", "now"};
  if (changes) table.heading.insert(table.heading.end(), {"predicted", "change"});
  const auto add = [&](std::string name, Bytes from, const std::optional<Bytes>& to) {
    std::vector<std::string> row = {std::move(name), to_text(from)};
    if (changes && to) {
      row.push_back(to_text(*to));
      row.push_back(change_text(from, *to));
    }
    table.rows.push_back(std::move(row));
  };
  for (const MemoryPeak& peak : prediction.baseline_memory) {
    const std::string name = "  " + device_text(peak.device);
    const MemoryPeak* after = peak_of(prediction.predicted_memory, peak.device);
    add(name + ", allocated", peak.peak_allocated,
        after ? std::optional(after->peak_allocated) : std::nullopt);
    if (changes && after && after->lower_allocated && after->upper_allocated)
      table.rows.push_back({"    between", "", to_text(*after->lower_allocated),
                            "and " + to_text(*after->upper_allocated)});
    if (peak.peak_reserved)
      add(name + ", reserved", *peak.peak_reserved, after ? after->peak_reserved : std::nullopt);
    if (peak.recorded_reserved)
      add(name + ", reserved as recorded", *peak.recorded_reserved, std::nullopt);
  }
  return table;
}

Table wait_table(const Prediction& prediction) {
  Table table;
  table.heading = {"waited", "first at", "task", "lane", "because"};
  table.left = {2, 3, 4};
  for (const Explained* line : sorted_by(prediction, &Explained::waited)) {
    table.rows.push_back(
        {to_text(line->waited), to_text(line->start), line->task, line->lane, line->reason});
  }
  return table;
}

Table work_table(const Prediction& prediction) {
  Table table;
  table.heading = {"worked", "first at", "task", "lane"};
  table.left = {2, 3};
  for (const Explained* line : sorted_by(prediction, &Explained::duration)) {
    table.rows.push_back({to_text(line->duration), to_text(line->start), line->task, line->lane});
  }
  return table;
}

}  // namespace foretrace
