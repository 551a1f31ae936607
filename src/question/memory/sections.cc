#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "foretrace/machine.h"
#include "question/memory/words.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string bin_text(const TimeBin& bin) {
  return bin.from == 0ns ? "< 1 us" : ">= " + to_text(bin.from);
}

std::string bar(std::int64_t count, std::int64_t most) {
  constexpr std::int64_t kLength = 30;
  if (count == 0 || most == 0) return {};
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(1, count * kLength / most)),
                     '#');
}

std::int64_t highest_count(const std::vector<TimeBin>& bins) {
  std::int64_t most = 0;
  for (const TimeBin& bin : bins) most = std::max(most, bin.count);
  return most;
}

std::string quantile_text(const Quantiles& times) {
  return fmt::format("10 % up to {}, half up to {}, 90 % up to {}, the longest {}",
                     to_text(times.tenth), to_text(times.median), to_text(times.ninetieth),
                     to_text(times.most));
}

MemorySection occupation(const MemoryReport& report) {
  MemorySection section{.heading = "Use of memory", .before = {}, .table = {}, .after = {}};
  section.table.heading = {"", "at the peak", "share", "blocks", "average", "highest"};
  for (const UseRow& row : report.uses) {
    section.table.rows.push_back({std::string(to_string(row.use)), to_text(row.at_peak),
                                  share_text(row.at_peak, report.peak),
                                  row.blocks_at_peak == 0 ? "-" : grouped(row.blocks_at_peak),
                                  to_text(row.average), to_text(row.most)});
  }
  return section;
}

MemorySection phases(const MemoryReport& report) {
  MemorySection section{.heading = "By phase", .before = {}, .table = {}, .after = {}};
  section.table.heading = {"", "time", "highest", "average"};
  for (const UseRow& use : report.uses)
    section.table.heading.push_back(std::string(to_string(use.use)));
  for (const PhaseRow& row : report.phases) {
    section.table.rows.push_back(
        {row.phase == Phase::none ? "(none)" : std::string(to_string(row.phase)), to_text(row.time),
         to_text(row.most), to_text(row.average)});
    for (const UseRow& use : report.uses) {
      section.table.rows.back().push_back(
          to_text(row.average_by_use[static_cast<std::size_t>(use.use)]));
    }
  }
  if (report.phases.size() == 1 && report.phases[0].phase == Phase::none)
    section.table.rows.clear();
  return section;
}

void add_holders(const MemoryReport& report, const char* what,
                 const std::vector<RequesterRow>& rows, std::vector<MemorySection>& sections) {
  MemorySection section{.heading = fmt::format("In use at the peak, by {}", what),
                        .before = {},
                        .table = {},
                        .after = {}};
  section.table.heading = {"bytes", "share", "blocks", "median lifetime", what};
  section.table.left = {4};
  for (const RequesterRow& row : rows) {
    section.table.rows.push_back({to_text(row.bytes), share_text(row.bytes, report.peak),
                                  row.blocks == 0 ? "-" : grouped(row.blocks),
                                  row.blocks == 0 ? "-" : to_text(row.lifetime), row.name});
  }
  sections.push_back(std::move(section));
}

MemorySection lifetimes(const MemoryReport& report) {
  const LifetimeSection& found = report.lifetimes;
  MemorySection section{.heading = "Lifetimes", .before = {}, .table = {}, .after = {}};
  section.before.push_back(fmt::format("{} made, {} in all; {} of them ({}) live inside one op",
                                       counted(found.blocks, "block"), to_text(found.bytes),
                                       grouped(found.inside_op), to_text(found.inside_op_bytes)));
  if (found.blocks > 0) section.before.push_back(quantile_text(found.times));
  section.table.heading = {"lifetime", "blocks", "bytes", ""};
  section.table.left = {0, 3};
  for (const TimeBin& bin : found.bins) {
    section.table.rows.push_back({bin_text(bin), grouped(bin.count), to_text(bin.bytes),
                                  bar(bin.count, highest_count(found.bins))});
  }
  if (found.left > 0) {
    section.after.push_back(fmt::format("{} ({}) made and not freed", counted(found.left, "block"),
                                        to_text(found.left_bytes)));
  }
  if (found.was_there > 0) {
    section.after.push_back(fmt::format("{} ({}) allocated before the recording",
                                        counted(found.was_there, "block"),
                                        to_text(found.was_there_bytes)));
  }
  return section;
}

