// CUPTI's functions, by the names and with the answers that NVIDIA documents.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "collect/standin/library.h"

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))
// No header declares these functions: clients find them by name.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace {

using standin::Library;
using standin::Result;

Library& library() { return Library::instance(); }

/// With faults.strict, held while a function works. A client deadlocks if it holds a lock of its
/// own during the call and takes that lock when called back.
class Guard {
 public:
  Guard() : hold_(library().activity.lock, std::defer_lock) {
    if (library().faults.strict) hold_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> hold_;
};

/// Hangs in a forked child, as CUPTI has been seen to do.
void hang_in_child() {
  while (library().is_forked()) pause();
}

Result enable(std::uint32_t kind, bool on) {
  const Guard guard;
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  if (kind >= standin::kMaxKinds || standin::record_bytes(kind, library().faults.version) == 0)
    return standin::kInvalidKind;
  if (const auto fault = library().faults.enable.find(kind);
      on && fault != library().faults.enable.end())
    return static_cast<Result>(fault->second);
  library().activity.enable(kind, on);
  return standin::kSuccess;
}

[[maybe_unused]] Result enable_call(std::uint32_t kind, std::uint32_t callback, bool on) {
  const Guard guard;
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  library().activity.enable_call(kind, callback, on);
  return standin::kSuccess;
}

}  // namespace

STANDIN_EXPORT Result cuptiGetVersion(std::uint32_t* version) {
  if (version == nullptr) return standin::kInvalidParameter;
  *version = library().faults.version;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiSubscribe(void** subscriber, standin::Callback callback, void* user) {
  return library().subscribe(subscriber, callback, user, nullptr);
}

#if STANDIN_VERSION >= 130000
STANDIN_EXPORT Result cuptiSubscribe_v2(void** subscriber, standin::Callback callback, void* user,
                                        void* params) {
  struct Params {
    std::size_t struct_size;
    const char* name;
    char* old_name;
    std::size_t old_size;
  };
  auto* wanted = static_cast<Params*>(params);
  if (wanted == nullptr || wanted->struct_size != sizeof(Params)) return standin::kInvalidParameter;
  const Result result = library().subscribe(subscriber, callback, user, wanted->name);
  if (result == standin::kMultipleSubscribers && wanted->old_name != nullptr &&
      wanted->old_size > 0) {
    const std::string holder = library().holder();
    const std::size_t size = std::min(holder.size(), wanted->old_size - 1);
    std::memcpy(wanted->old_name, holder.data(), size);
    wanted->old_name[size] = '\0';
  }
  return result;
}

STANDIN_EXPORT Result cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) {
  return library().gate();
}

STANDIN_EXPORT Result cuptiActivityEnableAllSyncRecords(std::uint8_t) { return library().gate(); }
#endif

// Since CUDA 12.5.
#if STANDIN_VERSION >= 23
STANDIN_EXPORT Result cuptiActivityEnableRuntimeApi(std::uint32_t callback, std::uint8_t on) {
  return enable_call(standin::kRuntime, callback, on != 0);
}

STANDIN_EXPORT Result cuptiActivityEnableDriverApi(std::uint32_t callback, std::uint8_t on) {
  return enable_call(standin::kDriver, callback, on != 0);
}
#endif

