#pragma once

#include <pthread.h>

namespace foretrace::collect {

/// Holds the lock of a pthread mutex. With pthread mutexes, conditions can wait by the monotonic
/// clock (monotonic.h) in any version of the C library.
class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace foretrace::collect
