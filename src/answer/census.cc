#include "foretrace/answer/census.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/contains.h"
#include "trace/launch_call.h"
#include "trace/step_name.h"
#include "trace/wait_call.h"

namespace foretrace {
namespace {

/// CUDA and HIP names differ only in their prefix, so only the rest is compared.
bool waits_for_event(std::string_view name) { return contains(name, "StreamWaitEvent"); }
bool waits_for_device(std::string_view name) {
  const WaitCall wait = wait_call(name);
  return wait != WaitCall::none && wait != WaitCall::at_release;
}

bool is_collective(std::string_view name) {
  return contains(name, "nccl") || contains(name, "rccl");
}

/// Facts that are determined once for each distinct name.
struct NameFacts {
  bool event_wait = false, sync = false, module = false, collective = false;
  /// Index of the word in the name of a training step (see step_name.h).
  std::optional<std::size_t> step_word{};
};

std::vector<NameFacts> facts_of(const Names& names) {
  std::vector<NameFacts> facts(names.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::string_view name = names[static_cast<NameId>(i)];
    facts[i] = {.event_wait = waits_for_event(name),
                .sync = waits_for_device(name),
                .module = name.starts_with("nn.Module: "),
                .collective = is_collective(name)};
    if (const auto step = step_name(name)) facts[i].step_word = step->word;
  }
  return facts;
}

class Count {
 public:
  explicit Count(const Trace& trace) : trace_(trace), facts_(facts_of(trace.names)) {}

  Census take() {
    for (const HostRecord& record : trace_.hosts) count(record);
    if (trace_.has_times) find_window();
    pair_launches();
    measure_busy();
    if (census_.overhead_ns > 0) take_waits_from_flushes();
    if (!trace_.has_times) census_.device_busy_ns = census_.device_time_ns = 0;
    count_details();
    count_tensors();
    count_steps();
    return std::move(census_);
  }

 private:
  /// Counts the profiler's own steps if there are any; otherwise the ranges of the word that occurs
  /// least often, because a step contains several micro-batches.
  void count_steps() {
    if (markers_.empty()) return;
    auto chosen = markers_.begin();
    for (auto other = chosen; chosen->first != 0 && other != markers_.end(); ++other) {
      if (other->second.size() < chosen->second.size()) chosen = other;
    }
    std::sort(chosen->second.begin(), chosen->second.end());
    for (const auto& [start, duration] : chosen->second)
      census_.steps_ns.push_back(trace_.has_times ? duration : 0);
  }

  const NameFacts& facts(NameId name) const { return facts_[static_cast<std::uint32_t>(name)]; }

  void count(const HostRecord& record) {
    const NameFacts& known = facts(record.name);
    switch (record.kind) {
      case HostKind::op:
        ++census_.ops;
        break;
      case HostKind::annotation:
        ++census_.annotations;
        if (known.step_word)
          markers_[*known.step_word].emplace_back(record.start_ns, record.duration_ns);
        break;
      case HostKind::python:
        ++census_.frames;
        census_.module_names = census_.module_names || known.module;
        break;
      case HostKind::runtime:
      case HostKind::driver:
        ++census_.calls;
        census_.event_waits += known.event_wait ? 1 : 0;
        if (known.sync) ++census_.waiting_calls, census_.waiting_ns += record.duration_ns;
        break;
      case HostKind::overhead:
        ++census_.overheads;
        census_.overhead_ns += record.duration_ns;
        break;
    }
  }

  void find_window() {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    const auto widen = [&](std::int64_t start, std::int64_t duration) {
      first = std::min(first, start);
      last = std::max(last, start + duration);
    };
    for (const HostRecord& record : trace_.hosts) widen(record.start_ns, record.duration_ns);
    for (const DeviceRecord& record : trace_.devices) widen(record.start_ns, record.duration_ns);
    if (!trace_.segments.empty() || trace_.format == "torch_memory") {
      for (const MemoryRecord& record : trace_.memory) widen(record.time_ns, 0);
    }
    if (first > last) return;
    census_.first_ns = first;
    census_.window_ns = last - first;
  }

