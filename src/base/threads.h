#pragma once

// Work on several threads. If the system refuses a thread (limits on processes, a full cgroup), the
// work is done by fewer threads, at least by the calling one.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace foretrace {

/// Number of cores, at least 1.
std::size_t core_count();

/// Starts a thread that calls `work`, which may not throw. Returns nullopt if the system refuses
/// it.
std::optional<std::jthread> new_thread(std::function<void()> work);

/// Calls work(thread) once on each of at most `threads` threads, numbered from 0, and returns when
/// all have. The calling thread is number 0. `work` may not throw.
void run_on_threads(std::size_t threads, const std::function<void(std::size_t)>& work);

/// Number of threads to use: the calling one and one for each idle core, so that nested calls do
/// not multiply threads.
std::size_t threads_for_idle_cores();

/// Calls work(thread, i) for every i below `count`, in order of i, on at most `threads` threads.
/// After an exception no further i is begun; then the exception of the smallest i is thrown.
template <class Work>
void on_threads(std::size_t threads, std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  run_on_threads(std::min(threads, count), [&](std::size_t thread) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(thread, i);
      } catch (...) {
        errors[i] = std::current_exception();
        next = count;
      }
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// Calls work(i) for every i below `count`, on as many threads as there are idle cores.
template <class Work>
void on_all_cores(std::size_t count, const Work& work) {
  on_threads(threads_for_idle_cores(), count, [&](std::size_t, std::size_t i) { work(i); });
}

}  // namespace foretrace
