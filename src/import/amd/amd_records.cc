#include "import/amd/amd_records.h"

#include <algorithm>

#include "base/contains.h"
#include "foretrace/error.h"
#include "import/common/times.h"

namespace foretrace {

namespace {

constexpr std::size_t kMaxAmdLanes = 0xffff;

}  // namespace

HostKind kind_of_domain(std::string_view domain) {
  if (contains(domain, "MARKER") || contains(domain, "RCCL") || contains(domain, "NCCL"))
    return HostKind::annotation;
  if (contains(domain, "HSA")) return HostKind::driver;
  return HostKind::runtime;
}

std::uint16_t AmdRecords::thread(std::int64_t process, std::int64_t id) {
  const auto next = trace_.threads.size();
  if (next == kMaxAmdLanes) {
    const auto known = threads_.find({process, id});
    return known == threads_.end() ? (++too_many_lanes_, std::uint16_t{0}) : known->second;
  }
  const auto [found, is_new] =
      threads_.try_emplace({process, id}, static_cast<std::uint16_t>(next));
  if (is_new) trace_.threads.push_back({.process = process, .id = id, .name = {}});
  return found->second;
}

std::uint16_t AmdRecords::stream(std::int32_t device, std::int64_t id) {
  const auto next = trace_.streams.size();
  if (next == kMaxAmdLanes) {
    const auto known = streams_.find({device, id});
    return known == streams_.end() ? (++too_many_lanes_, std::uint16_t{0}) : known->second;
  }
  const auto [found, is_new] = streams_.try_emplace({device, id}, static_cast<std::uint16_t>(next));
  if (is_new) trace_.streams.push_back({.device = device, .id = id});
  return found->second;
}

void AmdRecords::add_agent(std::int64_t number, bool is_gpu, Device device) {
  AmdAgent agent{.is_gpu = is_gpu, .ordinal = is_gpu ? next_ordinal_ : -1};
  if (!agents_.try_emplace(number, agent).second || !is_gpu) return;
  device.ordinal = next_ordinal_++;
  trace_.properties.push_back(std::move(device));
}

AmdAgent AmdRecords::agent(std::int64_t number) const {
  const auto found = agents_.find(number);
  return found == agents_.end() ? AmdAgent{} : found->second;
}

bool AmdRecords::are_possible(AmdTimes times) {
  const bool possible = times.start >= 0 && times.start <= kMaxTime && times.end >= times.start &&
                        times.end <= kMaxTime;
  if (!possible) ++bad_times_;
  return possible;
}

bool AmdRecords::add_device(DeviceRecord record, AmdTimes times) {
  if (!are_possible(times)) return false;
  record.start_ns = times.start;
  record.duration_ns = times.end - times.start;
  record.bytes = std::max<std::int64_t>(record.bytes, 0);
  trace_.devices.push_back(record);
  return true;
}

bool AmdRecords::add_host(HostRecord record, AmdTimes times) {
  if (!are_possible(times)) return false;
  record.start_ns = times.start;
  record.duration_ns = times.end - times.start;
  trace_.hosts.push_back(record);
  return true;
}

void AmdRecords::add_allocation(MemoryRecord record, std::int64_t time) {
  if (!are_possible({time, time})) return;
  record.time_ns = time;
  record.bytes = std::max<std::int64_t>(record.bytes, 0);
  trace_.memory.push_back(record);
  if (record.address != 0) live_[record.address] = record;
}

void AmdRecords::add_free(MemoryRecord record, std::int64_t time) {
  if (!are_possible({time, time})) return;
  record.time_ns = time;
  const auto found = live_.find(record.address);
  if (found != live_.end()) {
    record.bytes = -found->second.bytes;
    record.device = found->second.device;
    live_.erase(found);
  } else {
    ++unknown_frees_;
    if (record.bytes <= 0) return;
    record.bytes = -record.bytes;
  }
  trace_.memory.push_back(record);
}

CopyDirection AmdRecords::direction(std::int64_t from, std::int64_t to) const {
  const AmdAgent source = agent(from), target = agent(to);
  if (!source.is_gpu && !target.is_gpu) return CopyDirection::on_host;
  if (!source.is_gpu) return CopyDirection::in;
  if (!target.is_gpu) return CopyDirection::out;
  return source.ordinal == target.ordinal ? CopyDirection::on_device : CopyDirection::peer;
}

std::int32_t AmdRecords::device_of_copy(std::int64_t from, std::int64_t to) const {
  const AmdAgent source = agent(from), target = agent(to);
  return std::max(target.is_gpu ? target.ordinal : source.ordinal, 0);
}

void AmdRecords::finish() {
  if (trace_.record_count() == 0)
    throw TraceError("must contain kernels, copies or calls, but contains none");
  if (trace_.threads.empty()) trace_.threads.push_back({});
  make_times_relative(trace_);
  const auto note = [&](std::string_view text, std::int64_t count) {
    if (count > 0) trace_.notes.add(Severity::warning, text, {}, count);
  };
  note("records with impossible times, left out", bad_times_);
  note("records of more threads or streams than can be distinguished", too_many_lanes_);
  note("frees of memory whose allocation was not recorded", unknown_frees_);
}

}  // namespace foretrace
