// Writes the output of torch.cuda.memory._dump_snapshot, for pytorch.org/memory_viz and scripts
// made for it.

#include "export/torch_memory/memory_viz.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "export/common/registered.h"
#include "export/torch_memory/pickle_writer.h"
#include "foretrace/error.h"

namespace foretrace {

namespace {

/// Keeps the order of keys.
using Json = nlohmann::ordered_json;

std::string_view action_name(const VizEvent& event) {
  switch (event.action) {
    case MemoryAction::block:
      return event.frees ? "free_completed" : "alloc";
    case MemoryAction::out_of_memory:
      return "oom";
    default:
      return to_string(event.action);
  }
}

std::string_view state_name(BlockState state) {
  switch (state) {
    case BlockState::allocated:
      return "active_allocated";
    case BlockState::pending_free:
      return "active_pending_free";
    case BlockState::inactive:
      return "inactive";
  }
  return "inactive";
}

/// The parts of "file:line name". A path may contain colons and blanks: the line is the first
/// number between a colon and a blank.
struct Frame {
  std::string_view file, name;
  std::int64_t line = 0;
};

Frame frame_of(std::string_view text) {
  for (std::size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
    const std::size_t digits = colon + 1 + (text.substr(colon + 1, 1) == "-" ? 1 : 0);
    std::size_t end = digits;
    std::int64_t line = 0;
    while (end < text.size() && end < digits + 10 && text[end] >= '0' && text[end] <= '9')
      line = line * 10 + (text[end++] - '0');
    if (end > digits && end < text.size() && text[end] == ' ') {
      return {text.substr(0, colon), text.substr(end + 1), digits > colon + 1 ? -line : line};
    }
  }
  return {{}, text, 0};
}

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, const VizState& state, const std::string& path)
      : trace_(trace), state_(state), out_(path), stacks_(state.stacks.size(), kNone) {}

  void write() {
    out_.begin_dict();
    out_.text("segments");
    out_.begin_list();
    for (const VizSegment& segment : state_.segments) write_segment(segment);
    out_.end();
    out_.text("device_traces");
    out_.begin_list();
    for (const std::vector<VizEvent>& history : state_.histories) {
      out_.begin_list();
      for (const VizEvent& event : history) write_event(event);
      out_.end();
    }
    out_.end();
    write_settings();
    write_annotations();
    out_.end();
    out_.finish();
  }

 private:
  void member(std::string_view key, std::int64_t value) { out_.text(key), out_.integer(value); }
  void member(std::string_view key, std::string_view value) { out_.text(key), out_.text(value); }
  void write_frames(std::uint32_t stack);
  void write_frame(const std::string& text);
  void write_segment(const VizSegment& segment);
  void write_block(const VizBlock& block);
  void write_event(const VizEvent& event);
  void write_json(const Json& value, int depth = 0);
  void write_settings();
  void write_annotations();
  void write_annotation(const HostRecord& record, bool begins);

  const Trace& trace_;
  const VizState& state_;
  PickleWriter out_;
  std::vector<std::uint32_t> stacks_;  ///< Memo number of each stack; kNone before it is written.
  std::unordered_map<std::string_view, std::uint32_t> frames_;
};

void SnapshotWriter::write_frame(const std::string& text) {
  const auto found = frames_.find(text);
  if (found != frames_.end()) return out_.repeat(found->second);
  const Frame frame = frame_of(text);
  out_.begin_dict();
  member("name", frame.name);
  member("filename", frame.file);
  // PyTorch stores lines as unsigned numbers, so an unknown line, -1, is a very large number.
  out_.text("line"), out_.address(static_cast<std::uint64_t>(frame.line));
  out_.end();
  frames_.emplace(text, out_.memoize());
}

void SnapshotWriter::write_frames(std::uint32_t stack) {
  out_.text("frames");
  if (stacks_[stack] != kNone) return out_.repeat(stacks_[stack]);
  out_.begin_list();
  for (const std::string& frame : state_.stacks[stack]) write_frame(frame);
  out_.end();
  stacks_[stack] = out_.memoize();
}

void SnapshotWriter::write_block(const VizBlock& block) {
  out_.begin_dict();
  out_.text("address"), out_.address(block.address);
  member("size", block.bytes);
  member("requested_size", block.requested_bytes);
  member("state", state_name(block.state));
  write_frames(block.stack);
  out_.end();
}

