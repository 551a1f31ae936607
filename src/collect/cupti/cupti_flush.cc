#include "collect/cupti/cupti_flush.h"

#include "collect/runtime/threads.h"

namespace foretrace::collect {

std::optional<cupti::Result> CuptiFlush::run(const CuptiLibrary& cupti, std::uint32_t flag,
                                             std::uint64_t until) {
  if (!has_thread_ && !start()) return {};
  const MutexLock lock(mutex_);
  while (is_pending_) {
    if (!changed_.wait_until(until, mutex_)) return {};
  }
  cupti_ = &cupti;
  flag_ = flag;
  is_pending_ = true;
  changed_.wake_all();
  while (is_pending_) {
    if (!changed_.wait_until(until, mutex_)) return {};
  }
  return result_;
}

bool CuptiFlush::start() {
  has_thread_ = start_detached(thread_main, this) == 0;
  return has_thread_;
}

void* CuptiFlush::thread_main(void* self) {
  pthread_setname_np(pthread_self(), "foretrace-cupti");
  static_cast<CuptiFlush*>(self)->serve();
  return nullptr;
}

void CuptiFlush::serve() {
  const MutexLock lock(mutex_);
  for (;;) {
    while (!is_pending_) changed_.wait(mutex_);
    const CuptiLibrary& cupti = *cupti_;
    const std::uint32_t flag = flag_;
    pthread_mutex_unlock(&mutex_);
    const cupti::Result result = cupti.flush_all(flag);
    pthread_mutex_lock(&mutex_);
    result_ = result;
    is_pending_ = false;
    changed_.wake_all();
  }
}

}  // namespace foretrace::collect
