#include "analysis/place/call_site.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "trace/source_frame.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

/// Nesting level of a record: among records with the same times, the inner one has the higher
/// level.
int nesting(HostKind kind) {
  if (kind == HostKind::annotation) return 0;
  if (kind == HostKind::python) return 1;
  return kind == HostKind::op ? 2 : 3;
}

std::string_view folder_of(std::string_view file) {
  const std::size_t slash = file.find_last_of("/\\");
  return slash == std::string_view::npos ? std::string_view() : file.substr(0, slash + 1);
}

/// Returns the prefix that both share, in whole folders.
std::string_view common_folder(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  return folder_of(a.substr(0, same));
}

bool has_folder(std::string_view file) { return !folder_of(file).empty(); }

bool is_absolute_path(std::string_view file) {
  return file.starts_with('/') || (file.size() > 2 && file[1] == ':');
}

/// Shortens the paths of the user's own files: they become relative to the folder of the script
/// that was started, or to the folder common to all if the script is unknown. Files outside that
/// folder become relative to the last folder they share with it.
void make_portable(std::vector<CallSite>& sites) {
  std::string root;
  bool has_root = false, script = false;
  for (const CallSite& site : sites) {
    if (!is_absolute_path(site.file) || code_origin(site.file) != CodeOrigin::user || script)
      continue;
    script = site.function == "<module>";
    const std::string_view folder = folder_of(site.file);
    root = script || !has_root ? std::string(folder) : std::string(common_folder(root, folder));
    has_root = true;
  }
  for (CallSite& site : sites) {
    const bool is_user_code = code_origin(site.file) == CodeOrigin::user;
    site.file = portable_file(site.file);
    if (!is_user_code || !is_absolute_path(site.file)) continue;
    std::string_view shared = common_folder(root, folder_of(site.file));
    // If nothing is shared, the last folder stays, to distinguish files of one name.
    if (!has_folder(shared.substr(0, shared.empty() ? 0 : shared.size() - 1)))
      shared = folder_of(folder_of(site.file).substr(0, folder_of(site.file).size() - 1));
    site.file.erase(0, shared.size());
  }
}

/// Numbers texts. Number 0 is the empty text.
class StringTable {
 public:
  std::uint32_t number(const std::string& text) {
    const auto [found, added] =
        numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }
  const std::string& operator[](std::uint32_t i) const { return texts_[i]; }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, std::uint32_t> numbers_{{"", 0}};
};

/// A frame of a stack or a Python record, and whose code it is.
struct SiteWithOrigin {
  std::uint32_t site = kNone;
  CodeOrigin origin = CodeOrigin::standard;
};

/// Finds the call site, ops and call of each host record, from the nesting of records on its
/// thread.
class HostContexts {
 public:
  struct Context {
    SiteWithOrigin innermost;
    std::uint32_t path = 0, op = 0, call = 0, shaped = 0, shapes = 0, values = 0;
  };

