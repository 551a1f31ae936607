#include "import/join_capture.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <set>
#include <unordered_map>

#include "base/contains.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "import/capture/capture_file.h"
#include "import/files/sniff.h"
#include "import/import_one.h"
#include "trace/launch_call.h"
#include "trace/serving/serving_step.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// A launch of a graph, and what it ran, in order of start.
struct Replay {
  std::int64_t start = 0;
  std::vector<std::uint32_t> work;  ///< Into Trace::devices.
};

/// Launches of one step, in order.
struct ReplayedStep {
  std::string name;  ///< Empty if the launches are in no step that says its size.
  std::int64_t tokens = -1, start = 0, finish = 0;
  std::vector<Replay> launches;

  std::string shown() const { return name.empty() ? "the trace" : "\"" + name + "\""; }
};

class Join {
 public:
  Join(Trace& trace, std::vector<CaptureFile> files, std::string path)
      : trace_(trace), files_(std::move(files)), path_(std::move(path)) {
    for (const CaptureFile& file : files_) {
      for (const CaptureSection& section : file.sections) {
        if (!section.roots.empty()) sections_.push_back({&file, &section});
      }
    }
  }

  void run() {
    find_steps();
    std::vector<const Known*> chosen;
    for (const ReplayedStep& step : steps_) chosen.push_back(section_for(step));
    if (std::ranges::all_of(chosen, [](const Known* known) { return known == nullptr; }))
      refuse_sizes();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (chosen[i] == nullptr) {
        for (const Replay& launch : steps_[i].launches) unmatched_ += std::ssize(launch.work);
        if (first_unmatched_.empty()) first_unmatched_ = steps_[i].shown();
      } else {
        join(steps_[i], *chosen[i]);
      }
    }
    for (auto& [number, node] : nodes_) trace_.captured.push_back(node);
    std::ranges::sort(trace_.captured, {}, &CapturedNode::node);
    for (const CaptureFile& file : files_)
      trace_.files.insert(trace_.files.end(), file.trace.files.begin(), file.trace.files.end());
    add_notes();
  }

 private:
  struct Known {
    const CaptureFile* file;
    const CaptureSection* section;
    bool checked = false;
  };

  void find_steps() {
    for (const HostRecord& host : trace_.hosts) {
      if (host.kind != HostKind::annotation) continue;
      const auto step = serving_step(trace_.names[host.name]);
      if (!step || step->tokens() < 0) continue;
      steps_.push_back({.name = std::string(trace_.names[host.name]),
                        .tokens = std::max(step->tokens(), step->padded),
                        .start = host.start_ns,
                        .finish = host.start_ns + host.duration_ns,
                        .launches = {}});
    }
    std::ranges::stable_sort(steps_, {}, &ReplayedStep::start);
    ReplayedStep others;
    for (Replay& launch : replays()) {
      auto at = std::ranges::upper_bound(steps_, launch.start, {}, &ReplayedStep::start);
      const bool inside = at != steps_.begin() && launch.start < std::prev(at)->finish;
      (inside ? *std::prev(at) : others).launches.push_back(std::move(launch));
    }
    std::erase_if(steps_, [](const ReplayedStep& step) { return step.launches.empty(); });
    if (!others.launches.empty()) steps_.push_back(std::move(others));
  }

  std::vector<Replay> replays() const {
    std::unordered_map<std::uint32_t, std::size_t> number;
    std::vector<Replay> found;
    for (const HostRecord& host : trace_.hosts) {
      if (!is_call(host.kind) || host.correlation == 0) continue;
      if (!launches_graph(trace_.names[host.name])) continue;
      number.emplace(host.correlation, found.size());
      found.push_back({host.start_ns, {}});
    }
    for (std::uint32_t i = 0; i < trace_.devices.size(); ++i) {
      if (trace_.devices[i].kind == DeviceKind::annotation) continue;
      const auto at = number.find(trace_.devices[i].correlation);
      if (at != number.end()) found[at->second].work.push_back(i);
    }
    const auto start = [&](std::uint32_t i) { return trace_.devices[i].start_ns; };
    for (Replay& replay : found) std::ranges::stable_sort(replay.work, {}, start);
    std::erase_if(found, [](const Replay& replay) { return replay.work.empty(); });
    std::ranges::stable_sort(found, {}, &Replay::start);
    return found;
  }

  /// The least size that holds the step; of captures of that size, the whole model for a single
  /// launch, and pieces for several.
  const Known* section_for(const ReplayedStep& step) {
    Known* best = nullptr;
    const bool in_pieces = step.launches.size() > 1;
    for (Known& known : sections_) {
      if (step.tokens < 0) return sections_.size() == 1 ? &known : nullptr;
      const std::int64_t size = known.section->size;
      if (size > 0 && size < step.tokens) continue;
      const auto misfit = [&](const Known& of) {
        return (of.section->roots.size() > 1) != in_pieces;
      };
      if (best == nullptr || size < best->section->size ||
          (size == best->section->size && misfit(*best) && !misfit(known)))
        best = &known;
    }
    if (best != nullptr && !best->checked) {
      best->checked = true;
      check_padding(step, *best->section);
    }
    return best;
  }

  /// The ops between the graphs of a step show the size that it was padded to.
  void check_padding(const ReplayedStep& step, const CaptureSection& section) const {
    if (section.size == step.tokens || step.launches.size() < 2) return;
    bool any = false;
    for (const HostRecord& host : trace_.hosts) {
      if (host.start_ns < step.start || host.start_ns >= step.finish || host.details == kNone)
        continue;
      if (host.kind != HostKind::op) continue;
      const NameId shapes = trace_.op_details[host.details].shapes;
      if (shapes == NameId{}) continue;
      const std::string_view text = trace_.names[shapes];
      if (contains(text, fmt::format("[{},", section.size)) ||
          contains(text, fmt::format("[{}]", section.size)))
        return;
      any = true;
    }
    if (any)
      throw TraceError(fmt::format(
          "{}: must be a capture of the size that steps are padded to, but no op of {} has the {} "
          "tokens of the least one that holds its {}",
          path_, step.shown(), section.size, step.tokens));
  }

  [[noreturn]] void refuse_sizes() const {
    std::int64_t greatest = 0;
    for (const Known& known : sections_) greatest = std::max(greatest, known.section->size);
    const ReplayedStep& step = steps_.front();
    if (step.tokens < 0)
      throw TraceError(
          fmt::format("{}: must be a capture of one size, as no step of the trace says "
                      "how many tokens it has, but there are {}",
                      path_, sections_.size()));
    throw TraceError(
        fmt::format("{}: must be a capture of at least {} tokens, as {} has, but the "
                    "largest is of {}",
                    path_, step.tokens, step.shown(), greatest));
  }

  void join(const ReplayedStep& step, const Known& known) {
    const std::size_t roots = known.section->roots.size(), count = step.launches.size();
    const bool fits = roots == 1 || count == roots || (step.tokens < 0 && count % roots == 0);
    if (!fits)
      throw TraceError(fmt::format("{}: must capture the {} that {} launches, but captures {}",
                                   path_, counted(count, "graph"), step.shown(), roots));
    for (std::size_t i = 0; i < count; ++i) join(step, i, known, i % roots);
  }

  void join(const ReplayedStep& step, std::size_t number, const Known& known, std::size_t root) {
    const std::vector<GraphLaunch>& launches = known.section->roots[root];
    const std::vector<std::uint32_t>& work = step.launches[number].work;
    if (launches.size() != work.size())
      throw TraceError(fmt::format(
          "{}: must capture what graph {} of {} runs, {}, but captures {}", path_, number + 1,
          step.shown(), counted(work.size(), "activity"), counted(launches.size(), "launch")));
    const std::vector<std::uint32_t> order = order_of(work, launches, known);
    for (std::size_t i = 0; i < work.size(); ++i) {
      DeviceRecord& record = trace_.devices[work[i]];
      const GraphLaunch& launch = launches[order.empty() ? i : order[i]];
      if (launch.kernel == NameId{}) {
        ++by_order_;
      } else if (const std::string_view name = known.file->trace.names[launch.kernel];
                 record.kind == DeviceKind::kernel && name != trace_.names[record.name]) {
        throw TraceError(fmt::format(
            "{}: must capture graphs in the order of {}, but {} of graph {} is {}, where {} was "
            "captured",
            path_, step.shown(), fmt::format("activity {}", i + 1), number + 1,
            shortened(trace_.names[record.name], 60), shortened(name, 60)));
      }
      if (record.graph_node == 0)
        record.graph_node = number_of(known, root, order.empty() ? i : order[i]);
      ++matched_;
      const auto [node, added] = nodes_.try_emplace(record.graph_node, launch.node);
      if (added) rename(node->second, record.graph_node, *known.file);
    }
  }

  /// On several streams, work may start in another order than it was captured in: then the k-th
  /// activity of a name is the k-th launch of that name. Empty: in order.
  std::vector<std::uint32_t> order_of(const std::vector<std::uint32_t>& work,
                                      const std::vector<GraphLaunch>& launches,
                                      const Known& known) const {
    const std::uint16_t stream = trace_.devices[work[0]].stream;
    if (std::ranges::all_of(work,
                            [&](std::uint32_t i) { return trace_.devices[i].stream == stream; }))
      return {};
    std::unordered_map<std::string_view, std::vector<std::uint32_t>> places;
    for (std::size_t i = launches.size(); i-- > 0;) {
      if (launches[i].kernel == NameId{}) return {};
      places[known.file->trace.names[launches[i].kernel]].push_back(static_cast<std::uint32_t>(i));
    }
    std::vector<std::uint32_t> order;
    for (const std::uint32_t i : work) {
      std::vector<std::uint32_t>& left = places[trace_.names[trace_.devices[i].name]];
      if (left.empty()) return {};
      order.push_back(left.back());
      left.pop_back();
    }
    return order;
  }

  /// A number for a node that the recorder did not number.
  std::uint64_t number_of(const Known& known, std::size_t root, std::size_t launch) const {
    const auto section = static_cast<std::uint64_t>(&known - sections_.data()) + 1;
    return section << 44U | static_cast<std::uint64_t>(root) << 24U | (launch + 1);
  }

  void rename(CapturedNode& node, std::uint64_t number, const CaptureFile& file) {
    node.node = number;
    for (NameId* const name :
         {&node.path, &node.op, &node.shapes, &node.types, &node.values, &node.module, &node.stack})
      *name = trace_.names.intern(file.trace.names[*name]);
  }

  void add_notes() {
    trace_.notes.add(Severity::info, "activities of graphs with the ops of their capture",
                     fmt::format("from {}", path_), matched_);
    if (by_order_ > 0)
      trace_.notes.add(Severity::info,
                       "of these joined by their order alone, as the capture names no kernels", {},
                       by_order_);
    if (unmatched_ > 0)
      trace_.notes.add(Severity::warning, "activities of graphs without a capture of their size",
                       first_unmatched_, unmatched_);
  }

  Trace& trace_;
  std::vector<CaptureFile> files_;
  std::string path_;
  std::vector<Known> sections_;
  std::vector<ReplayedStep> steps_;
  std::unordered_map<std::uint64_t, CapturedNode> nodes_;
  std::int64_t matched_ = 0, unmatched_ = 0, by_order_ = 0;
  std::string first_unmatched_;
};

