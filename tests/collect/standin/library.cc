#include "collect/standin/library.h"

#include <pthread.h>

#include <iterator>

namespace standin {

Library& Library::instance() {
  // Never destroyed, because the worker may run until the process ends.
  static auto* library = new Library;
  return *library;
}

Library::Library() {
#ifndef STANDIN_VERSION
#error "the build says which version of CUPTI this is"
#endif
  faults = read_faults(STANDIN_VERSION);
  pthread_atfork(nullptr, nullptr, on_fork);
}

void Library::on_fork() {
  instance().is_forked_ = true;
  instance().activity.forget_threads();
}

Result Library::gate() const {
  if (faults.no_driver) return kUnknown;
  return activity.is_over() && !is_forked_ ? kNotInitialized : kSuccess;
}

Result Library::subscribe(void** subscriber, Callback callback, void* user, const char* name) {
  if (const Result closed = gate(); closed != kSuccess) return closed;
  if (faults.subscribe != 0) return static_cast<Result>(faults.subscribe);
  if (subscriber == nullptr) return kInvalidParameter;
  const std::lock_guard hold(mutex_);
  if (has_subscriber_) return kMultipleSubscribers;
  has_subscriber_ = true;
  callback_ = callback;
  user_ = user;
  name_ = name == nullptr ? "" : name;
  *subscriber = this;
  return kSuccess;
}

std::string Library::holder() const {
  if (!faults.holder.empty()) return faults.holder;
  const std::lock_guard hold(mutex_);
  return "CUPTI for " + name_;
}

Result Library::enable_callback(bool on, const void* subscriber, std::uint32_t domain,
                                std::uint32_t id) {
  if (const Result closed = gate(); closed != kSuccess) return closed;
  if (subscriber != this) return kInvalidParameter;
  const std::lock_guard hold(mutex_);
  if (on) {
    callbacks_.insert({domain, id});
  } else {
    callbacks_.erase({domain, id});
  }
  return kSuccess;
}

void Library::enable_domain(bool on, std::uint32_t domain) {
  const std::lock_guard hold(mutex_);
  if (on) {
    domains_.insert(domain);
  } else {
    domains_.erase(domain);
  }
}

void Library::call_back(std::uint32_t domain, std::uint32_t id, const void* data) {
  Callback callback = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard hold(mutex_);
    if (domains_.count(domain) == 0 && callbacks_.count({domain, id}) == 0) return;
    callback = callback_;
    user = user_;
  }
  if (callback != nullptr) callback(user, domain, id, data);
}

void Library::unsubscribe() {
  const std::lock_guard hold(mutex_);
  has_subscriber_ = false;
  callback_ = nullptr;
}

const char* callback_name(std::uint32_t domain, std::uint32_t id) {
  // The same answer as that of NVIDIA's library of CUDA 13.0.
  static constexpr struct {
    std::uint32_t domain;
    std::uint32_t id;
    const char* name;
  } kNames[] = {
      {2, 17, "cudaGetDevice_v3020"},
      {2, 20, "cudaMalloc_v3020"},
      {2, 22, "cudaFree_v3020"},
      {2, 31, "cudaMemcpy_v3020"},
      {2, 41, "cudaMemcpyAsync_v3020"},
      {2, 51, "cudaMemsetAsync_v3020"},
      {2, 131, "cudaStreamSynchronize_v3020"},
      {2, 135, "cudaEventRecord_v3020"},
      {2, 137, "cudaEventSynchronize_v3020"},
      {2, 147, "cudaStreamWaitEvent_v3020"},
      {2, 161, "cudaMemcpyPeerAsync_v4000"},
      {2, 165, "cudaDeviceSynchronize_v3020"},
      {2, 171, "cudaProfilerStart_v4000"},
      {2, 172, "cudaProfilerStop_v4000"},
      {2, 211, "cudaLaunchKernel_v7000"},
      {2, 311, "cudaGraphLaunch_v10000"},
      {2, 373, "cudaMallocAsync_v11020"},
      {2, 375, "cudaFreeAsync_v11020"},
      {1, 1, "cuInit"},
      {1, 304, "cuCtxGetCurrent"},
      {1, 307, "cuLaunchKernel"},
      {1, 308, "cuProfilerStart"},
      {1, 309, "cuProfilerStop"},
      {1, 392, "cuDevicePrimaryCtxGetState"},
      {1, 514, "cuGraphLaunch"},
      {1, 652, "cuLaunchKernelEx"},
      {1, 686, "cuKernelGetAttribute"},
  };
  for (const auto& known : kNames) {
    if (known.domain == domain && known.id == id) return known.name;
  }
  return nullptr;
}

}  // namespace standin
