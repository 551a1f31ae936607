#include "trace/launch_call.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foretrace {
namespace {

enum class CallRole : char { other, launch, begin_capture, end_capture };

CallRole role_of(std::string_view call) {
  if (call.find("StreamBeginCapture") != call.npos) return CallRole::begin_capture;
  if (call.find("StreamEndCapture") != call.npos) return CallRole::end_capture;
  return CallRole::other;
}

std::vector<CallRole> roles_of(const Names& names, const std::function<bool(NameId)>& counts) {
  std::vector<CallRole> roles(names.size());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto name = static_cast<NameId>(i);
    roles[i] = counts(name) ? CallRole::launch : role_of(names[name]);
  }
  return roles;
}

/// When each thread begins (true) or ends (false) to capture, in order.
class Captures {
 public:
  void add(const HostRecord& call, bool begins) {
    threads_[call.thread].emplace_back(call.start_ns, begins);
  }
  void sort() {
    for (auto& [thread, changes] : threads_) std::sort(changes.begin(), changes.end());
  }
  /// Whether the last change before the call is a beginning, and an end follows.
  bool contain(const HostRecord& call) const {
    const auto found = threads_.find(call.thread);
    if (found == threads_.end()) return false;
    const auto& changes = found->second;
    const auto next =
        std::lower_bound(changes.begin(), changes.end(), std::pair(call.start_ns, false));
    return next != changes.begin() && next != changes.end() && std::prev(next)->second &&
           !next->second;
  }

 private:
  std::map<std::uint16_t, std::vector<std::pair<std::int64_t, bool>>> threads_;
};

}  // namespace

bool launches_kernel(std::string_view call) {
  return call.find("LaunchKernel") != call.npos ||
         call.find("LaunchCooperativeKernel") != call.npos;
}

bool launches_graph(std::string_view call) { return call.find("GraphLaunch") != call.npos; }

std::vector<std::uint32_t> launches_to_run(const Trace& trace) {
  return calls_to_run(trace, [&](NameId name) { return launches_kernel(trace.names[name]); });
}

std::vector<std::uint32_t> calls_to_run(const Trace& trace,
                                        const std::function<bool(NameId)>& counts) {
  const std::vector<CallRole> roles = roles_of(trace.names, counts);
  std::vector<std::uint32_t> launches;
  Captures captures;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (!is_call(record.kind)) continue;
    const CallRole role = roles[static_cast<std::size_t>(record.name)];
    if (role == CallRole::launch) launches.push_back(static_cast<std::uint32_t>(i));
    if (role == CallRole::begin_capture) captures.add(record, true);
    if (role == CallRole::end_capture) captures.add(record, false);
  }
  captures.sort();
  std::erase_if(launches,
                [&](std::uint32_t launch) { return captures.contain(trace.hosts[launch]); });
  return launches;
}

}  // namespace foretrace
