#include <algorithm>
#include <numeric>

#include "infer/draft.h"
#include "trace/launch_call.h"

namespace foretrace::infer_detail {
namespace {

bool is_call(HostKind kind) { return kind == HostKind::runtime || kind == HostKind::driver; }

bool names_collective(std::string_view name) {
  constexpr std::string_view kSigns[] = {"nccl", "rccl", "msccl", "AllReduce", "all_reduce"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](std::string_view sign) { return name.find(sign) != name.npos; });
}

/// Computed once per name: a trace has few.
std::vector<TaskKind> kinds_of_kernels(const Trace& trace) {
  std::vector<TaskKind> kinds(trace.names.size(), TaskKind::kernel);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (names_collective(trace.names[static_cast<NameId>(i)])) kinds[i] = TaskKind::collective;
  }
  return kinds;
}

TaskKind kind_of(const DeviceRecord& record, const std::vector<TaskKind>& kernels) {
  if (record.kind == DeviceKind::fill) return TaskKind::fill;
  if (record.kind == DeviceKind::kernel) {
    return record.details != kNone ? TaskKind::collective
                                   : kernels[static_cast<std::size_t>(record.name)];
  }
  switch (record.direction) {
    case CopyDirection::in:
      return TaskKind::copy_in;
    case CopyDirection::out:
      return TaskKind::copy_out;
    case CopyDirection::peer:
      return TaskKind::copy_peer;
    default:
      return TaskKind::copy_on_device;
  }
}

void collect_events(Draft& draft) {
  const Trace& trace = draft.trace;
  const std::vector<TaskKind> kernels = kinds_of_kernels(trace);
  draft.events.reserve(trace.devices.size());
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const DeviceRecord& record = trace.devices[i];
    if (record.kind == DeviceKind::annotation) continue;
    draft.events.push_back({.start = record.start_ns,
                            .finish = record.start_ns + record.duration_ns,
                            .record = static_cast<std::uint32_t>(i),
                            .stream = record.stream,
                            .kind = kind_of(record, kernels)});
  }
  std::sort(draft.events.begin(), draft.events.end(),
            [&](const DeviceEvent& a, const DeviceEvent& b) {
              if (a.stream != b.stream) return a.stream < b.stream;
              if (a.start != b.start) return a.start < b.start;
              if (a.finish != b.finish) return a.finish < b.finish;
              const std::uint32_t left = trace.devices[a.record].correlation;
              const std::uint32_t right = trace.devices[b.record].correlation;
              return left != right ? left < right : a.record < b.record;
            });
  draft.streams.assign(trace.streams.size(), {0, 0});
  for (std::size_t begin = 0; begin < draft.events.size();) {
    std::size_t end = begin;
    while (end < draft.events.size() && draft.events[end].stream == draft.events[begin].stream) {
      ++end;
    }
    draft.streams[draft.events[begin].stream] = {begin, end};
    begin = end;
  }
}

/// Calls that matter here: those whose correlation id a device event or a sync record carries, and
/// those that synchronize by their name. A correlation id may be recorded twice (ROCm): the call
/// that contains the other wins.
void collect_calls(Draft& draft) {
  const Trace& trace = draft.trace;
  std::unordered_map<std::uint32_t, std::uint32_t>& calls = draft.call_of_correlation;
  calls.reserve(draft.events.size());
  std::int64_t twice = 0;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (!is_call(record.kind) || record.correlation == 0) continue;
    const auto [found, added] =
        calls.try_emplace(record.correlation, static_cast<std::uint32_t>(i));
    if (added) continue;
    ++twice;
    if (record.duration_ns > trace.hosts[found->second].duration_ns) {
      found->second = static_cast<std::uint32_t>(i);
    }
  }
  if (twice > 0) {
    draft.notes.add(Severity::info, "correlation ids that two calls share", {}, twice);
  }
  draft.call_of_record.assign(trace.hosts.size(), kNone);
}

std::uint32_t call_at(Draft& draft, std::uint32_t record) {
  std::uint32_t& call = draft.call_of_record[record];
  if (call != kNone) return call;
  call = static_cast<std::uint32_t>(draft.calls.size());
  const HostRecord& host = draft.trace.hosts[record];
  Call added;
  added.start = host.start_ns;
  added.finish = host.start_ns + host.duration_ns;
  added.record = record;
  added.thread = host.thread;
  draft.calls.push_back(std::move(added));
  return call;
}