void SnapshotWriter::write_segment(const VizSegment& segment) {
  std::int64_t allocated = 0, active = 0, requested = 0;
  for (const VizBlock& block : segment.blocks) {
    if (block.state == BlockState::inactive) continue;
    active += block.bytes;
    requested += block.requested_bytes;
    if (block.state == BlockState::allocated) allocated += block.bytes;
  }
  out_.begin_dict();
  member("device", segment.device);
  out_.text("address"), out_.address(segment.address);
  member("total_size", segment.bytes);
  member("allocated_size", allocated);
  member("active_size", active);
  member("requested_size", requested);
  member("stream", segment.stream);
  member("segment_type", segment.is_large ? "large" : "small");
  const Json pool = try_parse_json<Json>(segment.pool);
  const bool is_pair = pool.is_array() && pool.size() == 2 && pool[0].is_number_integer() &&
                       pool[1].is_number_integer();
  out_.text("segment_pool_id");
  out_.integer(is_pair ? pool[0].get<std::int64_t>() : 0);
  out_.integer(is_pair ? pool[1].get<std::int64_t>() : 0);
  out_.pair();
  out_.text("is_expandable"), out_.boolean(segment.is_expandable);
  write_frames(segment.stack);
  out_.text("blocks");
  out_.begin_list();
  for (const VizBlock& block : segment.blocks) write_block(block);
  out_.end();
  out_.end();
}

void SnapshotWriter::write_event(const VizEvent& event) {
  out_.begin_dict();
  member("action", action_name(event));
  const bool is_oom = event.action == MemoryAction::out_of_memory;
  out_.text(is_oom ? "device_free" : "addr"), out_.address(event.address);
  member("size", event.bytes);
  member("stream", event.stream);
  if (state_.has_times) member("time_us", event.time_us);
  write_frames(event.stack);
  out_.end();
}

void SnapshotWriter::write_json(const Json& value, int depth) {
  if (value.is_boolean()) return out_.boolean(value.get<bool>());
  if (value.is_number_integer()) return out_.integer(value.get<std::int64_t>());
  if (value.is_number()) return out_.real(value.get<double>());
  if (value.is_string()) return out_.text(value.get_ref<const std::string&>());
  if (depth == kMaxNesting || !value.is_structured()) return out_.none();
  value.is_object() ? out_.begin_dict() : out_.begin_list();
  for (const auto& [key, element] : value.items()) {
    if (value.is_object()) out_.text(key);
    write_json(element, depth + 1);
  }
  out_.end();
}

/// Writes the other metadata of the snapshot.
void SnapshotWriter::write_settings() {
  bool has_settings = false;
  for (const auto& [key, text] : trace_.metadata) {
    if (trace_.format != "torch_memory") break;
    const Json value = try_parse_json<Json>(text);
    if (value.is_discarded()) continue;
    has_settings |= key == "allocator_settings";
    out_.text(key);
    write_json(value);
  }
  if (has_settings) return;
  out_.text("allocator_settings");
  out_.begin_dict();
  out_.end();
}

void SnapshotWriter::write_annotations() {
  std::vector<const HostRecord*> all;
  for (const HostRecord& record : trace_.hosts) {
    if (record.kind == HostKind::annotation && state_.has_times) all.push_back(&record);
  }
  std::stable_sort(all.begin(), all.end(), [](const HostRecord* a, const HostRecord* b) {
    return a->start_ns < b->start_ns;
  });
  const auto later = [](const HostRecord* a, const HostRecord* b) {
    return a->start_ns + a->duration_ns > b->start_ns + b->duration_ns;
  };
  std::vector<const HostRecord*> open;  // A heap; the record that ends first is at the front.
  const auto close_until = [&](std::int64_t time) {
    while (!open.empty() && open[0]->start_ns + open[0]->duration_ns <= time) {
      write_annotation(*open[0], false);
      std::pop_heap(open.begin(), open.end(), later);
      open.pop_back();
    }
  };
  out_.text("external_annotations");
  out_.begin_list();
  for (const HostRecord* record : all) {
    close_until(record->start_ns);
    write_annotation(*record, true);
    open.push_back(record);
    std::push_heap(open.begin(), open.end(), later);
  }
  close_until(INT64_MAX);
  out_.end();
}

void SnapshotWriter::write_annotation(const HostRecord& record, bool begins) {
  const std::int64_t time = record.start_ns + (begins ? 0 : record.duration_ns);
  const bool tells_device = trace_.format == "torch_memory";
  out_.begin_dict();
  member("stage", begins ? "START" : "END");
  member("name", trace_.names[record.name]);
  member("device", tells_device ? trace_.threads[record.thread].id : 0);
  member("time_us", (trace_.origin_ns + time) / 1000);
  out_.end();
}

}  // namespace

void export_memory_viz(const Trace& trace, const std::string& path) {
  if (trace.memory.empty() && trace.segments.empty()) {
    throw Error(
        path +
        ": a memory snapshot must have memory events, but the trace has none; record it with "
        "profile_memory=True (torch.profiler), --memory (foretrace collect) or "
        "--cuda-memory-usage=true (nsys)");
  }
  const VizState state = trace.segments.empty() ? state_of_events(trace) : state_of_snapshot(trace);
  SnapshotWriter(trace, state, path).write();
}

}  // namespace foretrace
