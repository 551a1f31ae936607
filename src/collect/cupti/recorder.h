#pragma once

// The recorder of this process. It lives until the process ends. Nothing here throws, aborts or
// prints more than one line.
//
//     threads of the program   take buffers for CUPTI; log ranges, blocks and graph nodes
//     CUPTI's own thread       returns filled buffers, which are decoded and written at once
//     the flusher              once a second, fetches finished records, drains logs and writes
//                              counters; at the end of the program, also everything that is left
//     the fetching thread      calls CUPTI's flush, which may hang (cupti_flush.h)
//     the file thread          opens, writes and closes files, out of the program's reach
//
// Our threads block every signal, so that the program's handlers never run on them.
//
// After a fork, the child records nothing: CUPTI does not work there, and the spool is the
// parent's.

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "collect/cupti/buffers.h"
#include "collect/cupti/cupti_flush.h"
#include "collect/cupti/cupti_library.h"
#include "collect/cupti/raw_dump.h"
#include "collect/runtime/settings.h"
#include "collect/runtime/threads.h"
#include "collect/spool/spool_writer.h"
#include "collect/spool/thread_log.h"
#include "collect/spool/thread_names.h"

namespace foretrace::collect {

class Recorder {
 public:
  static Recorder& instance();

  /// Starts to use CUPTI. The driver causes this call when the program first uses CUDA.
  void start_cupti();
  /// Opens the spool at the first call. Returns false if nothing is recorded in this process.
  bool start();
  /// Whether this process is recording. If false, nothing may be written.
  bool is_recording() const { return recording_.load(std::memory_order_relaxed); }
  bool holds_cupti() const {
    return is_recording() && holds_cupti_.load(std::memory_order_relaxed);
  }

  const Settings& settings() const { return settings_; }
  SpoolWriter& writer() { return writer_; }
  /// Whether the recording window is open. Ranges and blocks outside it are not recorded.
  bool is_open() const { return window_open_.load(std::memory_order_relaxed); }
  /// Returns the log of the calling thread, or nullptr if nothing is recorded at the moment.
  ThreadLog* log();
  /// Notes that an NVTX range begins. If the window is defined by steps, this opens or closes it.
  void note_range(const char* name);

  static std::uint64_t now();  ///< Reads the monotonic clock.

 private:
  enum class WindowRequest : std::uint8_t { nothing, open, closed };

  Recorder() = default;

  void report_failure(const char* problem, const char* cure);
  void report_refusal(const char* problem, cupti::Result result);
  bool subscribe();
  void enable_metadata();
  void disable_frequent_calls();
  void enable_callbacks();
  void request_window(WindowRequest request);
  void open_window();
  void close_window();
  void check_window();
  void flush(bool force);
  void fetch(bool force);
  void end_recording();
  void report_lost_file();
  void write_clocks();
  void write_facts();
  void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid);
  void decode_buffer(std::uint8_t* buffer, std::size_t valid);
  void name_call(std::uint32_t domain, std::uint32_t id);
  void note_unreadable();
  void register_exit_handler_again();
  void note_graph(std::uint32_t id, const cupti::GraphData& graph);
  void run_flusher();
  void start_flusher();
  void finish();

  static void on_fork();
  static void on_exit();
  static void* flusher_main(void* recorder);
  static void on_request(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
  static void on_complete(void* context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t size, std::size_t valid);
  static void on_callback(void* user, cupti::Domain domain, std::uint32_t id, const void* data);

  Settings settings_;
  CuptiLibrary cupti_;
  CuptiFlush cupti_flush_;
  cupti::Subscriber subscriber_ = nullptr;
  std::uint32_t version_ = 0;
  SpoolWriter writer_;
  Buffers buffers_;
  ThreadNames thread_names_;
  std::atomic<bool> start_tried_{false};
  std::atomic<bool> recording_{false};
  std::atomic<bool> holds_cupti_{false};
  std::atomic<bool> window_open_{false};
  std::atomic<bool> window_over_{false};
  std::atomic<WindowRequest> window_request_{WindowRequest::nothing};
  std::atomic<bool> stopping_{false};
  bool has_flusher_ = false;
  bool has_ended_ = false;  ///< Guarded by wake_mutex_, like ended_.
  std::atomic<std::uint32_t> exit_handlers_{0};
  std::atomic<bool> reported_unreadable_{false};
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> fetch_until_{0};  ///< When to stop waiting for CUPTI's last records.
  std::atomic<std::uint64_t> opened_{0};
  pthread_mutex_t start_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t window_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t wake_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Condition wake_, ended_;
  /// API calls whose name is in the spool: one bit for each number below 4096, by domain.
  std::atomic<std::uint64_t> named_calls_[2][64] = {};
  RawDump raw_dump_;
  pid_t process_ = 0;
};

}  // namespace foretrace::collect
