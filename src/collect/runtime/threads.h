#pragma once

// Threads of our own, and the monotonic clock that they wait by. The wall clock may be set at any
// time, and a wait by it would then end too early or never.

#include <pthread.h>

#include <cstdint>
#include <ctime>

namespace foretrace::collect {

inline std::uint64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}
inline std::uint64_t monotonic_now() { return nanoseconds_of(CLOCK_MONOTONIC); }

/// A condition variable that waits by the monotonic clock. REQUIRES: the mutex that is passed to
/// wait() or wait_until() is locked.
class Condition {
 public:
  Condition() {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &clock);
    pthread_condattr_destroy(&clock);
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  // The condition is never destroyed, because threads may still wait when the program ends.

  void wait(pthread_mutex_t& mutex) { pthread_cond_wait(&condition_, &mutex); }
  /// Returns false, without waiting, if the time is already up. Otherwise waits and returns true.
  bool wait_until(std::uint64_t until, pthread_mutex_t& mutex) {
    if (monotonic_now() >= until) return false;
    timespec time{};
    time.tv_sec = static_cast<time_t>(until / 1'000'000'000);
    time.tv_nsec = static_cast<long>(until % 1'000'000'000);
    pthread_cond_timedwait(&condition_, &mutex, &time);
    return true;
  }
  void wake_all() { pthread_cond_broadcast(&condition_); }

 private:
  pthread_cond_t condition_{};
};

/// Holds the lock of a pthread mutex. With pthread mutexes, conditions can wait by the monotonic
/// clock in any version of the C library.
class MutexLock {
 public:
  explicit MutexLock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

/// Starts a detached thread that blocks all signals, because they are meant for the program's own
/// threads. Returns 0 or the error of pthread_create.
int start_detached(void* (*main)(void*), void* argument);

}  // namespace foretrace::collect
