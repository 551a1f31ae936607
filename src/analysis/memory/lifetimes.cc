// Describes how long blocks live, and which pile up from step to step.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "analysis/memory/blocks.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

bool inside_op(const Allocation& block) {
  return block.use == MemoryUse::workspace ||
         (block.freed_by != kNoTask && block.freed_by == block.made_by);
}

/// Returns the level just before each time. REQUIRES: `times` are in order.
std::vector<Bytes> levels_at(const DeviceMemory& memory, const std::vector<Nanoseconds>& times) {
  const std::vector<MemoryCurve::Point> curve = level_curve(memory);
  std::vector<Bytes> levels;
  std::size_t at = 0;
  for (const Nanoseconds time : times) {
    while (at + 1 < curve.size() && curve[at + 1].time < time) ++at;
    levels.push_back(curve[at].allocated);
  }
  return levels;
}

std::optional<Bytes> median_growth(const std::vector<GrowthSection::Start>& starts) {
  if (starts.size() < 3) return {};
  std::vector<std::int64_t> changes;
  for (std::size_t i = 2; i < starts.size(); ++i)
    changes.push_back(starts[i].allocated.count - starts[i - 1].allocated.count);
  return Bytes{lower_median(std::move(changes))};
}

struct UnfreedBlocks {
  std::map<std::int32_t, Bytes> by_step;
  std::int64_t blocks = 0;
};

/// Finds possible leaks: makers whose blocks of at least two steps are never freed. The last step
/// does not count, because its blocks may be freed in the next step, which was not recorded. Two
/// steps are required because blocks of a single one, such as the first, may be made only once.
std::vector<LeakRow> leaks(const DeviceMemory& memory) {
  std::map<std::pair<std::string, std::string>, UnfreedBlocks> by_maker;
  const std::int32_t last = memory.steps.empty() ? -1 : memory.steps.back().step;
  for (const TimedBlock& timed : memory.blocks) {
    if (!timed.is_left || timed.was_there) continue;
    const Allocation& block = memory.allocation(timed.allocation);
    const std::int32_t step = memory.graph.task(block.made_by).step;
    if (step < 0 || step == last) continue;
    UnfreedBlocks& unfreed =
        by_maker[{maker_of(memory.graph, block), line_of(memory.graph, block)}];
    unfreed.by_step[step] += block.bytes;
    ++unfreed.blocks;
  }
  std::vector<LeakRow> rows;
  for (const auto& [maker, unfreed] : by_maker) {
    if (unfreed.by_step.size() < 2) continue;
    std::vector<Bytes> bytes_by_step;
    for (const auto& [step, bytes] : unfreed.by_step) bytes_by_step.push_back(bytes);
    std::sort(bytes_by_step.begin(), bytes_by_step.end());
    rows.push_back({maker.first, maker.second, unfreed.blocks, std::ssize(bytes_by_step),
                    bytes_by_step[(bytes_by_step.size() - 1) / 2]});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LeakRow& a, const LeakRow& b) { return a.per_step > b.per_step; });
  return rows;
}

PeriodSection period_of(const DeviceMemory& memory) {
  const MemoryPeriod found = memory_period(memory.graph, memory.events, memory.device);
  PeriodSection section;
  section.repeats = found.length > 0;
  section.blocks = static_cast<std::int64_t>(found.length);
  section.iterations = static_cast<std::int64_t>(found.repetitions);
  if (!section.repeats) return section;
  std::vector<std::uint32_t> made;
  for (const MemoryEvent& event : memory.events) {
    if (!event.frees) made.push_back(event.allocation);
  }
  section.first = static_cast<std::int64_t>(found.first);
  const std::size_t end = found.first + found.length * found.repetitions;
  if (end >= made.size()) return section;
  const Allocation& block = memory.allocation(made[end]);
  section.first_irregular =
      fmt::format("{} by {}, block {}", to_text(block.bytes), maker_of(memory.graph, block), end);
  return section;
}

}  // namespace

void describe_lifetimes(const DeviceMemory& memory, MemoryReport& report) {
  LifetimeSection& section = report.lifetimes;
  TimeHistogram histogram;
  std::vector<Nanoseconds> times;
  for (const TimedBlock& timed : memory.blocks) {
    const Allocation& block = memory.allocation(timed.allocation);
    if (timed.was_there) {
      ++section.was_there, section.was_there_bytes += block.bytes;
      continue;
    }
    if (!memory.in_window(timed.made)) continue;
    ++section.blocks, section.bytes += block.bytes;
    if (timed.is_left) {
      ++section.left, section.left_bytes += block.bytes;
      continue;
    }
    if (inside_op(block)) ++section.inside_op, section.inside_op_bytes += block.bytes;
    const Nanoseconds lifetime = timed.freed - timed.made;
    times.push_back(lifetime);
    TimeBin& bin = histogram.bin_of(lifetime);
    ++bin.count, bin.bytes += block.bytes;
  }
  section.times = quantiles(std::move(times));
  section.bins = histogram.trimmed_bins();
}

void describe_growth(const DeviceMemory& memory, const MemoryQuestion& question,
                     MemoryReport& report) {
  GrowthSection& section = report.growth;
  std::vector<Nanoseconds> times;
  for (const auto& span : memory.steps) times.push_back(span.begin);
  const std::vector<Bytes> levels = levels_at(memory, times);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto step = static_cast<std::size_t>(memory.steps[i].step);
    section.starts.push_back({memory.graph.steps()[step].name, levels[i]});
  }
  section.per_step = median_growth(section.starts);
  report.period = period_of(memory);
  section.candidates = leaks(memory);
  if (section.candidates.size() > question.top) section.candidates.resize(question.top);
}

}  // namespace foretrace
