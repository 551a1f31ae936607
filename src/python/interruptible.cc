#include "python/interruptible.h"

#include <pybind11/pybind11.h>

#include <cstdlib>
#include <mutex>
#include <vector>

namespace foretrace {
namespace {

struct Abandoned {
  std::thread thread;
  std::future<void> done;
};

std::mutex mutex;
std::vector<Abandoned> abandoned;

namespace py = pybind11;

void abandon(std::thread thread) {
  std::packaged_task<void()> wait([thread = std::move(thread)]() mutable { thread.join(); });
  Abandoned one;
  one.done = wait.get_future();
  one.thread = std::thread(std::move(wait));
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(one));
}

}  // namespace

void join_interruptibly(std::thread thread, const std::function<bool()>& is_done,
                        const std::function<void()>& stop) {
  const auto looked = [&] {
    const py::gil_scoped_release release;
    return is_done();
  };
  while (!looked()) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    if (!stop) {
      abandon(std::move(thread));
      throw interrupt;
    }
    stop();
    while (!looked()) {
    }
    thread.join();
    throw interrupt;
  }
  thread.join();
}

void finish_abandoned() {
  constexpr int kInterrupted = 130;  // As a shell says it of SIGINT.
  std::vector<Abandoned> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(abandoned);
  }
  for (Abandoned& one : all) {
    const auto is_done = [&] {
      const py::gil_scoped_release release;
      return one.done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
    };
    while (!is_done()) {
      if (PyErr_CheckSignals() != 0) std::_Exit(kInterrupted);
    }
    one.thread.join();
  }
}

}  // namespace foretrace
