#include "collect/runtime/file_thread.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "collect/runtime/threads.h"

namespace foretrace::collect {

namespace {

#ifdef SYS_close_range
constexpr long kCloseRange = SYS_close_range;
#else
constexpr long kCloseRange = 436;
#endif
constexpr unsigned kUnshare = 2;  ///< CLOSE_RANGE_UNSHARE, of Linux 5.9.

/// Gives the calling thread its own, empty table of descriptors. Returns false if the system has no
/// such call, or forbids it. REQUIRES: the process has another thread; otherwise this would empty
/// the program's own table.
bool leave_shared_descriptors() {
  if (syscall(kCloseRange, 0U, ~0U, kUnshare) == 0) return true;
  if (unshare(CLONE_FILES) != 0) return false;
  // Close the copies of the program's descriptors, which would keep its pipes open.
  constexpr rlim_t kMax = 1U << 20U;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kMax;
  for (rlim_t i = 0; i < std::min(limit.rlim_cur, kMax); ++i) ::close(static_cast<int>(i));
  return true;
}

}  // namespace

int FileThread::start() {
  process_ = getpid();
  const int error = start_detached(thread_main, this);
  if (error != 0) return error;
  // Wait until the thread has its own table: see the requirement of leave_shared_descriptors().
  const MutexLock lock(mutex_);
  while (!has_started_) changed_.wait(mutex_);
  return 0;
}

void* FileThread::thread_main(void* self) {
  pthread_setname_np(pthread_self(), "foretrace-files");
  static_cast<FileThread*>(self)->serve();
  return nullptr;
}

void FileThread::serve() {
  is_private_ = leave_shared_descriptors();
  const MutexLock lock(mutex_);
  has_started_ = true;
  changed_.wake_all();
  for (;;) {
    while (task_state_ != TaskState::posted) changed_.wait(mutex_);
    pthread_mutex_unlock(&mutex_);
    task_(subject_);
    pthread_mutex_lock(&mutex_);
    task_state_ = is_abandoned_ ? TaskState::free : TaskState::done;
    is_abandoned_ = false;
    seems_to_hang_ = false;
    changed_.wake_all();
  }
}

bool FileThread::claim_slot(std::uint64_t until, Timeout timeout) {
  // A child that was created without fork()'s handlers has our memory, but not our thread.
  if (process_ != getpid()) return false;
  const MutexLock lock(mutex_);
  const bool from_program = timeout == Timeout::program;
  while (task_state_ != TaskState::free) {
    if (from_program && seems_to_hang_) return false;
    if (wait_for_change(until)) continue;
    seems_to_hang_ = seems_to_hang_ || from_program;
    return false;
  }
  task_state_ = TaskState::claimed;
  return true;
}

void FileThread::post_task(Task task, void* subject, bool is_abandoned) {
  const MutexLock lock(mutex_);
  task_ = task;
  subject_ = subject;
  is_abandoned_ = is_abandoned;
  task_state_ = TaskState::posted;
  changed_.wake_all();
}

bool FileThread::post_and_wait(Task task, void* subject, std::uint64_t until) {
  post_task(task, subject, false);
  const MutexLock lock(mutex_);
  while (task_state_ != TaskState::done) {
    if (wait_for_change(until)) continue;
    is_abandoned_ = true;
    seems_to_hang_ = true;
    return false;
  }
  task_state_ = TaskState::free;
  changed_.wake_all();
  return true;
}

/// Returns false when the time is up.
bool FileThread::wait_for_change(std::uint64_t until) {
  return changed_.wait_until(std::min(until, deadline_), mutex_);
}

void FileThread::set_deadline(std::uint64_t until) {
  if (process_ != getpid()) return;
  const MutexLock lock(mutex_);
  deadline_ = until;
  changed_.wake_all();
}

}  // namespace foretrace::collect
