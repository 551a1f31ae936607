#include "foretrace/answer/device_shares.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/contains.h"
#include "timeline/covered_time.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

/// "ncclDevKernel_AllReduce_Sum_f32", "ncclKernel_AllGather": the prefix and the word.
bool communicates(std::string_view name) {
  return name.starts_with("nccl") && contains(name, "Kernel");
}

bool computes(const Trace& trace, const DeviceRecord& record) {
  const std::string_view name = trace.names[record.name];
  return record.kind == DeviceKind::kernel && !communicates(name) && !contains(name, "Memcpy") &&
         !name.starts_with("Memset") && !name.starts_with("dma") && !contains(name, "Sync");
}

/// The start of the last profiler step; nullopt if there are less than two.
std::optional<std::int64_t> start_of_last_step(const Trace& trace) {
  std::set<NameId> steps;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  const auto add = [&](const auto& record) {
    if (!trace.names[record.name].starts_with(kProfilerStep)) return;
    steps.insert(record.name);
    last = std::max(last, record.start_ns);
  };
  for (const HostRecord& record : trace.hosts) {
    if (record.kind == HostKind::annotation) add(record);
  }
  for (const DeviceRecord& record : trace.devices) {
    if (record.kind == DeviceKind::annotation) add(record);
  }
  if (steps.size() < 2) return std::nullopt;
  return last;
}

/// The device work that counts.
std::vector<const DeviceRecord*> counted_work(const Trace& trace) {
  const std::optional<std::int64_t> end = start_of_last_step(trace);
  std::unordered_set<std::uint32_t> launched{0};  // Work without a known launch counts as well.
  for (const HostRecord& record : trace.hosts) {
    if (end && is_call(record.kind) && record.start_ns < *end) launched.insert(record.correlation);
  }
  std::vector<const DeviceRecord*> work;
  for (const DeviceRecord& record : trace.devices) {
    if (record.kind != DeviceKind::annotation && (!end || launched.contains(record.correlation)))
      work.push_back(&record);
  }
  return work;
}

}  // namespace

DeviceShares device_shares(const Trace& trace) {
  const std::vector<const DeviceRecord*> work = counted_work(trace);
  if (work.empty() || !trace.has_times) return {};
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();
  CoveredTime all, compute, communication, either;
  for (const DeviceRecord* record : work) {
    const Nanoseconds from{record->start_ns}, to{record->start_ns + record->duration_ns};
    first = std::min(first, from), last = std::max(last, to);
    all.add(from, to);
    const bool is_compute = computes(trace, *record);
    const bool is_transfer = communicates(trace.names[record->name]);
    if (is_compute) compute.add(from, to);
    if (is_transfer) communication.add(from, to);
    if (is_compute || is_transfer) either.add(from, to);
  }
  const auto length_of = [&](CoveredTime& covered) {
    covered.finish();
    return covered.within(first, last);
  };
  DeviceShares shares{.kernel_time = last - first, .compute = length_of(compute)};
  shares.idle = shares.kernel_time - length_of(all);
  shares.non_compute = shares.kernel_time - shares.idle - shares.compute;
  shares.communication = length_of(communication);
  shares.overlap = shares.compute + shares.communication - length_of(either);
  return shares;
}

}  // namespace foretrace
