#pragma once

#include <pthread.h>

#include <ctime>

namespace foretrace::collect {

/// A pthread mutex, which unlike std::mutex may be waited for with a limit.
class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  Locked(pthread_mutex_t& mutex, int most_seconds) : mutex_(mutex) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += most_seconds;
    holds_ = pthread_mutex_timedlock(&mutex_, &until) == 0;
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (holds_) pthread_mutex_unlock(&mutex_);
  }
  bool holds() const { return holds_; }

 private:
  pthread_mutex_t& mutex_;
  bool holds_ = true;
};

}  // namespace foretrace::collect
