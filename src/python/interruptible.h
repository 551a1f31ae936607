#pragma once

// Ctrl-C in long calls. Python notices signals in its main thread only, between its own
// instructions, so the work runs on a thread of its own while the caller looks for signals ten
// times a second, without Python's lock.

#include <pybind11/pybind11.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

namespace foretrace {

/// Calculations whose callers were interrupted go on until they are done. This one waits for all,
/// so that nothing runs while the process ends; another Ctrl-C then ends the process at once.
void finish_abandoned();

void abandon(std::thread thread);

/// Returns or throws what `work` does. On a signal whose handler raises an exception, calls `stop`
/// and waits if there is one, otherwise abandons the work, and throws that exception. `work` must
/// own what it needs.
template <class Work>
auto interruptible(Work work, const std::function<void()>& stop = {}) -> decltype(work()) {
  namespace py = pybind11;
  std::packaged_task<decltype(work())()> task(std::move(work));
  std::future<decltype(work())> done = task.get_future();
  std::thread thread(std::move(task));
  const auto is_done = [&] {
    const py::gil_scoped_release release;
    return done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
  };
  while (!is_done()) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    if (!stop) {
      abandon(std::move(thread));
      throw interrupt;
    }
    stop();
    while (!is_done()) {
    }
    thread.join();
    throw interrupt;
  }
  thread.join();
  return done.get();
}

}  // namespace foretrace
