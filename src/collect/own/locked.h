#pragma once

#include <pthread.h>

namespace foretrace::collect {

/// Holds a pthread mutex. Conditions of one can be waited for by the monotonic clock (monotonic.h)
/// with any version of the C library.
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
