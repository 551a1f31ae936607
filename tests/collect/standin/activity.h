#pragma once

// The half of CUPTI that writes records. Each thread of the program has one buffer, requested from
// the client on that thread; full and finished buffers are returned on a thread of the library.
//
//     thread 1  [kernel, call, kernel ...      ]      being filled
//     thread 2  [kernel, cal|                         full: queued
//     worker    waits until every record has its times, then calls the client
//
// From NVIDIA's documentation (cupti_activity.h): cuptiActivityFlushAll(0) hands over what is
// finished, also buffers that are not full; with the force flag everything, finished or not.
// A flush period hands over full buffers only. A record for which the client gave no buffer is
// counted, and the count is reset when it is read.

#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "collect/standin/faults.h"
#include "collect/standin/records.h"
#include "collect/standin/standin.h"

namespace standin {

using Requested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
using Completed = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t size, std::size_t valid);
using Clock = std::uint64_t (*)();

constexpr std::uint32_t kMaxCallbacks = 1024;

/// A record that already has its place in a buffer, with the times at which its work runs on the
/// device.
struct Unfinished {
  std::size_t offset;
  std::uint32_t kind;
  std::uint64_t start;
  std::uint64_t end;
};

struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  std::size_t used = 0;
  std::size_t most_records = 0;
  std::size_t records = 0;
  std::vector<Unfinished> unfinished;
};

/// Belongs to one thread of the program.
struct Filling {
  std::mutex mutex;
  std::unique_ptr<Buffer> buffer;
};

class Activity {
 public:
  explicit Activity(const Faults& faults) : faults_(faults) {}

  void register_callbacks(Requested requested, Completed completed);
  bool has_callbacks() const { return completed_ != nullptr; }
  std::uint64_t now() const;
  void set_clock(Clock clock) { clock_ = clock; }

  void enable(std::uint32_t kind, bool on);
  bool is_enabled(std::uint32_t kind) const { return enabled_[kind]; }
  bool is_any_enabled() const;
  /// Enables one call alone, as cuptiActivityEnableRuntimeApi does.
  void enable_call(std::uint32_t kind, std::uint32_t callback, bool on);
  bool wants_call(std::uint32_t kind, std::uint32_t callback) const;

  /// Writes into the buffer of the calling thread, if the kind is enabled. With `unfinished`, the
  /// record gets its times when the device has reached them.
  void write(const void* record, const Unfinished* unfinished = nullptr);

  void flush(bool force);
  void set_period(std::uint32_t milliseconds);
  std::uint64_t take_dropped() { return dropped_.exchange(0); }
  /// Returns 0, 12 or 21, as cuptiActivityGetNextRecord does.
  std::int32_t next(std::uint8_t* buffer, std::size_t valid, std::uint8_t** record) const;

  Counts counts(std::uint32_t kind) const;
  std::uint64_t lost() const { return lost_; }
  std::uint64_t client_ns() const { return client_ns_; }
  /// Called when CUPTI ends itself: no more buffers are delivered.
  void end();
  void forget_threads();  ///< For a forked child, which has no worker.
  bool is_over() const { return is_over_; }
  std::uint32_t worker_thread() const { return worker_thread_; }

  /// Held by the library during callbacks if faults.strict.
  std::recursive_mutex lock;

 private:
  struct Counters {
    std::atomic<std::uint64_t> written{0}, dropped{0}, untimed{0}, delivered{0}, bytes{0};
  };

  Filling& own_filling();
  bool request(Filling& filling);
  void count_written(const void* record, bool is_untimed);
  void note_unfinished(Buffer& buffer, Unfinished unfinished);
  void queue(std::unique_ptr<Buffer> buffer);
  void collect(bool force, std::vector<std::unique_ptr<Buffer>>& ready);
  bool finish_records(Buffer& buffer) const;
  void deliver(Buffer& buffer);
  void hand_over(bool force, bool full_only);
  void note_flush(std::uint64_t start);
  void run_worker();
  static void* worker_main(void* activity);

  const Faults& faults_;
  Requested requested_ = nullptr;
  Completed completed_ = nullptr;
  std::atomic<Clock> clock_{nullptr};
  std::atomic<bool> enabled_[kMaxKinds] = {};
  std::atomic<bool> calls_[2][kMaxCallbacks] = {};  ///< The driver comes first, then the runtime.
  Counters counters_[kMaxKinds];
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> client_ns_{0};
  std::atomic<std::uint64_t> kernels_{0};
  std::atomic<bool> is_over_{false};

  mutable std::mutex mutex_;  ///< Guards the members below.
  std::deque<std::unique_ptr<Filling>> fillings_;
  std::deque<std::unique_ptr<Buffer>> full_;
  std::set<const std::uint8_t*> out_;  ///< Buffers that the client has lent.
  std::condition_variable wake_;
  std::condition_variable done_;
  std::uint64_t flushes_wanted_ = 0;
  std::uint64_t flushes_done_ = 0;
  bool force_wanted_ = false;
  std::uint32_t period_ms_ = 0;
  bool has_worker_ = false;
  std::atomic<std::uint32_t> worker_thread_{0};
  std::mutex delivery_;  ///< One buffer is handed over at a time.
};

/// Reports that the client does what NVIDIA forbids. The line fails every test, because none
/// expects it.
void complain(const char* what);

/// The id that cuptiSetThreadIdType selects: the kernel's number or pthread's.
std::uint32_t own_thread();
void use_system_thread_ids(bool system);

}  // namespace standin