  void pair_launches() {
    std::unordered_map<std::uint32_t, std::int64_t> call_start;
    for (const HostRecord& record : trace_.hosts) {
      if (is_call(record.kind) && record.correlation != 0)
        call_start.emplace(record.correlation, record.start_ns);
    }
    std::unordered_set<std::uint32_t> seen;
    for (const DeviceRecord& record : trace_.devices) {
      if (record.kind == DeviceKind::annotation) continue;
      seen.insert(record.correlation);
      const auto call = call_start.find(record.correlation);
      if (call == call_start.end()) {
        ++census_.orphans;
      } else if (record.start_ns < call->second) {
        ++census_.early;
        census_.earliest_ns = std::max(census_.earliest_ns, call->second - record.start_ns);
      }
    }
    const std::vector<std::uint32_t> launches = launches_to_run(trace_);
    census_.launches = std::ssize(launches);
    for (const std::uint32_t launch : launches)
      census_.lost += seen.contains(trace_.hosts[launch].correlation) ? 0 : 1;
  }

  /// A flush of the profiler's buffers waits for the activity that runs; that is no work of its
  /// own.
  void take_waits_from_flushes() {
    constexpr std::int64_t kReturn = 100'000;  // Chosen, in ns.
    std::vector<std::pair<std::int64_t, std::int64_t>> ends;
    for (const DeviceRecord& record : trace_.devices) {
      if (record.kind != DeviceKind::annotation)
        ends.emplace_back(record.start_ns + record.duration_ns, record.start_ns);
    }
    std::sort(ends.begin(), ends.end());
    for (const HostRecord& record : trace_.hosts) {
      if (record.kind != HostKind::overhead || !contains(trace_.names[record.name], "Flush"))
        continue;
      const std::int64_t finish = record.start_ns + record.duration_ns;
      const auto behind = std::upper_bound(
          ends.begin(), ends.end(), std::pair(finish, std::numeric_limits<std::int64_t>::max()));
      if (behind == ends.begin() || finish - std::prev(behind)->first > kReturn) continue;
      const auto [end, start] = *std::prev(behind);
      census_.overhead_ns -=
          std::max<std::int64_t>(0, std::min(end, finish) - std::max(start, record.start_ns));
    }
  }

  void count_kernel(const DeviceRecord& record) {
    ++census_.kernels;
    census_.instant += record.duration_ns == 0 ? 1 : 0;
    if (!facts(record.name).collective) return;
    ++census_.collectives;
    census_.described_collectives += record.details != kNone ? 1 : 0;
  }

  void measure_busy() {
    std::vector<std::pair<std::int64_t, std::int64_t>> busy;
    std::unordered_set<std::uint16_t> streams;
    for (const DeviceRecord& record : trace_.devices) {
      if (record.kind == DeviceKind::annotation) continue;
      if (record.kind == DeviceKind::kernel) count_kernel(record);
      census_.copies += record.kind == DeviceKind::copy ? 1 : 0;
      census_.fills += record.kind == DeviceKind::fill ? 1 : 0;
      busy.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
      census_.device_time_ns += record.duration_ns;
      streams.insert(record.stream);
    }
    census_.used_streams = static_cast<std::int64_t>(streams.size());
    std::sort(busy.begin(), busy.end());
    std::int64_t until = std::numeric_limits<std::int64_t>::min();
    for (const auto& [start, finish] : busy) {
      if (finish > until) census_.device_busy_ns += finish - std::max(start, until);
      until = std::max(until, finish);
    }
  }

  void count_details() {
    for (const OpDetails& details : trace_.op_details) {
      census_.shapes = census_.shapes || !trace_.names[details.shapes].empty();
      census_.module_names =
          census_.module_names || contains(trace_.names[details.stack], "nn.Module");
    }
    for (const MemoryRecord& record : trace_.memory) {
      census_.addressed += record.address != 0 ? 1 : 0;
      census_.totalled += record.total_allocated >= 0 ? 1 : 0;
    }
  }

  void count_tensors() {
    std::unordered_set<std::int64_t> storages;
    for (const TensorRecord& tensor : trace_.tensors) {
      ++(tensor.is_output ? census_.tensors_written : census_.tensors_read);
      std::int64_t& bytes = tensor.is_output ? census_.bytes_written : census_.bytes_read;
      if (__builtin_add_overflow(bytes, tensor.bytes, &bytes))
        bytes = std::numeric_limits<std::int64_t>::max();
      if (tensor.storage != 0) storages.insert(tensor.storage);
    }
    census_.storages = static_cast<std::int64_t>(storages.size());
  }

  const Trace& trace_;
  std::vector<NameFacts> facts_;
  /// Start and duration of step ranges, by the index of the word in their name (see step_name.h).
  std::map<std::size_t, std::vector<std::pair<std::int64_t, std::int64_t>>> markers_;
  Census census_;
};

}  // namespace

Census take_census(const Trace& trace) { return Count(trace).take(); }

}  // namespace foretrace