  explicit HostContexts(const Trace& trace)
      : trace_(trace),
        of_name_(trace.names.size(), kUnread),
        of_stack_(trace.names.size()),
        stack_read_(trace.names.size(), 0),
        name_number_(trace.names.size(), kNone) {
    contexts_.resize(trace.hosts.size());
    std::vector<std::vector<std::uint32_t>> threads(trace.threads.size());
    for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
      if (trace.hosts[i].thread < threads.size())
        threads[trace.hosts[i].thread].push_back(static_cast<std::uint32_t>(i));
    }
    for (std::vector<std::uint32_t>& records : threads) walk(records);
  }

  const Context& of_record(std::uint32_t record) const { return contexts_[record]; }

  /// The best frame of a stack, which lists the innermost first.
  SiteWithOrigin in_stack(NameId stack) {
    const auto number = static_cast<std::size_t>(stack);
    if (stack_read_[number] != 0) return of_stack_[number];
    stack_read_[number] = 1;
    SiteWithOrigin best;
    for (std::string_view rest = trace_.names[stack]; !rest.empty();) {
      const std::size_t end = rest.find(';');
      improve(best, site_of(rest.substr(0, end)), false);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return of_stack_[number] = best;
  }

  /// The place of work whose ops were recorded when its graph was captured.
  Context of_captured(const CapturedNode& node) {
    const std::string_view path = trace_.names[node.path];
    Context context;
    context.innermost = in_stack(node.stack);
    context.path = paths_.number(std::string(path));
    context.op = names_.number(std::string(path.substr(0, path.find('/'))));
    context.shaped = name_number(node.op), context.shapes = name_number(node.shapes);
    context.values = name_number(node.values);
    return context;
  }

  std::uint32_t name_number(NameId name) {
    std::uint32_t& number = name_number_[static_cast<std::size_t>(name)];
    if (number == kNone) number = names_.number(std::string(trace_.names[name]));
    return number;
  }

  std::vector<CallSite> take_sites() { return std::move(sites_); }
  std::vector<std::string> take_paths() { return paths_.take(); }
  std::vector<std::string> take_names() { return names_.take(); }

 private:
  struct Open {
    std::int64_t finish;
    Context context;
  };
  /// A combination that no read frame has.
  static constexpr SiteWithOrigin kUnread{kNone, CodeOrigin::user};

  void walk(std::vector<std::uint32_t>& records) {
    std::stable_sort(records.begin(), records.end(), [&](std::uint32_t a, std::uint32_t b) {
      const HostRecord& left = trace_.hosts[a];
      const HostRecord& right = trace_.hosts[b];
      if (left.start_ns != right.start_ns) return left.start_ns < right.start_ns;
      if (left.duration_ns != right.duration_ns) return left.duration_ns > right.duration_ns;
      return nesting(left.kind) < nesting(right.kind);
    });
    std::vector<Open> open;
    for (const std::uint32_t record : records) {
      const HostRecord& host = trace_.hosts[record];
      while (!open.empty() && open.back().finish <= host.start_ns) open.pop_back();
      const Context context = context_of(host, open.empty() ? Context() : open.back().context);
      contexts_[record] = context;
      if (host.nests) open.push_back({host.start_ns + host.duration_ns, context});
    }
  }

  Context context_of(const HostRecord& host, Context context) {
    context.call = name_number(host.name);
    if (host.kind == HostKind::python) {
      SiteWithOrigin& by_name = of_name_[static_cast<std::size_t>(host.name)];
      if (by_name.site == kNone && by_name.origin == CodeOrigin::user)
        by_name = site_of(trace_.names[host.name]);
      improve(context.innermost, by_name, true);
      return context;
    }
    if (host.kind != HostKind::op) return context;
    // Step markers are left out of the path, because their numbers differ.
    if (!step_name(trace_.names[host.name])) extend(context, context.call);
    const bool has_details = host.details < trace_.op_details.size();
    const NameId shapes = has_details ? trace_.op_details[host.details].shapes : NameId{};
    if (shapes != NameId{} || context.shapes == 0) {
      context.shaped = context.call, context.shapes = name_number(shapes);
      context.values = name_number(has_details ? trace_.op_details[host.details].values : NameId{});
    }
    if (has_details)
      improve(context.innermost, in_stack(trace_.op_details[host.details].stack), true);
    return context;
  }

  void extend(Context& context, std::uint32_t op) {
    const std::uint64_t key = static_cast<std::uint64_t>(context.path) << 32U | op;
    const auto [found, added] = longer_.try_emplace(key, 0);
    if (added) {
      const std::string& outer = paths_[context.path];
      found->second = paths_.number(outer.empty() ? names_[op] : outer + "/" + names_[op]);
    }
    context.path = found->second;
    if (context.op == 0) context.op = op;
  }

  /// Replaces `best` if `other` is closer to the user's code; frames of PyTorch and of Python
  /// itself never count. `further_in` means that `other` wins a tie.
  static void improve(SiteWithOrigin& best, SiteWithOrigin other, bool further_in) {
    if (other.site == kNone || other.origin > CodeOrigin::package) return;
    if (best.site == kNone || other.origin < best.origin ||
        (further_in && other.origin == best.origin))
      best = other;
  }

  SiteWithOrigin site_of(std::string_view text) {
    const std::optional<SourceFrame> frame = source_frame(text);
    if (!frame) return {};
    const CodeOrigin origin = code_origin(frame->file);
    if (origin > CodeOrigin::package) return {kNone, origin};
    std::string key = std::string(frame->file) + '\n' + std::to_string(frame->line) + '\n';
    key += frame->function;
    const auto [found, added] =
        numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(sites_.size()));
    if (added)
      sites_.push_back({std::string(frame->file), frame->line, std::string(frame->function)});
    return {found->second, origin};
  }

  const Trace& trace_;
  std::vector<Context> contexts_;  ///< Has one entry per host record.
  std::vector<SiteWithOrigin> of_name_, of_stack_;
  std::vector<char> stack_read_;
  std::vector<std::uint32_t> name_number_;
  StringTable paths_, names_;
  /// By outer path and op: the longer path.
  std::unordered_map<std::uint64_t, std::uint32_t> longer_;
  std::vector<CallSite> sites_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// Finds the host record that made a device record: the call with its correlation id, otherwise the
