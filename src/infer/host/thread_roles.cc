// The role of each thread in the program. Most threads launch device work, wait for it, or work for
// a thread that does. Some have other roles:
//
//     watches   polls whether the device is done, or only sleeps (NCCL's watchdog, a progress bar's
//               monitor). Nothing waits for it, so it is left out.
//     helps     runs operators now and then, for an unknown thread. In between it is idle, which
//               does not count as work.

#include <algorithm>

#include "base/contains.h"
#include "infer/passes.h"
#include "trace/launch_call.h"
#include "trace/step_name.h"
#include "trace/wait_call.h"

namespace foretrace::infer_detail {
namespace {

/// Whether a call only queries the device, judged by the CUDA or HIP name. Calls such as
/// "GetDevice" do not make a thread a worker either.
bool only_queries(std::string_view call) {
  return !launches_kernel(call) && wait_call(call) == WaitCall::none &&
         !contains_any(call, {"Memcpy", "Memset", "Malloc", "Free", "Alloc", "GraphLaunch"});
}

/// The kinds of records that a thread has.
struct ThreadActivity {
  bool records = false;
  bool works = false;     ///< Has calls that do something, or step markers.
  bool operates = false;  ///< Has ops, annotations or allocations.
};

std::vector<ThreadActivity> thread_activities(const Records& records,
                                              const std::vector<Handover>& handovers) {
  const Trace& trace = records.trace;
  std::vector<char> queries(trace.names.size(), 0);
  for (std::size_t i = 0; i < queries.size(); ++i)
    queries[i] = only_queries(trace.names[static_cast<NameId>(i)]) ? 1 : 0;
  std::vector<ThreadActivity> activities(trace.threads.size());
  for (const HostRecord& record : trace.hosts) {
    ThreadActivity& thread = activities[record.thread];
    thread.records = true;
    if (is_call(record.kind)) {
      if (queries[static_cast<std::size_t>(record.name)] == 0) thread.works = true;
    } else if (record.kind == HostKind::annotation &&
               records.name(record).starts_with(kProfilerStep)) {
      thread.works = true;
    } else if (record.kind == HostKind::op || record.kind == HostKind::annotation) {
      thread.operates = true;
    }
  }
  for (const Call& call : records.calls) {
    if (!call.launched.empty() || call.waits) activities[call.thread].works = true;
  }
  for (const MemoryRecord& record : trace.memory) activities[record.thread].operates = true;
  for (const Handover& handover : handovers)
    activities[handover.waiter].works = activities[handover.worker].works = true;
  return activities;
}

}  // namespace

std::vector<ThreadRole> find_thread_roles(const Records& records,
                                          const std::vector<Handover>& handovers, Notes& notes) {
  std::vector<ThreadRole> roles(records.trace.threads.size(), ThreadRole::works);
  // Without device work, every thread may matter.
  if (records.events.empty()) return roles;
  const std::vector<ThreadActivity> activities = thread_activities(records, handovers);
  // If no thread seems to work, it is unknown which one does.
  if (std::none_of(activities.begin(), activities.end(),
                   [](const ThreadActivity& thread) { return thread.works; }))
    return roles;
  std::int64_t left_out = 0;
  std::string example;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    if (!activities[i].records || activities[i].works) continue;
    roles[i] = activities[i].operates ? ThreadRole::helps : ThreadRole::watches;
    if (activities[i].operates) continue;
    ++left_out;
    const Thread& thread = records.trace.threads[i];
    if (example.empty())
      example = thread.name.empty() ? "thread " + std::to_string(thread.id) : thread.name;
  }
  if (left_out == 0) return roles;
  notes.add(Severity::info,
            "threads that only watch the device, or sleep, left out: nothing waits for them",
            example, left_out);
  return roles;
}

}  // namespace foretrace::infer_detail
