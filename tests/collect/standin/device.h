#pragma once

// Shared by the parts of the played driver: when devices finish the work on their streams, and the
// program's calls that put it there.

#include <atomic>
#include <cstdint>
#include <utility>

#include "collect/standin/library.h"

namespace standin {

constexpr std::uint32_t kNone = 0xffffffff;  ///< No stream, no event.
constexpr std::uint32_t kNullStream = 7;

Library& library();
Activity& activity();

/// There is one context for each device.
std::uint32_t context_of(std::uint32_t device);
std::uint64_t next_id();
std::uint32_t last_correlation();

/// Puts work on a stream. Returns when it begins and ends.
std::pair<std::uint64_t, std::uint64_t> put(std::uint32_t device, std::uint32_t stream,
                                            std::uint64_t duration);
std::uint64_t stream_free_at(std::uint32_t device, std::uint32_t stream);
std::uint64_t device_free_at(std::uint32_t device);
/// Work that is put on the stream from now on begins no earlier than this.
void delay(std::uint32_t device, std::uint32_t stream, std::uint64_t until);
void wait_until(std::uint64_t time);

/// One CUDA call of the program: callbacks at both ends and a record.
class Call {
 public:
  Call(std::uint32_t domain, std::uint32_t id);
  Call(const Call&) = delete;
  ~Call();

  std::uint32_t correlation() const { return correlation_; }
  std::uint64_t start() const { return start_; }

 private:
  void tell(std::uint32_t site) const;

  std::uint32_t domain_;
  std::uint32_t id_;
  std::uint32_t correlation_;
  std::uint64_t start_ = 0;
};

/// Where a kernel comes from: a call, or a node of a graph.
struct Placed {
  std::uint32_t correlation;
  std::uint32_t graph;
  std::uint64_t node;
};
void run_kernel(const Launch& launch, const Placed& placed);

// driver_waits.cc and driver_graph.cc; see standin.h.
void synchronize_stream(std::uint32_t device, std::uint32_t stream);
void synchronize_device(std::uint32_t device);
void record_event(std::uint32_t event, std::uint32_t device, std::uint32_t stream);
void wait_event(std::uint32_t number, std::uint32_t device, std::uint32_t stream);
void synchronize_event(std::uint32_t number);
void* create_graph();
void* add_node(void* to, const char* kernel, std::uint64_t duration);
void add_dependency(void* before, void* after);
void* instantiate(void* of);
std::uint32_t launch_graph(void* executable, std::uint32_t device, std::uint32_t stream);
std::uint64_t node_id(void* node);

}  // namespace standin
