#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/trace.h"
#include "import/files/source.h"
#include "import/kineto/kineto_document.h"

namespace foretrace {

/// A source that returns bytes in memory, a few at a time.
class TextSource : public Source {
 public:
  explicit TextSource(std::string text, std::size_t most = 1 << 20, std::string damage = {})
      : text_(std::move(text)), most_(most), damage_(std::move(damage)) {}

  std::size_t read(char* to, std::size_t room) override {
    const std::size_t part = std::min({room, most_, text_.size() - taken_});
    std::memcpy(to, text_.data() + taken_, part);
    taken_ += part;
    return part;
  }
  std::string damage() const override { return damage_; }

 private:
  std::string text_;
  std::size_t most_;
  std::string damage_;
  std::size_t taken_ = 0;
};

inline void describe(std::ostream& out, const Trace& trace, const HostRecord& record) {
  const Thread& thread = trace.threads.at(record.thread);
  out << to_string(record.kind) << " \"" << trace.names[record.name] << "\" " << thread.process
      << "/" << thread.id << " " << record.start_ns << "+" << record.duration_ns;
  if (record.correlation != 0) out << " correlation=" << record.correlation;
  if (record.external != 0) out << " external=" << record.external;
  if (record.details != kNone) {
    const OpDetails& details = trace.op_details.at(record.details);
    const auto text = [&](const char* what, NameId id) {
      if (id != NameId{}) out << " " << what << "=" << trace.names[id];
    };
    text("shapes", details.shapes);
    text("types", details.types);
    text("values", details.values);
    text("stack", details.stack);
    if (details.sequence != -1) out << " sequence=" << details.sequence;
    if (details.forward_thread != 0) out << " forward_thread=" << details.forward_thread;
    if (details.python_id != -1) out << " python=" << details.python_id;
    if (details.python_parent != -1) out << " parent=" << details.python_parent;
  }
  out << "\n";
}

inline void describe(std::ostream& out, const Trace& trace, const DeviceRecord& record) {
  const Stream& stream = trace.streams.at(record.stream);
  out << to_string(record.kind) << " \"" << trace.names[record.name] << "\" " << stream.device
      << "/" << stream.id << " " << record.start_ns << "+" << record.duration_ns;
  if (record.direction != CopyDirection::none) out << " " << to_string(record.direction);
  if (record.pinned_host) out << " pinned";
  if (record.bytes != 0) out << " bytes=" << record.bytes;
  if (record.correlation != 0) out << " correlation=" << record.correlation;
  if (record.external != 0) out << " external=" << record.external;
  if (record.graph_node != 0) out << " graph_node=" << record.graph_node;
  if (record.grid != 0) out << " grid=" << record.grid << " block=" << record.block;
  if (record.details != kNone) {
    const CollectiveDetails& details = trace.collectives.at(record.details);
    out << " " << trace.names[details.collective] << " " << details.in_elements << "->"
        << details.out_elements << " " << trace.names[details.dtype]
        << " group=" << trace.names[details.group] << "/" << details.group_size << " "
        << trace.names[details.ranks];
  }
  out << "\n";
}

/// One line per record, then one per note.
inline std::string describe(const Trace& trace) {
  std::ostringstream out;
  for (const HostRecord& record : trace.hosts) describe(out, trace, record);
  for (const DeviceRecord& record : trace.devices) describe(out, trace, record);
  for (const SyncRecord& record : trace.syncs) {
    const auto stream = [&](std::uint32_t id) {
      return id == kNone ? std::string("-") : std::to_string(trace.streams.at(id).id);
    };
    out << "sync " << to_string(record.kind) << " " << record.start_ns << "+" << record.duration_ns
        << " stream=" << stream(record.stream) << " correlation=" << record.correlation;
    if (record.wait_on_stream != kNone) out << " waits_on=" << stream(record.wait_on_stream);
    if (record.event != 0) out << " event=" << record.event;
    if (record.wait_on_correlation != 0) out << " recorded_by=" << record.wait_on_correlation;
    out << "\n";
  }
  for (const MemoryRecord& record : trace.memory) {
    out << "memory device=" << record.device << " " << record.time_ns << " bytes=" << record.bytes;
    if (record.address != 0) out << " address=" << record.address;
    if (record.total_allocated != -1) out << " allocated=" << record.total_allocated;
    if (record.total_reserved != -1) out << " reserved=" << record.total_reserved;
    out << "\n";
  }
  for (const LinkRecord& record : trace.links) {
    out << "link " << record.id << (record.is_end ? " to " : " from ")
        << trace.threads.at(record.thread).id << " " << record.time_ns << "\n";
  }
  for (const Note& note : trace.notes.all()) {
    out << "! " << note.text << ": " << note.count;
    if (!note.example.empty()) out << " (" << note.example << ")";
    out << "\n";
  }
  return out.str();
}

inline Trace read_text(const std::string& json, std::size_t window = TextWindow::kSize,
                       std::string damage = {}) {
  PeekedSource source(std::make_unique<TextSource>(json, 7 + window / 3, std::move(damage)));
  return KinetoDocument(source, window).read();
}

/// The result of reading a JSON text, in a window of any size; an error as its message.
inline std::string recorded(const std::string& json, const std::string& damage = {}) {
  const auto with_window = [&](std::size_t window) {
    try {
      return "\n" + describe(read_text(json, window, damage));
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  const std::string whole = with_window(TextWindow::kSize);
  for (const std::size_t window : {64, 101, 257, 1000}) {
    const std::string part = with_window(window);
    if (part != whole)
      return "In a window of " + std::to_string(window) + ":" + part +
             "but in a large one:" + whole;
  }
  return whole;
}

}  // namespace foretrace
