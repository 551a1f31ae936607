#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "analysis/memory/blocks.h"
#include "base/json_values.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json quantiles_json(const Quantiles& times) {
  return {{"least_ns", times.least.count()},
          {"p10_ns", times.tenth.count()},
          {"median_ns", times.median.count()},
          {"p90_ns", times.ninetieth.count()},
          {"most_ns", times.most.count()}};
}

Json by_use_json(const BytesByUse& bytes) {
  Json object = Json::object();
  for (std::size_t use = 0; use < kMemoryUses; ++use)
    object[std::string(to_string(static_cast<MemoryUse>(use))) + "_bytes"] = bytes[use].count;
  return object;
}

Json moment_json(const MemoryMoment& moment) {
  return {{"time_ns", moment.time.count()},
          {"step", moment.step},
          {"in_step_ns", moment.in_step.count()},
          {"phase", to_string(moment.phase)},
          {"op", moment.op},
          {"line", moment.line},
          {"block_bytes", moment.bytes.count}};
}

Json uses_json(const MemoryReport& report) {
  Json all = Json::array();
  for (const UseRow& row : report.uses) {
    all.push_back({{"use", to_string(row.use)},
                   {"at_peak_bytes", row.at_peak.count},
                   {"average_bytes", row.average.count},
                   {"most_bytes", row.most.count},
                   {"blocks_at_peak", row.blocks_at_peak}});
  }
  return all;
}

Json phases_json(const MemoryReport& report) {
  Json all = Json::array();
  for (const PhaseRow& row : report.phases) {
    all.push_back({{"phase", to_string(row.phase)},
                   {"time_ns", row.time.count()},
                   {"most_bytes", row.most.count},
                   {"average_bytes", row.average.count},
                   {"average_by_use", by_use_json(row.average_by_use)}});
  }
  return all;
}

Json holders_json(const std::vector<RequesterRow>& rows) {
  Json all = Json::array();
  for (const RequesterRow& row : rows) {
    all.push_back({{"name", row.name},
                   {"bytes", row.bytes.count},
                   {"blocks", row.blocks},
                   {"median_lifetime_ns", row.lifetime.count()}});
  }
  return all;
}

Json lifetimes_json(const LifetimeSection& section) {
  Json bins = Json::array();
  for (const TimeBin& bin : section.bins) {
    bins.push_back(
        {{"from_ns", bin.from.count()}, {"count", bin.count}, {"bytes", bin.bytes.count}});
  }
  return {{"blocks", section.blocks},
          {"bytes", section.bytes.count},
          {"inside_op", section.inside_op},
          {"inside_op_bytes", section.inside_op_bytes.count},
          {"left", section.left},
          {"left_bytes", section.left_bytes.count},
          {"was_there", section.was_there},
          {"was_there_bytes", section.was_there_bytes.count},
          {"times", quantiles_json(section.times)},
          {"histogram", std::move(bins)}};
}

Json growth_json(const GrowthSection& section) {
  Json starts = Json::array(), candidates = Json::array();
  for (const auto& start : section.starts)
    starts.push_back({{"step", start.step}, {"allocated_bytes", start.allocated.count}});
  for (const LeakRow& row : section.candidates) {
    candidates.push_back({{"op", row.op},
                          {"line", row.line},
                          {"blocks", row.blocks},
                          {"steps", row.steps},
                          {"per_step_bytes", row.per_step.count}});
  }
  Json object = {{"step_starts", std::move(starts)}, {"candidates", std::move(candidates)}};
  object["per_step_bytes"] = section.per_step;
  return object;
}

