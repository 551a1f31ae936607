#include "collect/cupti/cupti_flush.h"

#include <csignal>

#include "collect/own/locked.h"

namespace foretrace::collect {

std::optional<cupti::Result> CuptiFlush::run(const CuptiLibrary& cupti, std::uint32_t flag,
                                             std::uint64_t until) {
  cupti_ = &cupti;
  if (!has_thread_ && !start()) return {};
  const Locked lock(mutex_);
  while (is_wanted_) {
    if (!changed_.wait_until(until, mutex_)) return {};
  }
  flag_ = flag;
  is_wanted_ = true;
  changed_.wake_all();
  while (is_wanted_) {
    if (!changed_.wait_until(until, mutex_)) return {};
  }
  return result_;
}

bool CuptiFlush::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  has_thread_ = pthread_create(&thread, nullptr, thread_main, this) == 0;
  if (has_thread_) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_thread_;
}

void* CuptiFlush::thread_main(void* self) {
  pthread_setname_np(pthread_self(), "foretrace-cupti");
  static_cast<CuptiFlush*>(self)->serve();
  return nullptr;
}

void CuptiFlush::serve() {
  const Locked lock(mutex_);
  for (;;) {
    while (!is_wanted_) changed_.wait(mutex_);
    pthread_mutex_unlock(&mutex_);
    const cupti::Result result = cupti_->flush_all(flag_);
    pthread_mutex_lock(&mutex_);
    result_ = result;
    is_wanted_ = false;
    changed_.wake_all();
  }
}

}  // namespace foretrace::collect