bool replays_graphs(const Trace& trace) {
  return std::ranges::any_of(trace.hosts, [&](const HostRecord& host) {
    return is_call(host.kind) && launches_graph(trace.names[host.name]);
  });
}

std::vector<std::string> files_in(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(ignored) && name[0] != '.' && name != kCaptureIndex)
      files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

/// Throws TraceError if the capture says another size.
void set_size(CaptureFile& capture, std::int64_t size, const std::string& path) {
  for (CaptureSection& section : capture.sections) {
    if (section.size == 0) section.size = size;
    if (section.size != size)
      throw TraceError(fmt::format("{}: must be a capture of {} tokens, as {} says, but is of {}",
                                   path, size, kCaptureIndex, section.size));
  }
}

/// The captures in a folder, or the one in a file. Other files are left out.
std::vector<CaptureFile> captures_in(const std::string& path, const Trace& trace,
                                     const ImportOptions& options) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const auto sizes = read_capture_index(is_folder ? path : fs::path(path).parent_path().string());
  std::vector<CaptureFile> captures;
  for (const std::string& file : files_in(path)) {
    const auto is_own = [&](const SourceFile& own) {
      return fs::equivalent(own.path, file, ignored);
    };
    if (std::ranges::any_of(trace.files, is_own)) continue;
    const TraceFile found(file, options.max_unpacked);
    if (is_folder && (found.contents().importer == nullptr || found.contents().is_archive))
      continue;
    for (const TraceFile& one : traces_in(found)) {
      Trace read = import_one(one, options);
      if (is_capture(read)) captures.push_back(capture_in(std::move(read), sizes));
    }
  }
  // A list of one capture means the only one there is, under whatever name.
  if (sizes.size() == 1 && captures.size() == 1) set_size(captures[0], sizes.begin()->second, path);
  return captures;
}