MemorySection growth(const MemoryReport& report) {
  const GrowthSection& found = report.growth;
  MemorySection section{.heading = "From step to step", .before = {}, .table = {}, .after = {}};
  if (found.per_step) {
    const std::string change =
        found.per_step->count == 0
            ? "steps begin at the same level"
            : fmt::format("the level at which steps begin changes by {} a step (median)",
                          to_text(*found.per_step));
    section.before.push_back(fmt::format("{} ({} -> {})", change,
                                         to_text(found.starts.front().allocated),
                                         to_text(found.starts.back().allocated)));
  }
  if (!found.candidates.empty()) {
    section.before.push_back("may leak: made in several steps and never freed in the recording");
  }
  section.table.heading = {"a step", "blocks", "steps", "by"};
  section.table.left = {3};
  for (const LeakRow& row : found.candidates) {
    section.table.rows.push_back({to_text(row.per_step), grouped(row.blocks), grouped(row.steps),
                                  op_and_line(row.op, row.line)});
  }
  if (report.period) {
    const PeriodSection& period = *report.period;
    section.after.push_back(
        period.repeats
            ? fmt::format(
                  "sizes repeat every {}, {}{}", counted(period.blocks, "block"),
                  counted(period.iterations, "time"),
                  period.first == 0 ? "" : ", after the first " + counted(period.first, "block"))
            : "the sizes of blocks do not repeat");
    if (!period.first_irregular.empty())
      section.after.push_back("the first that does not repeat: " + period.first_irregular);
  }
  return section;
}

MemorySection intervals(const MemoryReport& report) {
  const IntervalSection& found = report.intervals;
  MemorySection section{.heading = "Between accesses", .before = {}, .table = {}, .after = {}};
  if (!found.known) {
    section.before.push_back("the trace does not show which ops access which blocks");
    return section;
  }
  section.before.push_back(fmt::format("{}, {}: {}", counted(found.accesses, "access"),
                                       counted(found.intervals, "interval"),
                                       quantile_text(found.times)));
  section.table.heading = {"interval", "count", "bytes", "hideable", ""};
  section.table.left = {0, 4};
  for (const TimeBin& bin : found.bins) {
    section.table.rows.push_back({bin_text(bin), grouped(bin.count), to_text(bin.bytes),
                                  grouped(bin.hideable),
                                  bar(bin.count, highest_count(found.bins))});
  }
  section.after.push_back(
      fmt::format("hideable: long enough to copy the block to the host at {} and back at {}",
                  to_text(found.out), to_text(found.in)));
  const auto largest = [&](Nanoseconds interval) {
    return to_text(swappable(interval, found.out, found.in));
  };
  section.after.push_back(fmt::format(
      "S_max, the largest block that can be copied both ways in an interval: {} in the median one, "
      "{} in one longer than 90 %, {} in the longest",
      largest(found.times.median), largest(found.times.ninetieth), largest(found.times.most)));
  if (found.candidates == 0) {
    section.after.push_back("no block of 1 MB or more is unused for long enough");
    return section;
  }
  section.after.push_back(
      fmt::format("tasks on the device need {} at once; swapping {}, one at a time per direction, "
                  "lowers this to {} ({}); no plan gets below {}, because only {} of 1 MB or more "
                  "can be swapped out",
                  to_text(found.needed), counted(found.moved, "block"), to_text(found.planned),
                  share_text(found.planned, found.needed), to_text(found.bound),
                  counted(found.candidates, "block")));
  return section;
}

MemorySection candidates(const MemoryReport& report) {
  MemorySection section{
      .heading = "Best blocks to swap out", .before = {}, .table = {}, .after = {}};
  section.table.heading = {"bytes", "untouched", "copies",           "times",
                           "use",   "made by",   "last accessed by", "next accessed by"};
  section.table.left = {4, 5, 6, 7};
  const auto cut = [](const std::string& name) {
    constexpr std::size_t kShown = 36;
    return name.size() <= kShown ? name : name.substr(0, kShown - 3) + "...";
  };
  for (const SwapRow& row : report.intervals.best) {
    section.table.rows.push_back({to_text(row.bytes), to_text(row.interval), to_text(row.copies),
                                  grouped(row.times), std::string(to_string(row.use)),
                                  op_and_line(cut(row.op), row.line), cut(row.before),
                                  cut(row.after)});
  }
  return section;
}

