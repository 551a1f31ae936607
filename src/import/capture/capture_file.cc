#include "import/capture/capture_file.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/contains.h"
#include "base/files/json_file.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "trace/launch_call.h"
#include "trace/source_frame.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModule = "nn.Module: ";

bool begins_capture(std::string_view call) { return contains(call, "StreamBeginCapture"); }
bool ends_capture(std::string_view call) { return contains(call, "StreamEndCapture"); }
bool adds_node(std::string_view call) {
  return !launches_graph(call) && contains_any(call, {"Launch", "Memcpy", "Memset"});
}

std::int64_t finish_of(const HostRecord& record) { return record.start_ns + record.duration_ns; }

/// Returns the size in "capture_8192_PIECEWISE" or "bs_64_rank0.json.gz", behind `word`.
std::int64_t size_behind(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return 0;
  name.remove_prefix(word.size());
  const std::size_t end = name.find('_');
  if (end == name.npos || end > 9) return 0;
  return parse_number<std::int64_t>(name.substr(0, end)).value_or(0);
}

/// Finds the ops, modules and frames around launches.
class Surroundings {
 public:
  explicit Surroundings(Trace& trace) : trace_(trace) {}

  /// Describes each of the calls, which are of one thread.
  std::map<std::uint32_t, CapturedNode> of(const std::set<std::uint32_t>& calls,
                                           std::uint16_t thread) {
    std::vector<std::uint32_t> records;
    for (std::uint32_t i = 0; i < trace_.hosts.size(); ++i) {
      const HostRecord& host = trace_.hosts[i];
      const bool encloses = host.kind == HostKind::op || host.kind == HostKind::python;
      if (host.thread == thread && host.nests && (encloses || calls.contains(i)))
        records.push_back(i);
    }
    std::stable_sort(records.begin(), records.end(), [&](std::uint32_t a, std::uint32_t b) {
      const HostRecord &left = trace_.hosts[a], &right = trace_.hosts[b];
      if (left.start_ns != right.start_ns) return left.start_ns < right.start_ns;
      return left.duration_ns > right.duration_ns;
    });
    std::map<std::uint32_t, CapturedNode> found;
    std::vector<std::uint32_t> open;
    for (const std::uint32_t i : records) {
      while (!open.empty() && finish_of(trace_.hosts[open.back()]) <= trace_.hosts[i].start_ns)
        open.pop_back();
      if (calls.contains(i))
        found.emplace(i, described(open));
      else
        open.push_back(i);
    }
    return found;
  }

 private:
  static void add_frame(std::string_view name, std::string& module, std::string& stack) {
    if (name.starts_with(kModule))
      module += (module.empty() ? "" : "/") + std::string(name.substr(kModule.size()));
    const auto frame = source_frame(name);
    if (frame && code_origin(frame->file) <= CodeOrigin::package)
      stack = std::string(name) + (stack.empty() ? "" : ";") + stack;
  }

  CapturedNode described(const std::vector<std::uint32_t>& open) {
    CapturedNode node;
    std::string path, module, stack;
    for (const std::uint32_t i : open) {
      const HostRecord& host = trace_.hosts[i];
      const std::string_view name = trace_.names[host.name];
      if (host.kind == HostKind::python) {
        add_frame(name, module, stack);
        continue;
      }
      path += (path.empty() ? "" : "/") + std::string(name);
      node.op_call = i;
      const bool has_details = host.details < trace_.op_details.size();
      const OpDetails details = has_details ? trace_.op_details[host.details] : OpDetails{};
      if (details.shapes == NameId{} && node.shapes != NameId{}) continue;
      node.op = host.name;
      node.shapes = details.shapes, node.types = details.types, node.values = details.values;
    }
    node.path = trace_.names.intern(path);
    node.module = trace_.names.intern(module);
    node.stack = trace_.names.intern(stack);
    return node;
  }

  Trace& trace_;
};

struct RootTimes {
  std::int64_t begin = 0, end = 0;
};

class CaptureReader {
 public:
  CaptureReader(Trace trace, const std::map<std::string, std::int64_t>& sizes) : sizes_(sizes) {
    file_.trace = std::move(trace);
  }

  CaptureFile read() {
    find_roots();
    find_sections();
    fill_roots();
    for (const CaptureSection& section : file_.sections) check_size(section);
    return std::move(file_);
  }

 private:
  std::string path() const {
    return file_.trace.files.empty() ? "the capture" : file_.trace.files[0].path;
  }