void match_launches(Draft& draft) {
  for (std::size_t i = 0; i < draft.events.size(); ++i) {
    const DeviceRecord& record = draft.trace.devices[draft.events[i].record];
    if (record.correlation == 0) continue;
    const auto found = draft.call_of_correlation.find(record.correlation);
    if (found == draft.call_of_correlation.end()) continue;
    const std::uint32_t call = call_at(draft, found->second);
    draft.events[i].call = call;
    draft.calls[call].launched.push_back(static_cast<std::uint32_t>(i));
  }
  for (Call& call : draft.calls) {
    std::sort(call.launched.begin(), call.launched.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(draft.events[a].start, a) < std::pair(draft.events[b].start, b);
    });
  }
}

constexpr std::string_view kSynchronizing[] = {"cudaStreamSynchronize",
                                               "cudaDeviceSynchronize",
                                               "cudaEventSynchronize",
                                               "cudaMemcpy",
                                               "cuStreamSynchronize",
                                               "cuCtxSynchronize",
                                               "cuEventSynchronize",
                                               "cudaFree",
                                               "cudaFreeHost",
                                               "cudaHostAlloc",
                                               "hipStreamSynchronize",
                                               "hipDeviceSynchronize",
                                               "hipEventSynchronize",
                                               "hipMemcpy",
                                               "hipFree",
                                               "hipMemcpyWithStream",
                                               "cudaMemcpy2D",
                                               "cudaMemcpyToSymbol"};

void add_synchronizing_calls(Draft& draft) {
  const Trace& trace = draft.trace;
  std::vector<char> synchronizes(trace.names.size(), 0);
  for (const std::string_view name : kSynchronizing) {
    synchronizes[static_cast<std::size_t>(trace.names.find(name))] = 1;
  }
  synchronizes[0] = 0;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (is_call(record.kind) && synchronizes[static_cast<std::size_t>(record.name)]) {
      call_at(draft, static_cast<std::uint32_t>(i));
    }
  }
  for (const SyncRecord& sync : trace.syncs) {
    if (sync.kind != SyncKind::stream_wait_event && sync.correlation != 0) {
      draft.sync_of_correlation.try_emplace(sync.correlation, &sync);
    }
    const auto found = draft.call_of_correlation.find(sync.correlation);
    if (found != draft.call_of_correlation.end()) call_at(draft, found->second);
  }
}

/// More than one launch of a hundred without a kernel are no longer those whose kernels ran behind
/// the end of the recording. Chosen.
constexpr std::int64_t kFewLost = 100;

/// Where kernels were dropped, steps look shorter than they were.
void note_lost_kernels(Draft& draft) {
  const Trace& trace = draft.trace;
  std::vector<char> launches(trace.names.size(), 0);
  for (std::size_t i = 0; i < launches.size(); ++i)
    launches[i] = launches_kernel(trace.names[static_cast<NameId>(i)]) ? 1 : 0;
  std::int64_t all = 0, lost = 0;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (!is_call(record.kind) || launches[static_cast<std::size_t>(record.name)] == 0) continue;
    ++all;
    const std::uint32_t call = draft.call_of_record[i];
    lost += call == kNone || draft.calls[call].launched.empty() ? 1 : 0;
  }
  if (lost * kFewLost <= all) return;
  draft.notes.add(Severity::warning,
                  draft.events.empty()
                      ? "launches, but no device activity: times are those of the host alone"
                      : "launches without a kernel: device records were dropped, so steps may look "
                        "shorter than they were",
                  {}, lost);
}

}  // namespace

void order_records(Draft& draft) {
  collect_events(draft);
  collect_calls(draft);
  match_launches(draft);
  note_lost_kernels(draft);
  add_synchronizing_calls(draft);
  for (std::size_t i = 0; i < draft.events.size(); ++i) {
    if (draft.events[i].call != kNone) draft.by_launch.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(draft.by_launch.begin(), draft.by_launch.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Call& left = draft.calls[draft.events[a].call];
    const Call& right = draft.calls[draft.events[b].call];
    return std::tuple(left.start, left.record, draft.events[a].start, a) <
           std::tuple(right.start, right.record, draft.events[b].start, b);
  });
  draft.tolerance = std::max(draft.trace.tick_ns, draft.tolerance);
  const std::int64_t orphans =
      static_cast<std::int64_t>(draft.events.size() - draft.by_launch.size());
  if (orphans > 0) {
    draft.notes.add(Severity::info, "device activities without a record of their launch", {},
                    orphans);
  }
}

}  // namespace foretrace::infer_detail
