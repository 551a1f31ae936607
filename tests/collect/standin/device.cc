#include "collect/standin/device.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>

namespace standin {

namespace {

constexpr std::uint64_t kLaunchLatency = 500;

std::atomic<std::uint32_t> correlations{0};
std::atomic<std::uint64_t> ids{0};

std::mutex streams_mutex;
/// The time at which each stream (device, stream) has done its work.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>& streams() {
  static auto* all = new std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
  return *all;
}

struct CallbackData {
  std::uint32_t site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  std::uint32_t context_id;
  std::uint64_t* data;
  std::uint32_t correlation;
};

}  // namespace

Library& library() { return Library::instance(); }
Activity& activity() { return library().activity; }

std::uint32_t context_of(std::uint32_t device) { return device + 1; }
std::uint64_t next_id() { return ++ids; }
std::uint32_t last_correlation() { return correlations; }

std::pair<std::uint64_t, std::uint64_t> put(std::uint32_t device, std::uint32_t stream,
                                            std::uint64_t duration) {
  const std::uint64_t now = activity().now();
  const std::lock_guard hold(streams_mutex);
  std::uint64_t& free = streams()[{device, stream}];
  const std::uint64_t start = std::max(free, now + kLaunchLatency);
  free = start + duration;
  return {start, free};
}

std::uint64_t stream_free_at(std::uint32_t device, std::uint32_t stream) {
  const std::lock_guard hold(streams_mutex);
  return streams()[{device, stream}];
}

std::uint64_t device_free_at(std::uint32_t device) {
  const std::lock_guard hold(streams_mutex);
  std::uint64_t latest = 0;
  for (const auto& [stream, free] : streams()) {
    if (stream.first == device) latest = std::max(latest, free);
  }
  return latest;
}

void delay(std::uint32_t device, std::uint32_t stream, std::uint64_t until) {
  const std::lock_guard hold(streams_mutex);
  std::uint64_t& free = streams()[{device, stream}];
  free = std::max(free, until);
}

void wait_until(std::uint64_t time) {
  for (std::uint64_t now = activity().now(); now < time; now = activity().now()) {
    const std::uint64_t left = std::min<std::uint64_t>(time - now, 1'000'000);
    const timespec pause{0, static_cast<long>(left)};
    nanosleep(&pause, nullptr);
  }
}

Call::Call(std::uint32_t domain, std::uint32_t id)
    : domain_(domain), id_(id), correlation_(++correlations) {
  tell(0);
  start_ = activity().now();
}

Call::~Call() {
  const std::uint32_t kind = domain_ == kRuntimeDomain ? kRuntime : kDriver;
  if (activity().is_enabled(kind) && activity().wants_call(kind, id_)) {
    ApiRecord record{};
    record.kind = kind;
    record.callback = id_;
    record.start = start_;
    record.end = activity().now();
    record.process = static_cast<std::uint32_t>(getpid());
    record.thread = own_thread();
    record.correlation = correlation_;
    activity().write(&record);
  }
  tell(1);
}

void Call::tell(std::uint32_t site) const {
  std::int32_t result = 0;
  std::uint64_t data = 0;
  CallbackData told{};
  told.site = site;
  told.function = callback_name(domain_, id_);
  told.result = site == 1 ? &result : nullptr;
  told.context_id = 1;
  told.data = &data;
  told.correlation = correlation_;
  library().call_back(domain_, id_, &told);
}

void run_kernel(const Launch& launch, const Placed& placed) {
  const auto [start, end] = put(launch.device, launch.stream, launch.duration_ns);
  KernelRecord record{};
  record.kind = kConcurrentKernel;
  record.device = launch.device;
  record.context = context_of(launch.device);
  record.stream = launch.stream;
  record.grid_x = launch.grid[0];
  record.grid_y = launch.grid[1];
  record.grid_z = launch.grid[2];
  record.block_x = launch.block[0];
  record.block_y = launch.block[1];
  record.block_z = launch.block[2];
  record.cache_and_registers = 40U << 16U;
  record.static_shared = 1024;
  record.dynamic_shared = 2048;
  record.correlation = placed.correlation;
  record.grid_id = static_cast<std::int64_t>(next_id());
  record.name = launch.name;
  record.graph = placed.graph;
  record.graph_node = placed.node;
  const Unfinished unfinished{0, kConcurrentKernel, start, end};
  activity().write(&record, &unfinished);
}

}  // namespace standin
