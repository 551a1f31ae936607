// Reads recordings of our own collector. All chunks are read twice: first the names, then the
// records.

#include <cstring>
#include <fmt/core.h>
#include <limits>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/spool/spool_records.h"

namespace foretrace {

namespace {

std::int32_t number_of(const std::unordered_map<std::string, std::string>& facts,
                       const std::string& key, std::int32_t otherwise) {
  const auto found = facts.find(key);
  if (found == facts.end()) return otherwise;
  return parse_number<std::int32_t>(found->second).value_or(otherwise);
}

void write_facts(const SpoolIndex& index, const spool::Header& header, Trace& trace) {
  const std::int32_t rank = number_of(index.facts, "rank", -1);
  const std::int32_t world = number_of(index.facts, "world_size", -1);
  if (rank >= 0 && world > rank) {
    trace.rank = rank;
    trace.world_size = world;
    trace.rank_is_known = true;
    trace.metadata["distributedInfo"] =
        fmt::format("{{\"rank\":{},\"world_size\":{}}}", rank, world);
  }
  for (const auto& [key, value] : index.facts) trace.metadata[key] = json_string(value);
  trace.metadata["process"] = std::to_string(header.process);
  trace.metadata["cupti_version"] = std::to_string(header.cupti_version);
}

void write_notes(const SpoolIndex& index, const SpoolRecords& records, const spool::Header& header,
                 Notes& notes) {
  const SpoolFile::Damage& damage = index.damage;
  const auto warn = [&](std::string_view text, std::uint64_t count, const std::string& example) {
    // The counters of a damaged header can have any value.
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    if (count != 0)
      notes.add(Severity::warning, text, example, static_cast<std::int64_t>(std::min(count, kMax)));
  };
  const auto tell = [&](std::string_view text, std::int64_t count) {
    if (count != 0) notes.add(Severity::info, text, {}, count);
  };
  for (const std::string& problem : index.problems)
    notes.add(Severity::warning, "problems of the recording", problem);
  for (const std::string& kind : index.not_recorded)
    notes.add(Severity::warning, "kinds of records that CUPTI refused", kind);
  warn("records that CUPTI dropped for lack of buffers", header.dropped_by_cupti, {});
  warn("records discarded unread for lack of memory", header.discarded_records, {});
  warn("records that could not be written", header.lost_on_disk,
       header.disk_error == 0 ? "" : std::strerror(static_cast<int>(header.disk_error)));
  warn("kernels and copies without times, left out", header.untimed, {});
  if (header.unknown_records != 0)
    tell("records of unknown kinds", static_cast<std::int64_t>(header.unknown_records));
  const std::string place =
      damage.first_at < 0 ? std::string() : "at byte " + std::to_string(damage.first_at);
  // A recording that was cut off may end within a chunk; one that ended properly may not.
  const bool cut = damage.ends_in_a_chunk && header.state == spool::State::finished;
  const std::int64_t damaged = damage.chunks + (cut ? 1 : 0);
  warn("damaged parts of the spool, left out", static_cast<std::uint64_t>(damaged),
       place + (damage.rows == 0 ? "" : fmt::format(", {} records", damage.rows)));
  // The collector writes the header after the rows that it counts, so missing rows were lost later.
  const std::uint64_t found = index.rows + static_cast<std::uint64_t>(damage.rows);
  warn("records that were written but are missing: the spool is cut off or damaged",
       header.rows > found ? header.rows - found : 0, {});
  if (header.state == spool::State::recording)
    tell("the program did not end the recording properly: up to a second is missing", 1);
  warn("names that were lost", static_cast<std::uint64_t>(index.lost_names), {});
  warn("strings that are not valid UTF-8", static_cast<std::uint64_t>(index.invalid_texts), {});
  warn("records that end before they start, read as 0 long",
       static_cast<std::uint64_t>(records.backwards), {});
  warn("parts of the spool with records of unknown kinds",
       static_cast<std::uint64_t>(records.odd_rows), {});
  tell("ranges without an end, ended with the recording", records.ranges.open_ranges);
  tell("steps without an end, left out", records.ranges.open_steps);
  tell("ends of ranges that began before the recording", records.ranges.stray_ends);
}

Trace read_recording(const SpoolFile& file) {
  Trace trace;
  trace.format = "collect";
  SpoolIndex index(file, trace);
  SpoolJoins joins;
  SpoolRecords records(index, file.header().process, trace, joins);
  file.each_chunk([&](const SpoolFile::Chunk& chunk) {
    if (chunk.kind == spool::ChunkKind::rows) records.take(chunk.body);
  });
  records.finish();
  join_calls(joins, index, trace);
  resolve_events(joins, index, trace);
  join_graphs(joins, trace);
  make_times_relative(trace, index.base_ns());
  describe_collectives(joins, index, trace);
  write_facts(index, file.header(), trace);
  index.finish();
  write_notes(index, records, file.header(), trace.notes);
  return trace;
}

}  // namespace

bool recognizes_spool(const Sniffed& file) {
  return file.head.substr(0, spool::kMagic.size()) ==
         std::string_view(spool::kMagic.data(), spool::kMagic.size());
}

Trace read_spool(const TraceFile& input) {
  return within(input.path(), [&] { return read_recording(SpoolFile(input)); });
}

}  // namespace foretrace