Json intervals_json(const IntervalSection& section) {
  Json bins = Json::array(), best = Json::array();
  for (const TimeBin& bin : section.bins) {
    bins.push_back({{"from_ns", bin.from.count()},
                    {"count", bin.count},
                    {"bytes", bin.bytes.count},
                    {"hideable", bin.hideable}});
  }
  for (const SwapRow& row : section.best) {
    best.push_back({{"bytes", row.bytes.count},
                    {"interval_ns", row.interval.count()},
                    {"copies_ns", row.copies.count()},
                    {"times", row.times},
                    {"use", to_string(row.use)},
                    {"op", row.op},
                    {"line", row.line},
                    {"before", row.before},
                    {"after", row.after}});
  }
  return {{"known", section.known},
          {"accesses", section.accesses},
          {"intervals", section.intervals},
          {"hideable", section.hideable},
          {"out_bytes_per_second", section.out.bytes_per_second},
          {"in_bytes_per_second", section.in.bytes_per_second},
          {"times", quantiles_json(section.times)},
          {"largest_hideable",
           {{"median_bytes", swappable(section.times.median, section.out, section.in).count},
            {"p90_bytes", swappable(section.times.ninetieth, section.out, section.in).count},
            {"most_bytes", swappable(section.times.most, section.out, section.in).count}}},
          {"histogram", std::move(bins)},
          {"candidates", section.candidates},
          {"best", std::move(best)},
          {"needed_peak_bytes", section.needed.count},
          {"peak_if_all_were_away_bytes", section.bound.count},
          {"peak_with_serial_copies_bytes", section.planned.count},
          {"moved", section.moved},
          {"moved_bytes", section.moved_bytes.count}};
}

/// Returns reserved bytes per byte in use; 1 if none is in use.
double part_of(Bytes taken, Bytes used) {
  return used > Bytes{} ? static_cast<double>(taken.count) / static_cast<double>(used.count) : 1;
}

Json pool_json(const MemoryReport& report) {
  const PoolSection& pool = report.pool;
  Json object = {{"step", pool.step},
                 {"blocks", pool.blocks},
                 {"blocks_by_load", pool.by_load},
                 {"peak_load_bytes", pool.load.count},
                 {"footprint_bytes", pool.footprint.count},
                 {"ratio", part_of(pool.footprint, pool.load)},
                 {"allocator_ratio", Json()}};
  if (report.allocator)
    object["allocator_ratio"] = part_of(report.allocator->reserved, report.allocator->allocated);
  return object;
}

Json period_json(const PeriodSection& section) {
  return {{"repeats", section.repeats},
          {"first", section.first},
          {"blocks", section.blocks},
          {"iterations", section.iterations},
          {"first_irregular", section.first_irregular}};
}

Json allocator_json(const ReplayedAllocator& allocator) {
  Json object = {{"settings", allocator.settings},
                 {"peak_allocated_bytes", allocator.allocated.count},
                 {"peak_active_bytes", allocator.active.count},
                 {"peak_requested_bytes", allocator.requested.count},
                 {"peak_reserved_bytes", allocator.reserved.count},
                 {"peak_inactive_split_bytes", allocator.inactive_split.count},
                 {"reserved_peak",
                  {{"time_ns", allocator.reserved_time.count()},
                   {"allocated_bytes", allocator.allocated_then.count},
                   {"requested_bytes", allocator.requested_then.count},
                   {"inactive_split_bytes", allocator.inactive_split_then.count}}},
                 {"driver_mallocs", allocator.driver_mallocs},
                 {"driver_frees", allocator.driver_frees},
                 {"retries", allocator.retries},
                 {"out_of_memory", nullptr}};
  const auto known = [&](const char* key, const std::optional<Bytes>& bytes) {
    object[key] = bytes;
  };
  known("recorded_peak_reserved_bytes", allocator.recorded_reserved);
  known("recorded_peak_allocated_bytes", allocator.recorded_allocated);
  Json checks = Json::array();
  for (const ReplayedAllocator::Check& check : allocator.checks) {
    checks.push_back({{"start", check.start},
                      {"events", check.events},
                      {"peak_allocated_error", check.allocated_error},
                      {"peak_reserved_error", check.reserved_error},
                      {"mean_reserved_error_bytes", std::llround(check.mean_reserved_error)},
                      {"most_reserved_error_bytes", check.most_reserved_error.count}});
  }
  object["checks"] = std::move(checks);
  if (!allocator.refused) return object;
  Json refused = moment_json(allocator.refused->moment);
  refused["requested_bytes"] = allocator.refused->moment.bytes.count;
  refused.erase("block_bytes");
  refused["allocated_bytes"] = allocator.refused->allocated.count;
  refused["reserved_bytes"] = allocator.refused->reserved.count;
  refused["segment_bytes"] = allocator.refused->segment.count;
  refused["largest_free_bytes"] = allocator.refused->largest_free.count;
  object["out_of_memory"] = std::move(refused);
  return object;
}

