#pragma once

// The thread that opens, writes and closes the recorder's files. It has its own table of
// descriptors, so that
//
//   - closefrom(), daemon() and the like do not close our files,
//   - a file of the program never has the same number as one of ours,
//   - forked children inherit none of our files, and
//   - a file that we open for a moment never takes a number that the program relies on.
//
// It does one task at a time. Other threads hand tasks over and wait for a limited time: a disk
// that hangs must not hang the program.

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "collect/runtime/threads.h"

namespace foretrace::collect {

class FileThread {
 public:
  using Task = void (*)(void* subject);
  /// How long to wait, in nanoseconds. The program's own threads wait only briefly, in case the
  /// disk hangs.
  enum class Timeout : std::uint64_t { program = 1'000'000'000, recorder = 30'000'000'000 };

  /// Starts the thread. Returns 0 or an errno.
  int start();
  /// Whether the thread has its own table of descriptors. If the system does not allow that, it
  /// shares the program's.
  bool is_private() const { return is_private_; }

  /// Waits until no other task is under way, calls `prepare` on this thread, and then runs
  /// `task(subject)` on the file thread. Returns false if the task was not started, or has not
  /// finished, when `timeout` ran out. An unfinished task goes on, and while it seems to hang, the
  /// program's threads do not wait at all. REQUIRES: `subject` lives for ever.
  template <class Prepare>
  bool run(const Prepare& prepare, Task task, void* subject, Timeout timeout) {
    const std::uint64_t until = monotonic_now() + static_cast<std::uint64_t>(timeout);
    if (!claim_slot(until, timeout)) return false;
    prepare();
    return post_and_wait(task, subject, until);
  }
  /// Like run(), but waits only for the task before this one. Returns true if the task was handed
  /// over.
  template <class Prepare>
  bool post(const Prepare& prepare, Task task, void* subject, Timeout timeout) {
    if (!claim_slot(monotonic_now() + static_cast<std::uint64_t>(timeout), timeout)) return false;
    prepare();
    post_task(task, subject, true);
    return true;
  }

  /// Limits all waiting, current and later, to this time of the monotonic clock.
  void set_deadline(std::uint64_t until);

 private:
  enum class TaskState : std::uint8_t { free, claimed, posted, done };

  static void* thread_main(void* self);
  void serve();
  bool claim_slot(std::uint64_t until, Timeout timeout);
  void post_task(Task task, void* subject, bool is_abandoned);
  bool post_and_wait(Task task, void* subject, std::uint64_t until);
  bool wait_for_change(std::uint64_t until);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Condition changed_;
  TaskState task_state_ = TaskState::free;
  bool is_abandoned_ = false;   ///< No thread waits for the end of the task.
  bool seems_to_hang_ = false;  ///< A thread has waited for the task in vain.
  bool has_started_ = false;
  Task task_ = nullptr;
  void* subject_ = nullptr;
  std::uint64_t deadline_ = UINT64_MAX;
  std::atomic<bool> is_private_{false};
  pid_t process_ = 0;
};

}  // namespace foretrace::collect
