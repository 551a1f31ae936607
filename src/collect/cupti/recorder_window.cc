// Decides when to record: from the start, after a time, during some steps, or between the program's
// calls of cudaProfilerStart and cudaProfilerStop.

#include <cstdio>
#include <cstring>

#include "collect/cupti/recorder.h"
#include "trace/step_name.h"

namespace foretrace::collect {

namespace {

struct RecordedKind {
  Record record;
  cupti::Kind kind;
};

constexpr RecordedKind kKinds[] = {
    {kKernels, cupti::Kind::concurrent_kernel},
    {kKernels, cupti::Kind::memcpy},
    {kKernels, cupti::Kind::memcpy_peer},
    {kKernels, cupti::Kind::memset},
    {kApi, cupti::Kind::runtime},
    {kApi, cupti::Kind::driver},
    {kSync, cupti::Kind::synchronization},
    {kSync, cupti::Kind::cuda_event},
    {kDeviceMemory, cupti::Kind::memory},
    {kDeviceMemory, cupti::Kind::memory_pool},
    {kOverhead, cupti::Kind::overhead},
};

}  // namespace

/// Opens or closes the window. Never waits for another thread that is changing it, because that
/// thread may be waiting in CUPTI for the callback that this runs in. Instead, the thread that
/// holds the lock checks for new requests before it returns.
void Recorder::request_window(WindowRequest request) {
  window_request_ = request;
  while (window_request_ != WindowRequest::nothing && pthread_mutex_trylock(&window_mutex_) == 0) {
    const WindowRequest latest = window_request_.exchange(WindowRequest::nothing);
    if (latest == WindowRequest::open) open_window();
    if (latest == WindowRequest::closed) close_window();
    pthread_mutex_unlock(&window_mutex_);
  }
}

void Recorder::open_window() {
  if (window_open_ || window_over_ || !is_recording()) return;
  if (holds_cupti_) {
    for (const RecordedKind& kind : kKinds) {
      if (!settings_.records(kind.record)) continue;
      const cupti::Result result = cupti_.enable(kind.kind);
      if (result == cupti::kSuccess) continue;
      char key[64];
      std::snprintf(key, sizeof key, "not_recorded.%u", static_cast<unsigned>(kind.kind));
      writer_.write_fact(key, cupti_.text(result));
    }
    if (settings_.records(kApi)) disable_frequent_calls();
  }
  if (settings_.records(kSync) && holds_cupti_) {
    // Leave out event queries that return "not ready": they do not wait for anything.
    if (cupti_.enable_all_sync_records != nullptr) cupti_.enable_all_sync_records(0);
  }
  opened_ = now();
  window_open_ = true;
  spool::Window row;
  row.is_open = 1;
  row.time = opened_;
  writer_.write_row(row);
}

void Recorder::close_window() {
  if (!window_open_ || !is_recording()) return;
  window_open_ = false;
  // A window that the program itself controls may open many times; all others open once.
  window_over_ = !settings_.by_profiler_api;
  if (holds_cupti_) {
    for (const RecordedKind& kind : kKinds) {
      if (settings_.records(kind.record)) cupti_.disable(kind.kind);
    }
  }
  spool::Window row;
  row.time = now();
  writer_.write_row(row);
}

void Recorder::check_window() {
  if (!is_recording() || window_over_) return;
  const std::uint64_t time = now();
  const bool by_time = !settings_.by_steps && !settings_.by_profiler_api;
  if (!window_open_ && by_time && time - started_ >= settings_.start_after_ns)
    request_window(WindowRequest::open);
  // The window may have opened after `time` was read.
  const std::uint64_t opened = opened_;
  if (window_open_ && settings_.duration_ns != 0 && time >= opened &&
      time - opened >= settings_.duration_ns)
    request_window(WindowRequest::closed);
}

void Recorder::note_range(const char* name) {
  if (!settings_.by_steps || window_over_ || name == nullptr) return;
  const auto step = step_name(name);
  if (!step) return;
  if (step->number > settings_.last_step) {
    request_window(WindowRequest::closed);
  } else if (step->number >= settings_.first_step) {
    request_window(WindowRequest::open);
  }
}

}  // namespace foretrace::collect
