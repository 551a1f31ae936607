#include "python/interruptible.h"

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace foretrace {
namespace {

/// A thread, and a future that becomes ready when the work is done.
struct BackgroundWork {
  std::jthread thread;
  std::future<void> done;
};

std::mutex mutex;
std::vector<BackgroundWork> abandoned;

namespace py = pybind11;

bool is_done_soon(const BackgroundWork& running) {
  const py::gil_scoped_release release;
  return running.done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
}

std::optional<BackgroundWork> start_thread(const std::function<void()>& work) {
  const auto done = std::make_shared<std::promise<void>>();
  auto thread = new_thread([work, done] {
    work();
    done->set_value();
  });
  if (!thread) return {};
  return BackgroundWork{std::move(*thread), done->get_future()};
}

}  // namespace

void run_interruptibly(std::function<void()> work, const std::function<void()>& stop) {
  std::optional<BackgroundWork> running = start_thread(work);
  if (!running) {
    const py::gil_scoped_release release;
    return work();
  }
  while (!is_done_soon(*running)) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    if (stop) {
      stop();
      while (!is_done_soon(*running)) {
      }
    } else {
      const std::lock_guard lock(mutex);
      abandoned.push_back(std::move(*running));
    }
    throw interrupt;
  }
}

void finish_abandoned() {
  constexpr int kInterrupted = 130;  // As a shell reports a program that SIGINT ended.
  std::vector<BackgroundWork> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(abandoned);
  }
  for (const BackgroundWork& running : all) {
    while (!is_done_soon(running)) {
      if (PyErr_CheckSignals() != 0) std::_Exit(kInterrupted);
    }
  }
}

}  // namespace foretrace
