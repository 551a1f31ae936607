#pragma once

// Ctrl-C in long calls. Python notices signals in its main thread only, between its own
// instructions, so the work runs on a thread of its own while the caller looks for signals ten
// times a second, without Python's lock.

#include <chrono>
#include <functional>
#include <future>
#include <thread>

namespace foretrace {

/// Calculations whose callers were interrupted go on until they are done. This one waits for all,
/// so that nothing runs while the process ends; another Ctrl-C then ends the process at once.
void finish_abandoned();

/// Waits for the thread at work; `is_done` looks for a tenth of a second whether it is. On a signal
/// whose handler raises an exception, calls `stop` and waits if there is one, otherwise abandons
/// the thread, and throws that exception.
void join_interruptibly(std::thread thread, const std::function<bool()>& is_done,
                        const std::function<void()>& stop);

/// Returns or throws what `work` does, or throws the exception of a signal's handler. `work` must
/// own what it needs.
template <class Work>
auto interruptible(Work work, const std::function<void()>& stop = {}) -> decltype(work()) {
  std::packaged_task<decltype(work())()> task(std::move(work));
  std::future<decltype(work())> done = task.get_future();
  join_interruptibly(
      std::thread(std::move(task)),
      [&] { return done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready; },
      stop);
  return done.get();
}

}  // namespace foretrace
