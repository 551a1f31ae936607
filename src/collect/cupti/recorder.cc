#include "collect/cupti/recorder.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collect/runtime/library_bridge.h"
#include "collect/runtime/standard_error.h"
#include "collect/runtime/threads.h"

namespace foretrace::collect {

namespace {

/// Returns standard error as it was when the program started. The preloaded library noted it; this
/// library is loaded later.
const FileIdentity& standard_error_at_start() {
  const void* found = dlsym(RTLD_DEFAULT, kLibraryBridge);
  return found == nullptr ? kStandardErrorAtLoad
                          : static_cast<const LibraryBridge*>(found)->standard_error;
}

}  // namespace

std::uint64_t Recorder::now() { return monotonic_now(); }

Recorder& Recorder::instance() {
  // Never destroyed: threads of the program may still use it when the program ends.
  alignas(Recorder) static unsigned char place[sizeof(Recorder)];
  static Recorder* recorder = new (place) Recorder;
  return *recorder;
}

void Recorder::report_failure(const char* problem, const char* cure) {
  char line[1024];
  int length =
      std::snprintf(line, sizeof line, "foretrace: nothing is recorded in process %d: %s%s%s\n",
                    getpid(), problem, *cure == '\0' ? "" : "; ", cure);
  if (length > static_cast<int>(sizeof line) - 1) length = sizeof line - 1;
  write_line({line, static_cast<std::size_t>(length)}, standard_error_at_start());
  writer_.write_fact("problem", problem);
}

bool Recorder::start() {
  if (start_tried_.load(std::memory_order_acquire)) return is_recording();
  const MutexLock lock(start_mutex_);
  if (start_tried_.load(std::memory_order_relaxed)) return is_recording();
  settings_ = read_settings();
  started_ = now();
  process_ = getpid();
  if (settings_.spool_folder != nullptr) {
    if (const int error = writer_.open(settings_.spool_folder); error != 0) {
      char problem[512];
      std::snprintf(problem, sizeof problem, "cannot write to %s: %s", settings_.spool_folder,
                    std::strerror(error));
      report_failure(problem, "");
    } else {
      recording_ = true;
      write_facts();
      write_clocks();
      pthread_atfork(nullptr, nullptr, on_fork);
      std::atexit(on_exit);
      window_open_ =
          settings_.start_after_ns == 0 && !settings_.by_steps && !settings_.by_profiler_api;
      if (window_open_) opened_ = started_;
      start_flusher();
    }
  }
  start_tried_.store(true, std::memory_order_release);
  return is_recording();
}

ThreadLog* Recorder::log() {
  return start() && is_open() ? ThreadLog::of_calling_thread(writer_) : nullptr;
}

void Recorder::start_flusher() {
  has_flusher_ = start_detached(flusher_main, this) == 0;
  if (!has_flusher_) {
    writer_.write_fact(
        "problem", "no thread could be started: records are only written when the program ends");
  }
}

void* Recorder::flusher_main(void* recorder) {
  pthread_setname_np(pthread_self(), "foretrace");
  static_cast<Recorder*>(recorder)->run_flusher();
  return nullptr;
}

void Recorder::run_flusher() {
  std::uint64_t next = now();
  while (is_recording() && !stopping_) {
    // Wake up every millisecond if the window may open or close between two flushes.
    next += std::uint64_t{settings_.flush_ms} * 1'000'000;
    for (std::uint64_t time = now(); time < next && !stopping_; time = now()) {
      std::uint64_t left = next - time;
      if (settings_.start_after_ns != 0 || settings_.duration_ns != 0)
        left = left < 1'000'000 ? left : 1'000'000;
      {
        const MutexLock lock(wake_mutex_);
        if (!stopping_) wake_.wait_until(time + left, wake_mutex_);
      }
      check_window();
    }
    if (!stopping_) flush(false);
  }
  end_recording();
  const MutexLock lock(wake_mutex_);
  has_ended_ = true;
  ended_.wake_all();
}

void Recorder::flush(bool force) {
  if (!is_recording()) return;
  // Write logged rows first, because CUPTI may use up all the time that is left.
  if (force) ThreadLog::drain_all();
  if (holds_cupti_) fetch(force);
  if (!force) register_exit_handler_again();
  ThreadLog::drain_all();
  thread_names_.write_new(writer_);
  write_clocks();
  writer_.write_header();
}

/// Asks CUPTI for its records and waits for them for a limited time.
void Recorder::fetch(bool force) {
  // During the run, wait only for a while, because the flusher has other work, and stop waiting as
  // soon as the program ends. Records that arrive later are still taken.
  constexpr std::uint64_t kFetchTimeout = 2'000'000'000, kSlice = 20'000'000;
  if (!force) {
    const std::uint64_t until = now() + kFetchTimeout;
    while (!stopping_ && now() < until && !cupti_flush_.run(cupti_, 0, now() + kSlice)) {
    }
    return;
  }
  const auto result = cupti_flush_.run(cupti_, cupti::kForceFlush, fetch_until_);
  if (result == cupti::kSuccess) return;
  writer_.write_fact("problem",
                     result ? "CUPTI ended before the program: its last records are missing"
                            : "CUPTI did not return its last records in time: they are missing");
}

/// Registers our exit handler again once CUDA is running. Exit handlers run in reverse order, and
/// CUDA registers its own after ours, during the program's first calls. CUPTI would then be gone
/// before it is asked for its last records.
void Recorder::register_exit_handler_again() {
  // Always register during the first calls, because CUDA may start slowly; later only at powers of
  // two, so that there are few handlers.
  constexpr std::uint32_t kAlways = 64;
  const std::uint32_t times = ++exit_handlers_;
  if (times <= kAlways || (times & (times - 1)) == 0) std::atexit(on_exit);
}

void Recorder::on_exit() { instance().finish(); }

/// Waits, for a limited time, for the flusher to end the recording. The wait is limited because the
/// program must be able to end in any case: CUPTI has been seen to hang in a flush, disks hang, and
/// a thread that calls exit() in a signal handler may hold any lock.
void Recorder::finish() {
  // A child that was created without fork()'s handlers has neither the flusher nor the file.
  if (!is_recording() || getpid() != process_ || stopping_.exchange(true)) return;
  // Additional time for the counters, and for whatever else is left after the rows.
  constexpr std::uint64_t kRestSeconds = 5;
  // Additional time in which CUPTI still returns rows, which are then counted as lost.
  constexpr std::uint64_t kFetchSeconds = 3;
  const std::uint64_t rows_until = now() + std::uint64_t{settings_.exit_ms} * 1'000'000;
  fetch_until_ = rows_until + kFetchSeconds * 1'000'000'000;
  const std::uint64_t until = rows_until + kRestSeconds * 1'000'000'000;
  writer_.set_deadlines(rows_until, until);
  if (!has_flusher_) return end_recording();
  const MutexLock lock(wake_mutex_);
  wake_.wake_all();
  while (!has_ended_ && ended_.wait_until(until + 1'000'000'000, wake_mutex_)) {
  }
  recording_ = false;
}

void Recorder::end_recording() {
  flush(true);
  recording_ = false;
  writer_.finish();
  report_lost_file();
}

void Recorder::report_lost_file() {
  if (!writer_.is_lost()) return;
  char line[256];
  const int length =
      std::snprintf(line, sizeof line,
                    "foretrace: process %d closed the recorder's file, and it cannot "
                    "be opened again: %llu records "
                    "are lost\n",
                    getpid(), static_cast<unsigned long long>(writer_.lost()));
  write_line({line, static_cast<std::size_t>(length)}, standard_error_at_start());
}

void Recorder::on_fork() {
  Recorder& recorder = instance();
  recorder.recording_ = false;
  recorder.holds_cupti_ = false;
  recorder.window_open_ = false;
  recorder.writer_.abandon();
}

void Recorder::write_clocks() {
  spool::Clocks row;
  const std::uint64_t before = now();
  row.realtime = nanoseconds_of(CLOCK_REALTIME);
  const std::uint64_t after = now();
  row.monotonic = before + (after - before) / 2;
  row.uncertainty = static_cast<std::uint32_t>(after - before);
  writer_.write_row(row);
}

}  // namespace foretrace::collect
