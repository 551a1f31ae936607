#include "collect/spool/thread_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace foretrace::collect {

namespace {

thread_local ThreadLog* log_of_thread = nullptr;

}  // namespace

/// The list of all logs.
class ThreadLogs {
 public:
  ThreadLog* add(SpoolWriter& writer) {
    auto* log = new (std::nothrow) ThreadLog;
    if (log == nullptr) return nullptr;
    log->writer_ = &writer;
    log->process_ = ::getpid();
    log->thread_ = static_cast<std::uint32_t>(syscall(SYS_gettid));
    const std::lock_guard lock(mutex_);
    if (!has_key_) has_key_ = pthread_key_create(&key_, end_of_thread) == 0;
    if (has_key_) pthread_setspecific(key_, log);
    log->next_ = first_;
    first_ = log;
    return log;
  }

  void drain() {
    const std::lock_guard drain_lock(drain_mutex_);
    for (ThreadLog* log = first(); log != nullptr; log = log->next_) {
      {
        const std::lock_guard log_lock(log->mutex_);
        log->move_to(copy_);
      }
      log->writer_->write_rows(copy_.bytes, copy_.used, copy_.rows, SpoolWriter::Timeout::recorder);
    }
    forget_ended();
  }

 private:
  ThreadLog* first() {
    const std::lock_guard lock(mutex_);
    return first_;
  }

  void forget_ended() {
    const std::lock_guard lock(mutex_);
    for (ThreadLog** at = &first_; *at != nullptr;) {
      ThreadLog* log = *at;
      bool done = false;
      {
        const std::lock_guard log_lock(log->mutex_);
        done = log->has_ended_ && log->rows_ == 0;
      }
      if (!done) {
        at = &log->next_;
        continue;
      }
      *at = log->next_;
      delete log;
    }
  }

  /// Marks the log of a thread that ends; from then on, drain() may delete it. If destructors of
  /// the program run later and call us again, they get a new log.
  static void end_of_thread(void* log) {
    log_of_thread = nullptr;
    auto* ending = static_cast<ThreadLog*>(log);
    const std::lock_guard lock(ending->mutex_);
    ending->has_ended_ = true;
  }

  std::mutex drain_mutex_;  ///< Held while logs are drained or deleted.
  ThreadLog::Copy copy_;
  std::mutex mutex_;
  pthread_key_t key_{};
  bool has_key_ = false;
  ThreadLog* first_ = nullptr;
};

namespace {

ThreadLogs logs;

}  // namespace

ThreadLog* ThreadLog::of_calling_thread(SpoolWriter& writer) {
  if (log_of_thread == nullptr) log_of_thread = logs.add(writer);
  return log_of_thread;
}

void ThreadLog::drain_all() { logs.drain(); }

void ThreadLog::add(const void* row, std::size_t bytes) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    if (is_copy()) return;
    lock.lock();
  }
  if (used_ + bytes > kRoom) {
    if (is_copy()) return;
    writer_->write_rows(bytes_, used_, rows_, SpoolWriter::Timeout::program);
    used_ = 0;
    rows_ = 0;
  }
  std::memcpy(bytes_ + used_, row, bytes);
  used_ += bytes;
  ++rows_;
}

/// Whether this is a child that was created without fork()'s handlers. A thread that held the lock
/// does not exist there, so waiting for it would never end.
bool ThreadLog::is_copy() const { return ::getpid() != process_; }

void ThreadLog::move_to(Copy& copy) {
  std::memcpy(copy.bytes, bytes_, used_);
  copy.used = used_;
  copy.rows = rows_;
  used_ = 0;
  rows_ = 0;
}

}  // namespace foretrace::collect
