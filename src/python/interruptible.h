#pragma once

// Ctrl-C in long calls. Python notices signals in its main thread only, between its own
// instructions, so the work runs on a thread of its own while the caller looks for signals ten
// times a second, without Python's lock.

#include <functional>
#include <future>
#include <memory>

namespace foretrace {

/// Calculations whose callers were interrupted go on until they are done. This one waits for all,
/// so that nothing runs while the process ends; another Ctrl-C then ends the process at once.
void finish_abandoned();

/// Returns once `work`, which may not throw, is done. On a signal whose handler raises an
/// exception, calls `stop` and waits if there is one, otherwise abandons the work, and throws that
/// exception. Where the system has no thread to give, the work is done first and signals are seen
/// afterwards.
void run_interruptibly(std::function<void()> work, const std::function<void()>& stop);

/// Returns or throws what `work` does, or throws the exception of a signal's handler. `work` must
/// own what it needs.
template <class Work>
auto interruptible(Work work, const std::function<void()>& stop = {}) -> decltype(work()) {
  const auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
  std::future<decltype(work())> done = task->get_future();
  run_interruptibly([task] { (*task)(); }, stop);
  return done.get();
}

}  // namespace foretrace