  void find_roots() {
    const Trace& trace = file_.trace;
    std::vector<std::int64_t> begins, ends;
    for (const HostRecord& host : trace.hosts) {
      if (!is_call(host.kind)) continue;
      const std::string_view name = trace.names[host.name];
      if (begins_capture(name)) begins.push_back(finish_of(host));
      if (ends_capture(name)) ends.push_back(host.start_ns);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    bool whole = begins.size() == ends.size();
    for (std::size_t i = 0; whole && i < begins.size(); ++i)
      whole = begins[i] <= ends[i] && (i == 0 || ends[i - 1] <= begins[i]);
    if (!whole)
      throw TraceError(fmt::format("{}: must hold whole captures, but begins {} and ends {}",
                                   path(), begins.size(), ends.size()));
    for (std::size_t i = 0; i < begins.size(); ++i) roots_.push_back({begins[i], ends[i]});
  }

  /// Ranges "capture_<size>_<mode>", each with its size.
  std::vector<std::pair<RootTimes, std::int64_t>> named_ranges() const {
    std::vector<std::pair<RootTimes, std::int64_t>> ranges;
    for (const HostRecord& host : file_.trace.hosts) {
      if (host.kind != HostKind::annotation) continue;
      const std::int64_t size = size_behind(file_.trace.names[host.name], "capture_");
      if (size > 0) ranges.push_back({{host.start_ns, finish_of(host)}, size});
    }
    return ranges;
  }

  /// A section is a named range; all roots outside of such ranges are another.
  void find_sections() {
    const std::vector<std::pair<RootTimes, std::int64_t>> ranges = named_ranges();
    const std::string name = fs::path(path()).filename().string();
    const auto listed = sizes_.find(name);
    const std::int64_t by_list = listed == sizes_.end() ? 0 : listed->second;
    std::map<std::size_t, std::size_t> section_of;
    for (const RootTimes& root : roots_) {
      std::size_t range = 0;
      while (range < ranges.size() &&
             (root.begin < ranges[range].first.begin || root.end > ranges[range].first.end))
        ++range;
      const auto [found, added] = section_of.try_emplace(range, file_.sections.size());
      if (added) {
        const bool outside = range == ranges.size();
        const std::int64_t size = outside ? size_behind(name, "bs_") : ranges[range].second;
        file_.sections.push_back({.size = size > 0 ? size : by_list, .roots = {}});
        if (by_list > 0 && ranges.size() <= 1 && file_.sections.back().size != by_list)
          throw TraceError(
              fmt::format("{}: must be a capture of {} tokens, as {} says, but is of {}", path(),
                          by_list, kCaptureIndex, size));
      }
      root_section_.push_back(found->second);
    }
  }

  void fill_roots() {
    Trace& trace = file_.trace;
    std::map<std::uint16_t, std::set<std::uint32_t>> calls;
    std::vector<std::pair<std::int64_t, std::uint32_t>> launches;
    for (std::uint32_t i = 0; i < trace.hosts.size(); ++i) {
      const HostRecord& host = trace.hosts[i];
      if (!is_call(host.kind) || !adds_node(trace.names[host.name])) continue;
      launches.emplace_back(host.start_ns, i);
      calls[host.thread].insert(i);
    }
    std::sort(launches.begin(), launches.end());
    std::map<std::uint32_t, CapturedNode> nodes;
    Surroundings surroundings(trace);
    for (const auto& [thread, of_thread] : calls) nodes.merge(surroundings.of(of_thread, thread));
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      std::vector<GraphLaunch>& root = file_.sections[root_section_[i]].roots.emplace_back();
      auto at = std::lower_bound(launches.begin(), launches.end(),
                                 std::pair(roots_[i].begin, std::uint32_t{0}));
      for (; at != launches.end() && at->first < roots_[i].end; ++at) {
        const std::uint32_t details = trace.hosts[at->second].details;
        root.push_back({.kernel = details == kNone ? NameId{} : trace.op_details[details].kernel,
                        .node = nodes.at(at->second)});
      }
    }
  }

  /// Some op of a capture works on a batch of its size.
  void check_size(const CaptureSection& section) const {
    if (section.size == 0) return;
    bool any = false;
    std::set<NameId> seen;
    for (const std::vector<GraphLaunch>& root : section.roots) {
      for (const GraphLaunch& launch : root) {
        if (launch.node.shapes == NameId{} || !seen.insert(launch.node.shapes).second) continue;
        const std::string_view shapes = file_.trace.names[launch.node.shapes];
        if (contains(shapes, fmt::format("[{},", section.size)) ||
            contains(shapes, fmt::format("[{}]", section.size)))
          return;
        any = true;
      }
    }
    if (any)
      throw TraceError(
          fmt::format("{}: must be a capture of {} tokens, but none of its ops has "
                      "inputs of that size",
                      path(), section.size));
  }

  const std::map<std::string, std::int64_t>& sizes_;
  CaptureFile file_;
  std::vector<RootTimes> roots_;
  std::vector<std::size_t> root_section_;
};

}  // namespace

std::map<std::string, std::int64_t> read_capture_index(const std::string& folder) {
  std::map<std::string, std::int64_t> sizes;
  const fs::path path = fs::path(folder) / kCaptureIndex;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return sizes;
  const nlohmann::json index = read_json_file(path.string());
  for (const nlohmann::json& entry : index) {
    if (!entry.is_object() || !entry.contains("file") || !entry.contains("batch_size")) continue;
    const nlohmann::json &file = entry["file"], &size = entry["batch_size"];
    if (file.is_string() && size.is_number_integer())
      sizes.emplace(file.get<std::string>(), size.get<std::int64_t>());
  }
  return sizes;
}

bool is_capture(const Trace& trace) {
  bool captures = false;
  for (const HostRecord& host : trace.hosts) {
    if (!is_call(host.kind)) continue;
    const std::string_view name = trace.names[host.name];
    if (launches_graph(name)) return false;
    captures = captures || begins_capture(name);
  }
  return captures;
}

CaptureFile capture_in(Trace trace, const std::map<std::string, std::int64_t>& sizes) {
  return CaptureReader(std::move(trace), sizes).read();
}

}  // namespace foretrace