/// op that the profiler links with it.
class LaunchFinder {
 public:
  explicit LaunchFinder(const Trace& trace) : trace_(trace) {
    for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
      const HostRecord& host = trace.hosts[i];
      const auto record = static_cast<std::uint32_t>(i);
      if (is_call(host.kind) && host.correlation != 0) offer(calls_, host.correlation, record);
      if (host.kind == HostKind::op && host.external != 0) offer(ops_, host.external, record);
    }
  }

  std::uint32_t find(const DeviceRecord& device) const {
    if (device.correlation != 0) {
      const auto call = calls_.find(device.correlation);
      if (call != calls_.end()) return call->second;
    }
    const auto op = device.external == 0 ? ops_.end() : ops_.find(device.external);
    return op == ops_.end() ? kNone : op->second;
  }

 private:
  using Numbers = std::unordered_map<std::uint32_t, std::uint32_t>;

  /// If several records have a number, the longest counts, because it contains the others.
  void offer(Numbers& numbers, std::uint32_t number, std::uint32_t record) const {
    const auto [found, added] = numbers.try_emplace(number, record);
    if (!added && trace_.hosts[record].duration_ns > trace_.hosts[found->second].duration_ns)
      found->second = record;
  }

  const Trace& trace_;
  Numbers calls_, ops_;
};

/// Where the record of a task stands. On a device that is its launch, or what was recorded when its
/// graph was captured.
HostContexts::Context context_of(const Trace& trace, const Task& task, const LaunchFinder& launches,
                                 HostContexts& contexts) {
  HostContexts::Context context;
  if (is_snapshot(trace)) {
    if (task.record < trace.memory.size())
      context.innermost = contexts.in_stack(trace.memory[task.record].stack);
    return context;
  }
  if (!runs_on_device(task.kind))
    return task.record < trace.hosts.size() ? contexts.of_record(task.record) : context;
  if (task.record >= trace.devices.size()) return context;
  const DeviceRecord& record = trace.devices[task.record];
  const std::uint32_t launch = launches.find(record);
  const bool is_launched = launch < trace.hosts.size();
  const std::uint32_t name = contexts.name_number(record.name);
  if (const CapturedNode* const captured = captured_node(trace, record)) {
    context = contexts.of_captured(*captured);
    context.call = is_launched ? contexts.of_record(launch).call : name;
    return context;
  }
  if (is_launched) return contexts.of_record(launch);
  context.call = name;
  return context;
}

}  // namespace

std::string to_text(const CallSite& site) {
  std::string text = site.file;
  if (site.line > 0) text += ":" + std::to_string(site.line);
  if (!site.function.empty()) text += " " + site.function;
  return text;
}

CallSites::CallSites(const Trace& trace, const Graph& graph) : of_task_(graph.task_count()) {
  HostContexts contexts(trace);
  const LaunchFinder launches(trace);
  const auto located = [](const HostContexts::Context& context) -> Location {
    return {.site = context.innermost.site,
            .path = context.path,
            .op = context.op,
            .call = context.call,
            .shaped = context.shaped,
            .shapes = context.shapes,
            .values = context.values};
  };
  for (std::uint32_t i = 0; i < graph.task_count(); ++i)
    of_task_[i] = located(context_of(trace, graph.task(TaskId{i}), launches, contexts));
  sites_ = contexts.take_sites();
  paths_ = contexts.take_paths();
  names_ = contexts.take_names();
  make_portable(sites_);
}

const CallSites::Location& CallSites::location(TaskId task) const {
  static const Location nowhere;
  return index(task) < of_task_.size() ? of_task_[index(task)] : nowhere;
}

std::optional<CallSite> CallSites::site(TaskId task) const {
  const Location& found = location(task);
  if (found.site == kNone) return {};
  return sites_[found.site];
}

std::string_view CallSites::op_path(TaskId task) const { return paths_[location(task).path]; }
std::string_view CallSites::op(TaskId task) const { return names_[location(task).op]; }
CallSites::ShapedOp CallSites::shaped_op(TaskId task) const {
  const Location& found = location(task);
  return {names_[found.shaped], names_[found.shapes], names_[found.values]};
}
std::string_view CallSites::call(TaskId task) const { return names_[location(task).call]; }

}  // namespace foretrace
