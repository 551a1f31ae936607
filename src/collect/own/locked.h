#pragma once

#include <pthread.h>

namespace foretrace::collect {

/// Holds a pthread mutex, of which unlike std::mutex a condition may be waited for with a limit.
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
