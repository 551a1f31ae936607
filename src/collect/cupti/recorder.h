#pragma once

// The one recording of this process. It lives until the process ends; nothing here throws, aborts
// or prints more than one line.
//
//     threads of the program   take buffers, and log ranges, blocks and graph nodes
//     CUPTI's own thread       gives filled buffers back: they are decoded and written at once
//     the flusher              once a second: has what is ready fetched, drains logs, writes
//                              counters; at the end of the program all that is left
//     the thread that fetches  is in CUPTI's call that hands buffers over, which may hang
//     the thread of files      opens, writes and closes files, out of the program's reach
//
// The threads of ours block every signal, so that the program's handlers never run on them.
//
// After a fork the child records nothing, because CUPTI does not work there and the spool is the
// parent's.

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "collect/cupti/buffers.h"
#include "collect/cupti/cupti_flush.h"
#include "collect/cupti/cupti_library.h"
#include "collect/cupti/raw_dump.h"
#include "collect/own/monotonic.h"
#include "collect/own/settings.h"
#include "collect/spool/spool_writer.h"
#include "collect/spool/thread_log.h"
#include "collect/spool/thread_names.h"

namespace foretrace::collect {

class Recorder {
 public:
  static Recorder& instance();

  /// From the driver, when the program first uses CUDA.
  void start_cupti();
  /// Opens the spool, if there is to be one. False if nothing is recorded in this process.
  bool start();
  /// Nothing may be recorded when this is false.
  bool is_alive() const { return alive_.load(std::memory_order_relaxed); }
  bool holds_cupti() const { return is_alive() && holds_cupti_.load(std::memory_order_relaxed); }

  const Settings& settings() const { return settings_; }
  SpoolWriter& writer() { return writer_; }
  /// Ranges and blocks outside the window are not wanted.
  bool is_open() const { return window_open_.load(std::memory_order_relaxed); }
  /// nullptr if nothing is to be logged now.
  ThreadLog* log();
  /// An NVTX range begins; opens and closes the window if steps are what it goes by.
  void note_range(const char* name);

  static std::uint64_t now();  ///< Reads the monotonic clock.

 private:
  enum class Wanted : std::uint8_t { nothing, open, closed };

  Recorder() = default;

  void say(const char* problem, const char* cure);
  bool subscribe();
  void enable_metadata();
  void cut_chatter();
  void listen();
  void want_window(Wanted wanted);
  void open_window();
  void close_window();
  void check_window();
  void flush(bool force);
  void fetch(bool force);
  void end_recording();
  void say_if_gone();
  void write_clocks();
  void write_facts();
  void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid);
  void decode_buffer(std::uint8_t* buffer, std::size_t valid);
  void name_call(std::uint32_t domain, std::uint32_t id);
  void note_unreadable();
  void come_first_at_exit();
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
  std::atomic<bool> tried_{false};
  std::atomic<bool> alive_{false};
  std::atomic<bool> holds_cupti_{false};
  std::atomic<bool> window_open_{false};
  std::atomic<bool> window_over_{false};
  std::atomic<Wanted> wanted_{Wanted::nothing};
  std::atomic<bool> stopping_{false};
  bool has_flusher_ = false;
  bool has_ended_ = false;  ///< Guarded by wake_mutex_, as ended_ is.
  std::atomic<std::uint32_t> exit_handlers_{0};
  std::atomic<bool> told_unreadable_{false};
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> fetch_until_{0};  ///< CUPTI's last records.
  std::atomic<std::uint64_t> opened_{0};
  pthread_mutex_t start_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t window_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t wake_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Condition wake_, ended_;
  std::atomic<std::uint64_t> named_calls_[2][64] = {};  ///< A bit for each number below 4096.
  RawDump raw_dump_;
  pid_t process_ = 0;
};

}  // namespace foretrace::collect
