#pragma once

#include <pthread.h>

namespace foretrace::collect {

/// Holds the lock of a pthread mutex. With pthread mutexes, conditions can wait by the monotonic
/// clock (monotonic.h) in any version of the C library.
class MutexLock {
 public:
  explicit MutexLock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace foretrace::collect
