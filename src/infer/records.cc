#include <algorithm>

#include "base/contains.h"
#include "infer/passes.h"
#include "trace/wait_call.h"

namespace foretrace::infer_detail {
namespace {

bool names_collective(std::string_view name) {
  return contains_any(name, {"nccl", "rccl", "msccl", "AllReduce", "all_reduce"});
}

/// Computes the kind once per name, because a trace has few names.
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

void collect_events(Records& records) {
  const Trace& trace = records.trace;
  const std::vector<TaskKind> kernels = kinds_of_kernels(trace);
  records.events.reserve(trace.devices.size());
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const DeviceRecord& record = trace.devices[i];
    if (record.kind == DeviceKind::annotation) continue;
    records.events.push_back({.start = record.start_ns,
                              .finish = record.start_ns + record.duration_ns,
                              .record = static_cast<std::uint32_t>(i),
                              .stream = record.stream,
                              .kind = kind_of(record, kernels)});
  }
  std::sort(records.events.begin(), records.events.end(),
            [&](const DeviceEvent& a, const DeviceEvent& b) {
              if (a.stream != b.stream) return a.stream < b.stream;
              if (a.start != b.start) return a.start < b.start;
              if (a.finish != b.finish) return a.finish < b.finish;
              const std::uint32_t left = trace.devices[a.record].correlation;
              const std::uint32_t right = trace.devices[b.record].correlation;
              return left != right ? left < right : a.record < b.record;
            });
  records.streams.assign(trace.streams.size(), {0, 0});
  for (std::size_t begin = 0; begin < records.events.size();) {
    std::size_t end = begin;
    while (end < records.events.size() &&
           records.events[end].stream == records.events[begin].stream) {
      ++end;
    }
    records.streams[records.events[begin].stream] = {begin, end};
    begin = end;
  }
}

/// Maps each correlation id to the record of its call. An id may be recorded twice (ROCm); the
/// longer call, which contains the other, wins.
void collect_calls(Records& records, Notes& notes) {
  const Trace& trace = records.trace;
  std::unordered_map<std::uint32_t, std::uint32_t>& calls = records.call_of_correlation;
  calls.reserve(records.events.size());
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
    notes.add(Severity::info, "correlation ids that two calls share", {}, twice);
  }
  records.call_of_record.assign(trace.hosts.size(), kNone);
}

void match_launches(Records& records) {
  records.calls.reserve(records.events.size());
  for (std::size_t i = 0; i < records.events.size(); ++i) {
    const DeviceRecord& record = records.trace.devices[records.events[i].record];
    if (record.correlation == 0) continue;
    const auto found = records.call_of_correlation.find(record.correlation);
    if (found == records.call_of_correlation.end()) continue;
    const std::uint32_t call = call_at(records, found->second);
    records.events[i].call = call;
    records.calls[call].launched.push_back(static_cast<std::uint32_t>(i));
  }
  for (Call& call : records.calls) {
    std::sort(call.launched.begin(), call.launched.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(records.events[a].start, a) < std::pair(records.events[b].start, b);
    });
  }
}

/// Copies that return when they are done, even if their device record is missing.
constexpr std::string_view kBlockingCopies[] = {"cudaMemcpy", "cudaMemcpy2D", "hipMemcpy",
                                                "hipMemcpyWithStream", "cudaMemcpyToSymbol"};

void add_synchronizing_calls(Records& records) {
  const Trace& trace = records.trace;
  std::vector<char> synchronizes(trace.names.size(), 0);
  for (const std::string_view name : kBlockingCopies) {
    synchronizes[static_cast<std::size_t>(trace.names.find(name))] = 1;
  }
  for (std::size_t i = 0; i < synchronizes.size(); ++i) {
    if (wait_call(trace.names[static_cast<NameId>(i)]) != WaitCall::none) synchronizes[i] = 1;
  }
  synchronizes[0] = 0;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (is_call(record.kind) && synchronizes[static_cast<std::size_t>(record.name)]) {
      call_at(records, static_cast<std::uint32_t>(i));
    }
  }
  for (const SyncRecord& sync : trace.syncs) {
    if (sync.kind != SyncKind::stream_wait_event && sync.correlation != 0) {
      records.sync_of_correlation.try_emplace(sync.correlation, &sync);
    }
    const auto found = records.call_of_correlation.find(sync.correlation);
    if (found != records.call_of_correlation.end()) call_at(records, found->second);
  }
}

void fill_launch_times(Records& records) {
  constexpr std::int64_t kBefore = std::numeric_limits<std::int64_t>::min();
  records.launch_times.assign(records.events.size(), kBefore);
  for (const auto& [begin, end] : records.streams) {
    std::int64_t latest = kBefore;
    for (std::size_t i = begin; i < end; ++i) {
      if (const Call* call = records.call_of(records.events[i])) {
        latest = std::max(latest, call->start);
      }
      records.launch_times[i] = latest;
    }
  }
}

}  // namespace

std::uint32_t call_at(Records& records, std::uint32_t record) {
  std::uint32_t& call = records.call_of_record[record];
  if (call != kNone) return call;
  call = static_cast<std::uint32_t>(records.calls.size());
  const HostRecord& host = records.trace.hosts[record];
  Call added;
  added.start = host.start_ns;
  added.finish = host.start_ns + host.duration_ns;
  added.record = record;
  added.thread = host.thread;
  records.calls.push_back(std::move(added));
  return call;
}

Records order_records(const Trace& trace, Notes& notes) {
  Records records{.trace = trace};
  collect_events(records);
  collect_calls(records, notes);
  match_launches(records);
  add_synchronizing_calls(records);
  fill_launch_times(records);
  for (std::size_t i = 0; i < records.events.size(); ++i) {
    if (records.events[i].call != kNone) records.by_launch.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(records.by_launch.begin(), records.by_launch.end(),
            [&](std::uint32_t a, std::uint32_t b) {
              const Call& left = records.calls[records.events[a].call];
              const Call& right = records.calls[records.events[b].call];
              return std::tuple(left.start, left.record, records.events[a].start, a) <
                     std::tuple(right.start, right.record, records.events[b].start, b);
            });
  records.tolerance = std::max(records.trace.tick_ns, records.tolerance);
  const std::int64_t orphans =
      static_cast<std::int64_t>(records.events.size() - records.by_launch.size());
  if (orphans > 0) {
    notes.add(Severity::info, "device activities without a record of their launch", {}, orphans);
  }
  return records;
}

}  // namespace foretrace::infer_detail
