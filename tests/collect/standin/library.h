#pragma once

// The stand-in as one object: the state that clients set by CUPTI's functions (cupti.cc), and the
// work of the played program (driver.cc).

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "collect/standin/activity.h"

namespace standin {

enum Result : std::int32_t {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidOperation = 7,
  kNotInitialized = 15,
  kInvalidKind = 21,
  kMultipleSubscribers = 39,
  kUnknown = 999,
};

enum Domain : std::uint32_t {
  kDriverDomain = 1,
  kRuntimeDomain = 2,
  kResourceDomain = 3,
  kStateDomain = 6
};

using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t id, const void* data);

class Library {
 public:
  static Library& instance();

  Library();

  /// Every function returns this before it does anything, unless it is kSuccess.
  Result gate() const;
  Result subscribe(void** subscriber, Callback callback, void* user, const char* name);
  std::string holder() const;
  Result enable_callback(bool on, const void* subscriber, std::uint32_t domain, std::uint32_t id);
  void enable_domain(bool on, std::uint32_t domain);
  /// Calls the subscriber, if it subscribed to this call.
  void call_back(std::uint32_t domain, std::uint32_t id, const void* data);
  void unsubscribe();
  bool is_forked() const { return is_forked_; }

  Faults faults;
  Activity activity{faults};

 private:
  static void on_fork();

  mutable std::mutex mutex_;
  bool has_subscriber_ = false;
  Callback callback_ = nullptr;
  void* user_ = nullptr;
  std::string name_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> callbacks_;
  std::set<std::uint32_t> domains_;
  std::atomic<bool> is_forked_{false};
};

/// The name as CUPTI reports it, such as "cudaLaunchKernel_v7000"; nullptr for a number that is not
/// played.
const char* callback_name(std::uint32_t domain, std::uint32_t id);

/// Delivers the buffers of a dump as if they were recorded during this run.
void replay(Library& library);

}  // namespace standin
