// Reads the database of rocprofiler-sdk. The row of an activity has its start, end, thread, agent
// and queue. Since version 4 of the schema it has ids instead, which refer to a table of times and
// a table of tracks. Rows with the same stack_id in their event belong together: it is the
// profiler's correlation id.

#include <algorithm>

#include "import/amd/rocpd.h"
#include "import/common/cuda_words.h"

namespace foretrace {

namespace {

struct Track {
  std::int64_t process = 0, thread = 0, agent = 0, queue = 0, stream = -1;
};

struct Event {
  std::uint32_t correlation = 0;
  NameId category{};
};

/// The columns with the time and place of an activity; every table of activities has some of them.
constexpr std::string_view kWhere[] = {"start",    "end",       "start_id", "end_id",
                                       "track_id", "pid",       "tid",      "agent_id",
                                       "queue_id", "stream_id", "event_id"};
constexpr int kWhereCount = 11;

class SdkReader {
 public:
  SdkReader(const SqliteFile& file, const std::string& guid, Trace& trace)
      : file_(file),
        guid_(guid),
        trace_(trace),
        records_(trace),
        strings_(file, table("rocpd_string"), trace.names) {}

  void read() {
    read_numbers("rocpd_info_process", "pid", processes_);
    read_numbers("rocpd_info_thread", "tid", threads_);
    read_numbers("rocpd_timestamp", "value", times_);
    read_agents();
    read_symbols();
    read_tracks();
    read_events();
    read_kernels();
    read_copies();
    read_regions();
    read_allocations();
    records_.finish();
  }

 private:
  std::string table(std::string_view name) const { return std::string(name) + guid_; }
  /// Selects the columns of kWhere, followed by `more`.
  SqliteRows rows(std::string_view name, std::initializer_list<std::string_view> more) const {
    std::vector<std::string_view> columns(std::begin(kWhere), std::end(kWhere));
    columns.insert(columns.end(), more);
    return {file_, table(name), columns};
  }
  AmdTimes times(const SqliteRows& row) const;
  Track track(const SqliteRows& row) const;
  Event event(const SqliteRows& row) const;

  using Numbers = std::unordered_map<std::int64_t, std::int64_t>;
  void read_numbers(std::string_view name, std::string_view column, Numbers& numbers) const;
  /// Returns the value with this id, or the id itself if there is none.
  static std::int64_t at(const Numbers& numbers, std::int64_t id) {
    const auto found = numbers.find(id);
    return found == numbers.end() ? id : found->second;
  }

  void read_agents();
  void read_symbols();
  void read_tracks();
  void read_events();
  void read_kernels();
  void read_copies();
  void read_regions();
  void read_allocations();

