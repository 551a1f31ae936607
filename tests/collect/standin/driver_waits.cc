// Events and synchronization of the played driver.

#include <algorithm>
#include <map>

#include "collect/standin/device.h"

namespace standin {

namespace {

struct Event {
  std::uint64_t sync_id = 0;
  std::uint64_t done_at = 0;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
};

std::mutex events_mutex;
std::map<std::uint32_t, Event>& events() {
  static auto* all = new std::map<std::uint32_t, Event>;
  return *all;
}

Event event_numbered(std::uint32_t number) {
  const std::lock_guard hold(events_mutex);
  return events()[number];
}

enum SyncType : std::uint32_t {
  kEventSync = 1,
  kStreamWait = 2,
  kStreamSync = 3,
  kContextSync = 4
};

struct Waited {
  SyncType type;
  std::uint32_t device;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint64_t sync_id;
};

void note_wait(const Waited& waited, const Call& call) {
  SynchronizationRecord record{};
  record.kind = kSynchronization;
  record.type = waited.type;
  record.start = call.start();
  record.end = activity().now();
  record.correlation = call.correlation();
  record.context = context_of(waited.device);
  record.stream = waited.stream;
  record.event = waited.event;
  record.event_sync_id = waited.sync_id;
  activity().write(&record);
}

}  // namespace

void synchronize_stream(std::uint32_t device, std::uint32_t stream) {
  const Call call(kRuntimeDomain, 131);
  wait_until(stream_free_at(device, stream));
  note_wait({kStreamSync, device, stream, kNone, 0}, call);
}

void synchronize_device(std::uint32_t device) {
  const Call call(kRuntimeDomain, 165);
  wait_until(device_free_at(device));
  note_wait({kContextSync, device, kNone, kNone, 0}, call);
}

void record_event(std::uint32_t event, std::uint32_t device, std::uint32_t stream) {
  const Call call(kRuntimeDomain, 135);
  const std::uint64_t done = stream_free_at(device, stream);
  const std::uint64_t sync_id = next_id();
  {
    const std::lock_guard hold(events_mutex);
    events()[event] = {sync_id, done, device, stream};
  }
  CudaEventRecord record{};
  record.kind = kCudaEvent;
  record.correlation = call.correlation();
  record.context = context_of(device);
  record.stream = stream;
  record.event = event;
  record.device = device;
  record.device_timestamp = std::max(done, activity().now());
  record.event_sync_id = sync_id;
  activity().write(&record);
}

void wait_event(std::uint32_t number, std::uint32_t device, std::uint32_t stream) {
  const Call call(kRuntimeDomain, 147);
  const Event event = event_numbered(number);
  delay(device, stream, event.done_at);
  note_wait({kStreamWait, device, stream, number, event.sync_id}, call);
}

void synchronize_event(std::uint32_t number) {
  const Call call(kRuntimeDomain, 137);
  const Event event = event_numbered(number);
  wait_until(event.done_at);
  note_wait({kEventSync, event.device, kNone, number, event.sync_id}, call);
}

}  // namespace standin
