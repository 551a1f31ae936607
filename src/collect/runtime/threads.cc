#include "collect/runtime/threads.h"

#include <pthread.h>
#include <signal.h>

namespace foretrace::collect {

int start_detached(void* (*main)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, main, argument);
  if (error == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace foretrace::collect