  const SqliteFile& file_;
  const std::string guid_;
  Trace& trace_;
  AmdRecords records_;
  RocpdStrings strings_;
  Numbers processes_, threads_, times_;
  std::unordered_map<std::int64_t, NameId> symbols_;
  std::unordered_map<std::int64_t, Track> tracks_;
  std::unordered_map<std::int64_t, Event> events_;
};

void SdkReader::read_numbers(std::string_view name, std::string_view column,
                             Numbers& numbers) const {
  SqliteRows row(file_, table(name), {"id", column});
  while (row.next()) {
    if (row.has(1)) numbers[row.integer(0)] = row.integer(1);
  }
}

void SdkReader::read_agents() {
  SqliteRows row(file_, table("rocpd_info_agent"),
                 {"id", "type", "product_name", "user_name", "model_name", "name"});
  while (row.next()) {
    Device device;
    for (int column = 2; column <= 5 && device.name.empty(); ++column)
      device.name = trace_.names[intern_text(row.text(column), trace_.names)];
    records_.add_agent(row.integer(0), row.text(1) == "GPU", std::move(device));
  }
}

void SdkReader::read_symbols() {
  SqliteRows row(file_, table("rocpd_info_kernel_symbol"), {"id", "display_name", "kernel_name"});
  while (row.next()) {
    const bool shown = !row.text(1).empty();
    symbols_[row.integer(0)] = intern_text(row.text(shown ? 1 : 2), trace_.names);
  }
}

void SdkReader::read_tracks() {
  SqliteRows row(file_, table("rocpd_track"),
                 {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"});
  while (row.next()) {
    tracks_[row.integer(0)] = {.process = row.integer(1),
                               .thread = row.integer(2),
                               .agent = row.integer(3),
                               .queue = row.integer(4),
                               .stream = row.integer(5, -1)};
  }
}

void SdkReader::read_events() {
  SqliteRows row(file_, table("rocpd_event"), {"id", "stack_id", "category_id"});
  while (row.next()) {
    const std::int64_t stack = row.integer(1);
    events_[row.integer(0)] = {.correlation = stack > 0 ? static_cast<std::uint32_t>(stack) : 0,
                               .category = strings_[row.integer(2)]};
  }
}

AmdTimes SdkReader::times(const SqliteRows& row) const {
  if (row.has(0) || row.has(1)) return {row.integer(0, -1), row.integer(1, -1)};
  const auto begin = times_.find(row.integer(2)), end = times_.find(row.integer(3));
  if (begin == times_.end() || end == times_.end()) return {-1, -1};
  return {begin->second, end->second};
}

Track SdkReader::track(const SqliteRows& row) const {
  Track track;
  const auto found = row.has(4) ? tracks_.find(row.integer(4)) : tracks_.end();
  if (found != tracks_.end()) track = found->second;
  const auto take = [&](int column, std::int64_t& to) {
    if (row.has(column)) to = row.integer(column);
  };
  take(5, track.process);
  take(6, track.thread);
  take(7, track.agent);
  take(8, track.queue);
  take(9, track.stream);
  return track;
}

Event SdkReader::event(const SqliteRows& row) const {
  const auto found = events_.find(row.integer(10));
  return found == events_.end() ? Event{} : found->second;
}

void SdkReader::read_kernels() {
  SqliteRows row = rows("rocpd_kernel_dispatch",
                        {"kernel_id", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
                         "grid_size_x", "grid_size_y", "grid_size_z"});
  std::int64_t nameless = 0;
  while (row.next()) {
    DeviceRecord kernel;
    const Track where = track(row);
    kernel.correlation = event(row).correlation;
    const auto symbol = symbols_.find(row.integer(kWhereCount));
    if (symbol == symbols_.end()) ++nameless;
    kernel.name = symbol != symbols_.end()
                      ? symbol->second
                      : trace_.names.intern("kernel " + std::to_string(row.integer(kWhereCount)));
    LaunchShapes::Sizes group, blocks;
    for (std::size_t i = 0; i < 3; ++i) {
      const int column = kWhereCount + 1 + static_cast<int>(i);
      group[i] = std::max<std::int64_t>(row.integer(column), 0);
      // The grid is given in work-items, not in blocks.
      const std::int64_t items =
          std::clamp<std::int64_t>(row.integer(column + 3), 0, std::int64_t{1} << 40);
      blocks[i] = group[i] == 0 ? 0 : items / group[i] + (items % group[i] != 0 ? 1 : 0);
    }
    records_.launches.set(kernel, blocks, group);
    kernel.stream = records_.stream(std::max(records_.agent(where.agent).ordinal, 0),
                                    where.stream >= 0 ? where.stream : where.queue);
    records_.add_device(kernel, times(row));
  }
  if (nameless > 0) {
    trace_.notes.add(Severity::warning, "kernels whose symbol is not in the file", {}, nameless);
  }
}

void SdkReader::read_copies() {
  SqliteRows row = rows("rocpd_memory_copy", {"name_id", "dst_agent_id", "src_agent_id", "size"});
  while (row.next()) {
    DeviceRecord copy;
    copy.kind = DeviceKind::copy;
    const Track where = track(row);
    copy.correlation = event(row).correlation;
    copy.name = strings_[row.integer(kWhereCount)];
    const std::int64_t to = row.integer(kWhereCount + 1), from = row.integer(kWhereCount + 2);
    copy.bytes = row.integer(kWhereCount + 3);
    copy.direction = records_.direction(from, to);
    copy.stream = records_.stream(records_.device_of_copy(from, to),
                                  where.stream >= 0 ? where.stream : where.queue);
    records_.add_device(copy, times(row));
  }
}

void SdkReader::read_regions() {
  SqliteRows row = rows("rocpd_region", {"name_id"});
  while (row.next()) {
    HostRecord call;
    const Track where = track(row);
    const Event tie = event(row);
    call.name = strings_[row.integer(kWhereCount)];
    call.kind = kind_of_domain(trace_.names[tie.category]);
    if (call.kind != HostKind::annotation) call.correlation = tie.correlation;
    call.thread = records_.thread(at(processes_, where.process), at(threads_, where.thread));
    records_.add_host(call, times(row));
  }
}

void SdkReader::read_allocations() {
  SqliteRows row = rows("rocpd_memory_allocate", {"type", "size", "address"});
  while (row.next()) {
    MemoryRecord memory;
    const Track where = track(row);
    const AmdAgent agent = records_.agent(where.agent);
    memory.device = static_cast<std::int16_t>(agent.is_gpu ? agent.ordinal : -1);
    memory.thread = records_.thread(at(processes_, where.process), at(threads_, where.thread));
    const bool frees = row.text(kWhereCount) == "FREE";
    memory.bytes = std::max<std::int64_t>(row.integer(kWhereCount + 1), 0);
    memory.address = static_cast<std::uint64_t>(row.integer(kWhereCount + 2));
    const std::int64_t time = times(row).start;
    frees ? records_.add_free(memory, time) : records_.add_allocation(memory, time);
  }
}

}  // namespace

void read_rocpd(const SqliteFile& file, const std::string& guid, Trace& trace) {
  SdkReader(file, guid, trace).read();
}

}  // namespace foretrace
