#include "base/threads.h"

#include <system_error>
#include <utility>

namespace foretrace {
namespace {

/// Number of threads in all unfinished calls of run_on_threads(), without the calling threads.
std::atomic<std::size_t> running = 0;

/// Joins the threads before they stop counting as running.
class HelperThreads {
 public:
  ~HelperThreads() {
    const std::size_t count = threads_.size();
    threads_.clear();
    running -= count;
  }
  /// Returns false if the system refuses a thread.
  bool add(std::function<void()> work) {
    auto made = new_thread(std::move(work));
    if (!made) return false;
    threads_.push_back(std::move(*made));
    ++running;
    return true;
  }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace

std::size_t core_count() { return std::max(1U, std::thread::hardware_concurrency()); }

std::optional<std::jthread> new_thread(std::function<void()> work) try {
  return std::jthread(std::move(work));
} catch (const std::system_error&) {
  return {};
}

void run_on_threads(std::size_t threads, const std::function<void(std::size_t)>& work) {
  HelperThreads helpers;
  for (std::size_t i = 1; i < threads; ++i) {
    if (!helpers.add([&work, i] { work(i); })) break;
  }
  work(0);
}

std::size_t threads_for_idle_cores() {
  const std::size_t cores = core_count(), others = running;
  return cores > others ? cores - others : 1;
}

}  // namespace foretrace
