#pragma once

// The thread that opens, writes and closes the recorder's files. It has a table of descriptors of
// its own, so that
//
//   - closefrom(), daemon() and the like close none of our files,
//   - no file of the program ever has the number of one of ours,
//   - forked children inherit nothing of ours, and
//   - a file that we open for a moment never takes a number that the program counts on.
//
// It does one task at a time. Everybody else hands tasks over and waits, but not for ever: a disk
// that hangs must not hang the program.

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "collect/own/monotonic.h"

namespace foretrace::collect {

class FileThread {
 public:
  using Task = void (*)(void* subject);
  /// How long to wait, in nanoseconds: the program's own threads do not wait for a disk that hangs.
  enum class Patience : std::uint64_t { of_program = 1'000'000'000, of_recorder = 30'000'000'000 };

  /// Returns 0 or an errno.
  int start();
  /// False if the system allows no table of our own: then its descriptors are the program's, too.
  bool is_private() const { return is_private_; }

  /// Calls `prepare` here, when no other task is under way, and then `task(subject)` on the thread.
  /// False if that was not done, or not known to be done, when patience ended. A task that was left
  /// behind goes on, so its subject must live for ever; while one seems to hang, the program's
  /// threads do not wait at all.
  template <class Prepare>
  bool run(const Prepare& prepare, Task task, void* subject, Patience patience) {
    const std::uint64_t until = monotonic_now() + static_cast<std::uint64_t>(patience);
    if (!take_turn(until, patience)) return false;
    prepare();
    return hand_over(task, subject, until);
  }
  /// The same without waiting for the task, only for the one before it. True if it is under way.
  template <class Prepare>
  bool post(const Prepare& prepare, Task task, void* subject, Patience patience) {
    if (!take_turn(monotonic_now() + static_cast<std::uint64_t>(patience), patience)) return false;
    prepare();
    give(task, subject, true);
    return true;
  }

  /// From now on, nobody waits beyond this time of the monotonic clock.
  void hurry(std::uint64_t until);

 private:
  enum class Turn : std::uint8_t { free, taken, given, done };

  static void* thread_main(void* self);
  void serve();
  bool take_turn(std::uint64_t until, Patience patience);
  void give(Task task, void* subject, bool is_left_behind);
  bool hand_over(Task task, void* subject, std::uint64_t until);
  bool wait_for_change(std::uint64_t until);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Condition changed_;
  Turn turn_ = Turn::free;
  bool is_left_behind_ = false;  ///< Nobody waits for the end of the task, or not any longer.
  bool seems_to_hang_ = false;   ///< A thread of the program has waited for it in vain.
  bool has_started_ = false;
  Task task_ = nullptr;
  void* subject_ = nullptr;
  std::uint64_t until_ = UINT64_MAX;
  std::atomic<bool> is_private_{false};
  pid_t process_ = 0;
};

}  // namespace foretrace::collect
