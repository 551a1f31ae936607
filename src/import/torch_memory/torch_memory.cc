// Reads a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot): a pickle, or the same data
// as JSON, with
//
//     segments       the memory of each device that the caching allocator holds, split into blocks
//     device_traces  the history: one list of events for each device
//
// An event becomes a MemoryRecord with the size in the event: the requested size in newer versions,
// the rounded size in old ones. The allocator counts whole blocks, so the levels after each event
// come from a replay of its rules (torch_memory_levels.cc). An out-of-memory event has the free
// bytes of the device; its record stores them as `address`.

#include "import/torch_memory/torch_memory.h"

#include <fmt/core.h>

#include "base/contains.h"
#include "foretrace/error.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

constexpr std::size_t kLongestSnapshotMetadata = 64 * 1024;
constexpr std::int64_t kMaxMicroseconds = 4'000'000'000'000'000;

bool is_json_snapshot(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || (head[start] != '{' && head[start] != '[')) return false;
  if (contains(head, "\"traceEvents\"")) return false;
  return contains_any(head, {"\"device_traces\""}) ||
         (contains_any(head, {"\"total_size\""}) &&
          contains_any(head, {"\"segments\"", "\"segment_type\""}));
}

}  // namespace

bool recognizes_torch_memory(const Sniffed& file) {
  // Accepts any pickle: only reading it shows whether it is a snapshot.
  return begins_pickle(file.head) || is_json_snapshot(file.head);
}

Trace read_torch_memory(const TraceFile& input) {
  const auto source = input.open();
  return within(input.path(), [&] {
    const bool is_pickle = begins_pickle(source->peek(16));
    std::string bytes = read_whole(*source);
    const std::size_t size = bytes.size();
    const PlainData data =
        is_pickle ? read_pickle(std::move(bytes)) : read_plain_json(std::move(bytes));
    return SnapshotReader(data, size).read();
  });
}

Trace SnapshotReader::read() {
  trace_.format = "torch_memory";
  trace_.tick_ns = 1000;
  // In versions without histories, the whole snapshot is the list of segments.
  const bool is_bare = data_.root.is_list();
  const PlainValue segments = is_bare ? data_.root : data_.find(data_.root, "segments");
  const PlainValue traces = data_.find(data_.root, "device_traces");
  const auto first = data_.items(is_bare ? segments : PlainValue{});
  if ((!segments.is_list() && !traces.is_list()) ||
      (is_bare && !first.empty() && data_.find(first[0], "total_size").is_none())) {
    throw TraceError(
        "must be a memory snapshot of PyTorch, a dict with \"segments\" and \"device_traces\", but "
        "is something else");
  }
  rules_ = read_rules(data_, data_.find(data_.root, "allocator_settings"));
  read_segments(segments);
  read_histories(traces);
  read_annotations(data_.find(data_.root, "external_annotations"));
  for (std::size_t i = 0; !is_bare && i + 1 < data_.items(data_.root).size(); i += 2)
    read_metadata(data_.items(data_.root)[i], data_.items(data_.root)[i + 1]);
  if (trace_.memory.empty() && trace_.segments.empty())
    throw TraceError("must contain segments or events of an allocator, but is an empty snapshot");
  if (trace_.threads.empty()) trace_.threads.push_back({});
  normalize_times();
  fill_all_levels();
  write_notes();
  return std::move(trace_);
}

std::int64_t SnapshotReader::integer(PlainValue dict, std::string_view key,
                                     std::int64_t otherwise) const {
  return data_.integer(data_.find(dict, key)).value_or(otherwise);
}

std::uint32_t SnapshotReader::stream(std::int32_t device, std::int64_t id) {
  const auto next = static_cast<std::uint32_t>(trace_.streams.size());
  const auto [found, is_new] = streams_.try_emplace({device, id}, next);
  if (is_new) trace_.streams.push_back({.device = device, .id = id});
  return found->second;
}

void SnapshotReader::count(Oddity oddity, const std::string& example) {
  auto& [times, first] = odd_[static_cast<std::size_t>(oddity)];
  if (times++ == 0) first = example;
}

/// Whether `list` is a list that has not been read before. A pickle can refer to one list many
/// times; reading it each time would multiply the contents of the file.
bool SnapshotReader::is_new_list(PlainValue list, const std::string& example) {
  if (!list.is_list()) return false;
  const bool is_new = lists_.insert(list.index()).second;
  if (!is_new) count(Oddity::shared, example);
  return is_new;
}