MemorySection allocator(const MemoryReport& report) {
  MemorySection section{
      .heading = "Caching allocator, replayed", .before = {}, .table = {}, .after = {}};
  if (!report.allocator) return section;
  const ReplayedAllocator& found = *report.allocator;
  section.table.heading = {"", "highest", "when most is reserved"};
  const auto row = [&](const char* name, Bytes most, const std::string& then) {
    section.table.rows.push_back({name, to_text(most), then});
  };
  row("reserved", found.reserved, to_text(found.reserved));
  row("allocated", found.allocated, to_text(found.allocated_then));
  row("requested", found.requested, to_text(found.requested_then));
  row("active", found.active, "");
  row("inactive split", found.inactive_split, to_text(found.inactive_split_then));
  section.after.push_back(fmt::format(
      "{} of what is reserved is not allocated then (fragmentation); "
      "{} of cudaMalloc, {} of cudaFree{}",
      share_text(found.reserved - found.allocated_then, found.reserved),
      counted(found.driver_mallocs, "call"), grouped(found.driver_frees),
      found.retries > 0 ? fmt::format(", {} the cache was emptied", counted(found.retries, "time"))
                        : ""));
  if (found.recorded_reserved) {
    section.after.push_back(fmt::format(
        "recorded: {} reserved at most; the peak of the replay is off by {}",
        to_text(*found.recorded_reserved), change_text(*found.recorded_reserved, found.reserved)));
  }
  for (const ReplayedAllocator::Check& check : found.checks) {
    section.after.push_back(fmt::format(
        "replayed request by request, the cache {} at first: peaks {} allocated, {} reserved; "
        "on average {} reserved off over {}",
        check.start, to_percent(check.allocated_error, 2), to_percent(check.reserved_error, 2),
        to_text(Bytes{std::llround(check.mean_reserved_error)}), counted(check.events, "event")));
  }
  if (!found.settings.empty()) section.after.push_back("settings: " + found.settings);
  return section;
}

/// Returns a ratio such as "1.0132 times".
std::string times_text(Bytes taken, Bytes used) {
  if (used <= Bytes{}) return "-";
  return to_fixed(static_cast<double>(taken.count) / static_cast<double>(used.count), 4) + " times";
}

MemorySection pool(const MemoryReport& report) {
  MemorySection section{
      .heading = "If addresses were planned ahead", .before = {}, .table = {}, .after = {}};
  const PoolSection& found = report.pool;
  if (found.load <= Bytes{}) return section;
  section.before.push_back(fmt::format(
      "a pool of {} holds {}{}, {} their peak load (as SmartPool, arXiv 1903.06631)",
      to_text(found.footprint), counted(found.blocks, "block"),
      found.step.empty() ? "" : " of " + found.step, times_text(found.footprint, found.load)));
  if (found.by_load > 0)
    section.before.back() +=
        fmt::format("; the {} smallest of them only count with their load", grouped(found.by_load));
  if (report.allocator) {
    section.before.push_back(
        fmt::format("the caching allocator reserves {} what is allocated at the peak",
                    times_text(report.allocator->reserved, report.allocator->allocated)));
  }
  return section;
}

MemorySection summaries(const char* heading, const std::vector<MemorySummary>& all, bool ranks) {
  MemorySection section{.heading = heading, .before = {}, .table = {}, .after = {}};
  if (all.size() < 2) return section;
  section.table.heading = {ranks ? "rank" : "device", "allocated", "reserved", "", "name"};
  section.table.left = {0, 3, 4};
  for (const MemorySummary& row : all) {
    section.table.rows.push_back({std::to_string(ranks ? row.rank : row.device), to_text(row.peak),
                                  row.reserved ? to_text(*row.reserved) : "-",
                                  row.fits ? "" : "does not fit", row.name});
  }
  return section;
}

bool has_content(const MemorySection& section) {
  return !section.before.empty() || !section.table.rows.empty() || !section.after.empty();
}

}  // namespace

std::vector<MemorySection> memory_sections(const MemoryReport& report) {
  std::vector<MemorySection> all;
  all.push_back(summaries("Ranks", report.ranks, true));
  all.push_back(summaries("Devices", report.devices, false));
  all.push_back(occupation(report));
  all.push_back(phases(report));
  add_holders(report, "op", report.ops, all);
  add_holders(report, "source line", report.lines, all);
  add_holders(report, "module", report.modules, all);
  add_holders(report, "layer", report.layers, all);
  all.push_back(allocator(report));
  all.push_back(pool(report));
  all.push_back(lifetimes(report));
  all.push_back(growth(report));
  all.push_back(intervals(report));
  all.push_back(candidates(report));
  std::erase_if(all, [](const MemorySection& section) { return !has_content(section); });
  return all;
}

}  // namespace foretrace