void join_captures_in(const std::string& path, Trace& trace, const ImportOptions& options,
                      bool is_of_several) {
  std::vector<CaptureFile> captures = captures_in(path, trace, options);
  if (captures.empty())
    throw TraceError(path + ": must hold a recording of the capture of graphs, but holds none");
  const std::int32_t other = captures[0].trace.rank;
  std::erase_if(captures, [&](const CaptureFile& file) { return file.trace.rank != trace.rank; });
  if (!captures.empty()) return Join(trace, std::move(captures), path).run();
  const std::string found =
      fmt::format("{}: must be a capture of rank {}, like the trace, but is of rank {}", path,
                  trace.rank, other);
  if (!is_of_several) throw TraceError(found);
  trace.notes.add(Severity::warning, "traces whose rank has no capture", found);
}

/// The folder with captures beside a trace; empty if there is none.
std::string folder_beside(const Trace& trace) {
  if (trace.files.empty()) return {};
  const fs::path folder = fs::path(trace.files[0].path).parent_path();
  std::error_code ignored;
  if (fs::is_directory(folder / "capture_traces", ignored))
    return (folder / "capture_traces").string();
  const std::string own = folder.empty() ? "." : folder.string();
  return read_capture_index(own).empty() ? std::string() : own;
}

}  // namespace

