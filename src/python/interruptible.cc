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

/// A thread at work, and a future that becomes ready when the work is done.
struct AtWork {
  std::jthread thread;
  std::future<void> done;
};

std::mutex mutex;
std::vector<AtWork> abandoned;

namespace py = pybind11;

bool is_done_soon(const AtWork& one) {
  const py::gil_scoped_release release;
  return one.done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
}

std::optional<AtWork> begin(const std::function<void()>& work) {
  const auto done = std::make_shared<std::promise<void>>();
  auto thread = new_thread([work, done] {
    work();
    done->set_value();
  });
  if (!thread) return {};
  return AtWork{std::move(*thread), done->get_future()};
}

}  // namespace

void run_interruptibly(std::function<void()> work, const std::function<void()>& stop) {
  std::optional<AtWork> one = begin(work);
  if (!one) {
    const py::gil_scoped_release release;
    return work();
  }
  while (!is_done_soon(*one)) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    if (stop) {
      stop();
      while (!is_done_soon(*one)) {
      }
    } else {
      const std::lock_guard lock(mutex);
      abandoned.push_back(std::move(*one));
    }
    throw interrupt;
  }
}

void finish_abandoned() {
  constexpr int kInterrupted = 130;  // As a shell reports a program that SIGINT ended.
  std::vector<AtWork> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(abandoned);
  }
  for (const AtWork& one : all) {
    while (!is_done_soon(one)) {
      if (PyErr_CheckSignals() != 0) std::_Exit(kInterrupted);
    }
  }
}

}  // namespace foretrace
