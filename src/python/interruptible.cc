#include "python/interruptible.h"

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

}  // namespace

void abandon(std::thread thread) {
  std::packaged_task<void()> wait([thread = std::move(thread)]() mutable { thread.join(); });
  Abandoned one;
  one.done = wait.get_future();
  one.thread = std::thread(std::move(wait));
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(one));
}

void finish_abandoned() {
  constexpr int kInterrupted = 130;  // As a shell says it of SIGINT.
  namespace py = pybind11;
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