/// Reads the other metadata of a snapshot, if it is not too long.
void SnapshotReader::read_metadata(PlainValue key, PlainValue value) {
  const std::string_view name = data_.text(key);
  if (name.empty() || name == "segments" || name == "device_traces" ||
      name == "external_annotations")
    return;
  const std::string shown = to_json_text(data_, key, 256);
  const std::string text = to_json_text(data_, value, kLongestSnapshotMetadata);
  if (shown.size() > 2 && !text.empty() && trace_.metadata.size() < 64)
    trace_.metadata[shown.substr(1, shown.size() - 2)] = text;
}

void SnapshotReader::read_annotations(PlainValue annotations) {
  if (annotations.is_none() || !is_new_list(annotations, "external_annotations")) return;
  std::size_t at = 0;
  for (const PlainValue annotation : data_.items(annotations))
    read_annotation(annotation, fmt::format("external_annotations[{}]", at++));
  for (const OpenAnnotation& open : open_)
    count(Oddity::unpaired, std::string(trace_.names[open.name]));
}

/// Reads the beginning or the end of a range. An end closes the last open range of its name and
/// thread.
void SnapshotReader::read_annotation(PlainValue annotation, const std::string& place) {
  std::int64_t time_ns = 0;
  const std::string_view stage = data_.text(data_.find(annotation, "stage"));
  if (!annotation.is_dict() || !read_time(annotation, time_ns, place) ||
      (stage != "START" && stage != "END"))
    return count(Oddity::unpaired, place);
  const std::int64_t device = integer(annotation, "device", 0);
  if (device < -1 || device > INT16_MAX) return count(Oddity::bad_device, place);
  const OpenAnnotation started{time_ns, thread(static_cast<std::int32_t>(device)),
                               text(annotation, "name")};
  if (stage == "START") return open_.push_back(started);
  // The search is bounded, so that each of many ends without a beginning takes little time.
  constexpr std::size_t kMaxOpen = 256;
  const std::size_t least = open_.size() > kMaxOpen ? open_.size() - kMaxOpen : 0;
  for (std::size_t i = open_.size(); i-- > least;) {
    const OpenAnnotation& open = open_[i];
    if (open.name != started.name || open.thread != started.thread || open.start_ns > time_ns)
      continue;
    HostRecord record;
    record.kind = HostKind::annotation;
    record.name = open.name;
    record.thread = open.thread;
    record.start_ns = open.start_ns;
    record.duration_ns = time_ns - open.start_ns;
    trace_.hosts.push_back(record);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  count(Oddity::unpaired, place);
}

NameId SnapshotReader::text(PlainValue dict, std::string_view key) {
  constexpr std::size_t kMax = 4096;
  return trace_.names.intern(valid_text(data_.text(data_.find(dict, key)).substr(0, kMax)));
}

/// The thread that represents a device: annotations name the current device, but not their thread.
std::uint16_t SnapshotReader::thread(std::int32_t device) {
  const auto next = static_cast<std::uint16_t>(trace_.threads.size());
  const auto [found, is_new] = threads_.try_emplace(device, next);
  if (is_new) {
    trace_.threads.push_back(
        {.process = 0, .id = device, .name = "device " + std::to_string(device)});
  }
  return found->second;
}

bool SnapshotReader::read_time(PlainValue event, std::int64_t& time_ns, const std::string& place) {
  const PlainValue value = data_.find(event, "time_us");
  const auto time = data_.integer(value);
  if (!time) return count(Oddity::no_time, place), false;
  if (*time < -kMaxMicroseconds || *time > kMaxMicroseconds)
    return count(Oddity::bad_time, place), false;
  time_ns = *time * 1000;
  return true;
}

/// Makes times relative to the first one. If no event has a time, its position becomes its time.
void SnapshotReader::normalize_times() {
  trace_.has_times = timed_ > 0 || (trace_.memory.empty() && !trace_.hosts.empty());
  if (!trace_.has_times) {
    for (std::size_t i = 0; i < trace_.memory.size(); ++i)
      trace_.memory[i].time_ns = static_cast<std::int64_t>(i);
    trace_.hosts.clear();
    trace_.tick_ns = 1;
    return;
  }
  make_times_relative(trace_);
}

}  // namespace foretrace
