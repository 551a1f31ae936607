#pragma once

// Ctrl-C in long calls. Python handles signals only in its main thread, between its own
// instructions. So the work runs on another thread, while the caller checks for signals ten times a
// second; in between, it does not hold Python's lock.

#include <functional>
#include <future>
#include <memory>

namespace foretrace {

/// Waits for all abandoned calculations, so that none runs while the process ends: a calculation
/// goes on after its caller was interrupted. Another Ctrl-C ends the process at once.
void finish_abandoned();

/// Runs `work` and returns when it is done. If the handler of a signal raises an exception
/// meanwhile, throws that exception: after calling `stop` and waiting for the work if `stop` is
/// set, otherwise at once, with the work abandoned. If no thread can be started, the work runs on
/// the caller's thread and signals are handled afterwards. REQUIRES: `work` does not throw.
void run_interruptibly(std::function<void()> work, const std::function<void()>& stop);

/// Returns or throws what `work` does, or throws the exception of a signal's handler. REQUIRES:
/// `work` owns all data that it uses, because it may outlive the call.
template <class Work>
auto interruptible(Work work, const std::function<void()>& stop = {}) -> decltype(work()) {
  const auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
  std::future<decltype(work())> done = task->get_future();
  run_interruptibly([task] { (*task)(); }, stop);
  return done.get();
}

}  // namespace foretrace
