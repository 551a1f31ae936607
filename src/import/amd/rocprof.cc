// Reads the JSON of rocprofiler-sdk (rocprofv3 --output-format json): one object per process with
//
//     agents, kernel_symbols, strings      tables that records refer to by number
//     buffer_records, callback_records     one list per domain: kernel_dispatch, memory_copy,
//                                          hip_api, hsa_api, marker_api, memory_allocation ...
//
// Lists may come in any order and be of any length, so names are looked up after all is read.

#include "import/amd/rocprof.h"

#include "foretrace/error.h"
#include "import/files/registered.h"

namespace foretrace {

namespace {

constexpr std::string_view kTool = "\"rocprofiler-sdk-tool\"";
constexpr std::size_t kLongestRocprofMetadata = 64 * 1024;

}  // namespace

bool recognizes_rocprof(const Sniffed& file) {
  const std::size_t start = file.head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || file.head[start] != '{') return false;
  return file.head.substr(0, start + 4096).find(kTool) != std::string_view::npos;
}

Trace read_rocprof(const TraceFile& input) {
  const auto source = input.open();
  return within(input.path(), [&] { return read_rocprof(*source); });
}

Trace read_rocprof(Source& bytes, std::size_t window) {
  RocprofDocument document(bytes, window);
  return document.read();
}

Trace RocprofDocument::read() {
  trace_.format = "rocprof";
  const bool whole = each_in_object([&](std::string_view key) {
    return key == "rocprofiler-sdk-tool" ? each_in_list([&] { return read_process(); })
                                         : json_.skip_value();
  });
  if (!whole) note_cut();
  resolve_names();
  records_.finish();
  write_notes();
  return std::move(trace_);
}

/// Calls `visit(key)` for each member, which has to read the value. Returns false if the text ends
/// or is not JSON.
template <class Visit>
bool RocprofDocument::each_in_object(Visit&& visit) {
  if (json_.peek() != '{') return false;
  json_.skip();
  for (;;) {
    const char next = json_.peek();
    if (next == '}') return json_.skip(), true;
    if (next == ',') {
      json_.skip();
      continue;
    }
    JsonValue value;
    if (next != '"' || !json_.read(value)) return false;
    const std::string key(value.view());
    if (json_.peek() != ':') return false;
    json_.skip();
    if (!visit(std::string_view(key))) return false;
  }
}

/// Calls `visit()` for each element, which has to read it. Returns false if the text ends or is not
/// JSON.
template <class Visit>
bool RocprofDocument::each_in_list(Visit&& visit) {
  if (json_.peek() != '[') return json_.skip_value();
  json_.skip();
  for (;;) {
    const char next = json_.peek();
    if (next == ']') return json_.skip(), true;
    if (next == ',') {
      json_.skip();
      continue;
    }
    if (next == 0 || !visit()) return false;
  }
}

template <class Visit>
bool RocprofDocument::each_value(Visit&& visit) {
  return each_in_list([&] {
    JsonValue value;
    if (!json_.read(value)) return false;
    visit(value);
    return true;
  });
}

bool RocprofDocument::read_process() {
  if (json_.peek() != '{') return json_.skip_value();
  process_ = {};
  return each_in_object([&](std::string_view key) {
    if (key == "metadata") return read_metadata();
    if (key == "agents") return each_value([&](const JsonValue& agent) { read_agent(agent); });
    if (key == "kernel_symbols")
      return each_value([&](const JsonValue& symbol) { read_symbol(symbol); });
    if (key == "strings") return read_strings();
    if ((key == "buffer_records" || key == "callback_records") && json_.peek() == '{') {
      return each_in_object([&](std::string_view domain) {
        const std::string name(domain);
        return each_value([&](const JsonValue& record) { read_record(name, record); });
      });
    }
    return json_.skip_value();
  });
}

bool RocprofDocument::read_metadata() {
  JsonValue value;
  if (!json_.read(value)) return false;
  each_member(value, [&](std::string_view key, const JsonValue& member) {
    if (key == "pid") process_ = to_integer(member);
    if (member.size <= kLongestRocprofMetadata && key.size() < 64 && trace_.metadata.size() < 64)
      trace_.metadata[std::string(key)] = json_text(member);
  });
  return true;
}

/// Reads the names of operations, by the number of their domain, and the texts of markers, by
/// correlation id.
bool RocprofDocument::read_strings() {
  JsonValue value;
  if (!json_.read(value)) return false;
  each_member(value, [&](std::string_view key, const JsonValue& member) {
    if (key == "buffer_records" || key == "callback_records") {
      std::vector<Domain>& domains = key[0] == 'b' ? buffer_domains_ : callback_domains_;
      each_element(member,
                   [&](const JsonValue& domain) { domains.push_back(read_domain(domain)); });
    } else if (key == "marker_api") {
      each_element(member, [&](const JsonValue& marker) { read_marker_text(marker); });
    }
  });
  return true;
}

void RocprofDocument::note_cut() {
  trace_.notes.add(Severity::warning,
                   "the file is cut off or damaged; everything before that was read",
                   "at byte " + std::to_string(json_.offset()));
}

/// Names kernels by their symbol and calls by their operation. The tables of names may follow the
/// records in the file, so this happens at the end.
void RocprofDocument::resolve_names() {
  for (const auto& [record, symbol] : unnamed_kernels_) {
    const auto found = symbols_.find(symbol);
    if (found != symbols_.end()) {
      trace_.devices[record].name = found->second;
    } else {
      trace_.devices[record].name = trace_.names.intern("kernel " + std::to_string(symbol));
      ++kernels_without_symbol_;
    }
  }
  for (const auto& [record, operation] : unnamed_calls_) {
    HostRecord& call = trace_.hosts[record];
    const auto text = marker_texts_.find(call.correlation);
    if (call.kind == HostKind::annotation && text != marker_texts_.end()) {
      call.name = text->second;
      continue;
    }
    const Domain* const domain = find_domain(operation.kind);
    if (domain == nullptr || operation.number >= domain->operations.size()) {
      call.name = trace_.names.intern("operation " + std::to_string(operation.number));
    } else {
      call.name = domain->operations[operation.number];
    }
  }
  // Until here, markers needed their correlation id to find their text. They launch nothing.
  for (HostRecord& call : trace_.hosts) {
    if (call.kind == HostKind::annotation) call.correlation = 0;
  }
}

const RocprofDocument::Domain* RocprofDocument::find_domain(std::size_t kind) const {
  const auto& domains = buffer_domains_.empty() ? callback_domains_ : buffer_domains_;
  return kind < domains.size() ? &domains[kind] : nullptr;
}

void RocprofDocument::write_notes() {
  if (kernels_without_symbol_ > 0) {
    trace_.notes.add(Severity::warning, "kernels whose symbol is not in the file", {},
                     kernels_without_symbol_);
  }
  if (broken_ > 0)
    trace_.notes.add(Severity::warning, "records that are not JSON objects, left out", {}, broken_);
  if (other_domains_ > 0) {
    trace_.notes.add(Severity::info, "records of domains that a trace has no place for, left out",
                     first_other_domain_, other_domains_);
  }
}

}  // namespace foretrace