STANDIN_EXPORT Result cuptiUnsubscribe(void*) {
  library().unsubscribe();
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiEnableCallback(std::uint32_t on, void* subscriber, std::uint32_t domain,
                                          std::uint32_t id) {
  const Guard guard;
  return library().enable_callback(on != 0, subscriber, domain, id);
}

STANDIN_EXPORT Result cuptiEnableDomain(std::uint32_t on, void*, std::uint32_t domain) {
  const Guard guard;
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  library().enable_domain(on != 0, domain);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiSetThreadIdType(std::uint32_t type) {
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  if (type > 1) return standin::kInvalidParameter;
  if (library().activity.is_any_enabled()) standin::complain("thread ids change while recording");
  standin::use_system_thread_ids(type == 1);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityRegisterTimestampCallback(standin::Clock clock) {
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  if (clock == nullptr) return standin::kInvalidParameter;
  if (library().activity.is_any_enabled()) standin::complain("the clock changes while recording");
  library().activity.set_clock(clock);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityRegisterCallbacks(standin::Requested requested,
                                                     standin::Completed completed) {
  const Guard guard;
  // This succeeds even without a driver.
  if (requested == nullptr || completed == nullptr) return standin::kInvalidParameter;
  if (library().faults.register_callbacks != 0)
    return static_cast<Result>(library().faults.register_callbacks);
  if (!library().faults.no_driver) library().activity.register_callbacks(requested, completed);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityEnable(std::uint32_t kind) { return enable(kind, true); }
STANDIN_EXPORT Result cuptiActivityEnableAndDump(std::uint32_t kind) { return enable(kind, true); }
STANDIN_EXPORT Result cuptiActivityDisable(std::uint32_t kind) { return enable(kind, false); }

STANDIN_EXPORT Result cuptiActivitySetAttribute(std::uint32_t, std::size_t* size, void* value) {
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  return size == nullptr || value == nullptr ? standin::kInvalidParameter : standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityFlushAll(std::uint32_t flag) {
  hang_in_child();
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  if (!library().activity.has_callbacks()) return standin::kInvalidOperation;
  while (library().faults.flush_hangs) pause();
  library().activity.flush(flag == 1);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  if (const Result closed = library().gate(); closed != standin::kSuccess) return closed;
  library().activity.set_period(milliseconds);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                                 std::uint8_t** record) {
  if (buffer == nullptr || record == nullptr) return standin::kInvalidParameter;
  return static_cast<Result>(library().activity.next(buffer, valid, record));
}

STANDIN_EXPORT Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t,
                                                        std::size_t* dropped) {
  const Guard guard;
  if (dropped == nullptr) return standin::kInvalidParameter;
  *dropped = library().activity.take_dropped();
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetCallbackName(std::uint32_t domain, std::uint32_t id,
                                           const char** name) {
  const char* found = standin::callback_name(domain, id);
  if (found == nullptr || name == nullptr) return standin::kInvalidParameter;
  *name = found;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetResultString(std::int32_t result, const char** text) {
  static constexpr struct {
    std::int32_t result;
    const char* text;
  } kTexts[] = {
      {0, "CUPTI_SUCCESS"},
      {1, "CUPTI_ERROR_INVALID_PARAMETER"},
      {7, "CUPTI_ERROR_INVALID_OPERATION"},
      {12, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
      {15, "CUPTI_ERROR_NOT_INITIALIZED"},
      {21, "CUPTI_ERROR_INVALID_KIND"},
      {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
      {38, "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED"},
      {39, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
      {40, "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"},
      {999, "CUPTI_ERROR_UNKNOWN"},
  };
  for (const auto& known : kTexts) {
    if (known.result != result || text == nullptr) continue;
    *text = known.text;
    return standin::kSuccess;
  }
  return standin::kInvalidParameter;
}

STANDIN_EXPORT Result cuptiGetTimestamp(std::uint64_t* timestamp) {
  if (timestamp == nullptr) return standin::kInvalidParameter;
  *timestamp = library().activity.now();
  return standin::kSuccess;
}

// Handles of the stand-in are pointers to their ids.
STANDIN_EXPORT Result cuptiGetGraphNodeId(const std::uint64_t* node, std::uint64_t* id) {
  if (node == nullptr || id == nullptr) return standin::kInvalidParameter;
  *id = *node;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetGraphId(const std::uint64_t* graph, std::uint32_t* id) {
  if (graph == nullptr || id == nullptr) return standin::kInvalidParameter;
  *id = static_cast<std::uint32_t>(*graph);
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetGraphExecId(const std::uint64_t* graph, std::uint32_t* id) {
  return cuptiGetGraphId(graph, id);
}

STANDIN_EXPORT Result cuptiGetContextId(void*, std::uint32_t* id) {
  if (id == nullptr) return standin::kInvalidParameter;
  *id = 1;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetDeviceId(void*, std::uint32_t* id) {
  if (id == nullptr) return standin::kInvalidParameter;
  *id = 0;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiGetStreamIdEx(void*, void*, std::uint8_t, std::uint32_t* id) {
  if (id == nullptr) return standin::kInvalidParameter;
  *id = 7;
  return standin::kSuccess;
}

STANDIN_EXPORT Result cuptiFinalize() {
  standin::complain("cuptiFinalize is called; it races with everything");
  library().activity.end();
  return standin::kSuccess;
}