Json summaries_json(const std::vector<MemorySummary>& rows) {
  Json all = Json::array();
  for (const MemorySummary& row : rows) {
    Json object = {{"rank", row.rank},
                   {"device", row.device},
                   {"name", row.name},
                   {"peak_allocated_bytes", row.peak.count},
                   {"fits", row.fits}};
    object["peak_reserved_bytes"] = row.reserved;
    all.push_back(std::move(object));
  }
  return all;
}

/// Writes the task that made or freed a block; empty if that was not recorded.
void write_task(const Graph& graph, TaskId task, std::ostream& out) {
  out << ',';
  if (task != kNoTask) out << csv_text(graph.name(task));
}

void write_maker(const Graph& graph, const Allocation& block, std::ostream& out) {
  out << ',';
  if (block.made_by == kNoTask) {
    out << ",,,";
    return;
  }
  const Task& task = graph.task(block.made_by);
  const auto step = static_cast<std::size_t>(task.step);
  if (task.step >= 0 && step < graph.steps().size()) out << csv_text(graph.steps()[step].name);
  out << ',' << to_string(task.phase) << ',' << csv_text(graph.names()[task.module]) << ',';
  if (task.layer >= 0) out << task.layer;
}

}  // namespace

nlohmann::json to_json(const MemoryReport& report) {
  Json object = {{"schema", "foretrace.memory/1"},
                 {"tool", {{"version", kVersion}}},
                 {"trace", report.trace},
                 {"rank", report.rank},
                 {"device", report.device},
                 {"device_name", report.device_name},
                 {"capacity_bytes", report.capacity.count},
                 {"limit_bytes", report.limit.count},
                 {"has_times", report.has_times},
                 {"fits", fits(report)},
                 {"window",
                  {{"from_ns", report.from.count()},
                   {"to_ns", report.to.count()},
                   {"step", report.step},
                   {"blocks", report.blocks},
                   {"events", report.events}}},
                 {"at_begin_bytes", report.at_begin.count},
                 {"unnamed_bytes", report.unnamed.count},
                 {"peak_allocated_bytes", report.peak.count},
                 {"average_allocated_bytes", report.average.count},
                 {"peak", moment_json(report.peak_moment)},
                 {"uses", uses_json(report)},
                 {"phases", phases_json(report)},
                 {"holders_at_peak",
                  {{"ops", holders_json(report.ops)},
                   {"lines", holders_json(report.lines)},
                   {"modules", holders_json(report.modules)},
                   {"layers", holders_json(report.layers)}}},
                 {"lifetimes", lifetimes_json(report.lifetimes)},
                 {"growth", growth_json(report.growth)},
                 {"intervals", intervals_json(report.intervals)},
                 {"pool", pool_json(report)},
                 {"devices", summaries_json(report.devices)},
                 {"ranks", summaries_json(report.ranks)},
                 {"assumptions", report.assumptions},
                 {"notes", notes_json(report.notes)}};
  object["period"] = report.period ? period_json(*report.period) : Json();
  object["allocator"] = report.allocator ? allocator_json(*report.allocator) : Json();
  return object;
}

void write_csv(const MemoryReport& report, const Graph& graph, std::ostream& out) {
  out << "block,device,bytes,requested_bytes,use,made_ns,freed_ns,lifetime_ns,was_there,is_left,"
         "accesses,step,phase,module,layer,op,stack,made_by,freed_by\n";
  const AccessLists accesses(graph);
  for (const TimedBlock& timed : report.timed_blocks) {
    const Allocation& block = graph.allocations()[timed.allocation];
    out << timed.allocation << ',' << block.device << ',' << block.bytes.count << ',';
    if (block.requested > Bytes{}) out << block.requested.count;
    out << ',' << to_string(block.use) << ',' << timed.made.count() << ',' << timed.freed.count()
        << ',' << (timed.freed - timed.made).count() << ',' << timed.was_there << ','
        << timed.is_left << ',' << accesses.of(timed.allocation).size();
    write_maker(graph, block, out);
    out << ',' << csv_text(graph.names()[block.op]) << ',' << csv_text(graph.names()[block.stack]);
    write_task(graph, block.made_by, out);
    write_task(graph, block.freed_by, out);
    out << '\n';
  }
}

}  // namespace foretrace
