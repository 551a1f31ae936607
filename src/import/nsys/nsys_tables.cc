#include "import/nsys/nsys_tables.h"

#include <algorithm>

#include "import/common/cuda_words.h"
#include "import/common/times.h"
#include "import/scan/json_scan.h"

namespace foretrace {

namespace {

/// The difference of times further from 0 could overflow 64 bits.
constexpr std::int64_t kMaxNsysTime = 2'000'000'000'000'000'000;

struct NsysOddityNote {
  Severity severity;
  std::string_view text;
};

constexpr NsysOddityNote kNsysOddityNotes[] = {
    {Severity::warning, "rows whose times are impossible, left out"},
    {Severity::warning, "rows that end before they start, read as 0 long"},
    {Severity::warning, "NVTX ranges without an end, left out"},
    {Severity::warning, "rows without a name"},
    {Severity::warning, "strings that are not valid UTF-8"},
    {Severity::info, "NVTX events of kinds that a trace has no place for"},
    {Severity::info,
     "waits whose type differs from that of the call; the type of the call is used"},
    {Severity::warning, "rows with a negative number of bytes, read as 0"},
};
static_assert(std::size(kNsysOddityNotes) == static_cast<std::size_t>(NsysOddity::count));

}  // namespace

NsysStrings::NsysStrings(const SqliteFile& file, Names& names) : names_(names), intern_(names) {
  SqliteRows rows(file, "StringIds", {"id", "value"});
  while (rows.next()) {
    entries_.try_emplace(rows.integer(0), Entry{.text = std::string(rows.text(1))});
  }
}

std::string_view NsysStrings::text(std::int64_t id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::string_view() : found->second.text;
}

NameId NsysStrings::name(std::int64_t id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  if (entry.name == NameId{}) entry.name = intern(entry.text);
  return entry.name;
}

NameId NsysStrings::call(std::int64_t id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  if (entry.call == NameId{}) entry.call = intern(without_version(entry.text));
  return entry.call;
}

NameId NsysStrings::intern(std::string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  if (ascii) return intern_.intern(text);
  return names_.intern(valid_text(text, invalid_));
}

NsysTables::NsysTables(const SqliteFile& database, const NsysProcesses& all, const NsysProcess& one,
                       Trace& target)
    : file(database),
      processes(all),
      process(one),
      trace(target),
      strings(database, trace.names),
      lanes(trace),
      launches(trace) {}

bool NsysTables::is_mine(const SqliteRows& row, int column) const {
  if (!processes.rows_name_process) return true;
  if (!row.has(column)) return processes.all.size() == 1;
  return (row.integer(column) & ~std::int64_t{0xffffff}) == process.global;
}

bool NsysTables::take_times(const SqliteRows& row, int start, int end, Times& times) {
  times.start = row.integer(start);
  const std::int64_t finish = row.integer(end, times.start);
  const auto possible = [](std::int64_t time) {
    return time >= -kMaxNsysTime && time <= kMaxNsysTime;
  };
  if (!row.has(start) || !possible(times.start) || !possible(finish)) {
    count(NsysOddity::bad_time, "row " + std::to_string(row.number()));
    return false;
  }
  times.duration = finish - times.start;
  if (times.duration < 0) {
    count(NsysOddity::negative_duration, "row " + std::to_string(row.number()));
    times.duration = 0;
  }
  times.duration = std::min(times.duration, kMaxDuration);
  return true;
}

std::uint16_t NsysTables::thread(const SqliteRows& row, int column) {
  const std::int64_t global = row.integer(column, process.global);
  return lanes.thread((global >> 24) & 0xffffff, global & 0xffffff);
}

std::uint16_t NsysTables::stream(const SqliteRows& row, int device, int stream) {
  return lanes.stream(row.integer(device), row.integer(stream));
}

std::int64_t NsysTables::device_of_context(std::int64_t context, std::int64_t recorded) const {
  const auto found = devices_of_contexts.find(context);
  return found == devices_of_contexts.end() ? recorded : found->second;
}

std::int64_t NsysTables::take_bytes(const SqliteRows& row, int column, std::string_view place) {
  const std::int64_t bytes = row.integer(column);
  if (bytes < 0)
    count(NsysOddity::negative_bytes, std::string(place) + std::to_string(row.number()));
  return std::max<std::int64_t>(bytes, 0);
}

void NsysTables::name_thread(std::int64_t global, std::string_view name) {
  lanes.name_thread((global >> 24) & 0xffffff, global & 0xffffff, name);
}

void NsysTables::count(NsysOddity oddity, const std::string& example) {
  auto& [count, first] = odd_[static_cast<std::size_t>(oddity)];
  if (count++ == 0) first = example;
}

void NsysTables::write_notes() {
  odd_[static_cast<std::size_t>(NsysOddity::invalid_text)].first = strings.invalid();
  for (std::size_t i = 0; i < odd_.size(); ++i) {
    const auto& [count, example] = odd_[i];
    if (count == 0) continue;
    trace.notes.add(kNsysOddityNotes[i].severity, kNsysOddityNotes[i].text, example, count);
  }
}

}  // namespace foretrace
