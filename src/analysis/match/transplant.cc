#include "analysis/match/transplant.h"

#include <algorithm>

#include "base/align.h"

namespace foretrace {
namespace {

/// Two runs are alike if at least this share of their launches, and of their tasks or work,
/// corresponds.
constexpr double kAlike = 0.9;

void count_line(const StepLine& line, Match& launched, Match& work) {
  for (std::size_t i = 0; i < line.tasks.size(); ++i) {
    launched.total += line.launched[i] ? 0.5 : 0;
    work.total += static_cast<double>(line.durations[i].count());
  }
}

void count_pair(const StepLine& into, std::size_t a, const StepLine& from, std::size_t b,
                Match& launched, Transplant& result) {
  result.tasks.matched += 1;
  launched.matched += into.launched[a] ? 1 : 0;
  result.work_into.matched += static_cast<double>(into.durations[a].count());
  result.work_from.matched += static_cast<double>(from.durations[b].count());
}

/// Work without a partner goes to the nearest earlier task with one, or a later one at the
/// beginning of a line.
void transplant_line(const StepLine& into, const StepLine& from, Transplant& result) {
  result.tasks.total += static_cast<double>(std::max(into.tasks.size(), from.tasks.size()));
  Match launched;
  count_line(into, launched, result.work_into);
  count_line(from, launched, result.work_from);
  const std::size_t most = 20 + (into.tasks.size() + from.tasks.size()) / 5;
  const auto pairs = align(into.keys, from.keys, std::min<std::size_t>(most, 4000));
  std::vector<Nanoseconds> work(into.tasks.size(), 0ns);
  std::size_t next_from = 0, at = 0;
  const auto take_until = [&](std::size_t end) {
    for (; next_from < end; ++next_from) {
      if (work.empty()) continue;
      work[at] += from.durations[next_from];
      result.task_pairs.emplace_back(into.tasks[at], from.tasks[next_from]);
    }
  };
  if (pairs) {
    if (!pairs->empty()) at = pairs->front().first;
    for (const auto& [a, b] : *pairs) {
      take_until(b);
      at = a;
      take_until(b + std::size_t{1});
      count_pair(into, a, from, b, launched, result);
    }
  }
  take_until(from.tasks.size());
  if (!launched.good()) result.same_launches = false;
  for (std::size_t i = 0; i < work.size(); ++i)
    result.durations.emplace_back(into.tasks[i], work[i]);
}

}  // namespace

bool Match::good() const { return matched >= kAlike * total; }

bool Transplant::alike() const {
  return tasks.total > 0 && same_launches &&
         (tasks.good() || (work_into.good() && work_from.good()));
}

Transplant transplant(const std::map<LaneKey, StepLine>& into,
                      const std::map<LaneKey, StepLine>& from) {
  static const StepLine nothing;
  Transplant result;
  for (const auto& [lane, line] : into) {
    const auto found = from.find(lane);
    transplant_line(line, found == from.end() ? nothing : found->second, result);
  }
  for (const auto& [lane, line] : from) {
    if (!into.contains(lane)) transplant_line(nothing, line, result);
  }
  return result;
}

}  // namespace foretrace