void join_captures(Trace& trace, const ImportOptions& options, bool is_of_several) {
  const ImportOptions reading{.cache_folder = options.cache_folder,
                              .max_unpacked = options.max_unpacked};
  if (!trace.captured.empty() || is_capture(trace)) return;
  if (!options.capture.empty()) {
    if (!replays_graphs(trace) && is_of_several) return;
    if (!replays_graphs(trace))
      throw TraceError("must launch graphs, if --capture names their captures, but launches none");
    return join_captures_in(options.capture, trace, reading, is_of_several);
  }
  if (!replays_graphs(trace)) return;
  try {
    const std::string folder = folder_beside(trace);
    if (!folder.empty()) join_captures_in(folder, trace, reading, is_of_several);
  } catch (const NoMemoryLeft&) {
    throw;
  } catch (const Error& error) {
    trace.notes.add(Severity::warning, "captures beside the trace that do not fit", error.what());
  }
}

void leave_out_captures(std::vector<Trace>& traces, Notes& notes) {
  if (std::ranges::none_of(traces, replays_graphs)) return;
  const auto left_out = std::erase_if(traces, is_capture);
  if (left_out > 0)
    notes.add(Severity::info, "recordings of the capture of graphs beside traces, no ranks", {},
              static_cast<std::int64_t>(left_out));
}

}  // namespace foretrace
