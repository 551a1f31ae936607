#include "collect/standin/activity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace standin {

namespace {

std::atomic<bool> system_thread_ids{false};

std::uint32_t kind_of(const void* record) {
  std::uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  return kind;
}

template <class Record>
void set_times(std::uint8_t* record, std::uint64_t start, std::uint64_t end) {
  std::memcpy(record + offsetof(Record, start), &start, sizeof start);
  std::memcpy(record + offsetof(Record, end), &end, sizeof end);
}

void set_times(const Unfinished& from, std::uint8_t* bytes) {
  std::uint8_t* record = bytes + from.offset;
  if (from.kind == kConcurrentKernel) {
    set_times<KernelRecord>(record, from.start, from.end);
    std::memcpy(record + offsetof(KernelRecord, completed), &from.end, sizeof from.end);
  } else if (from.kind == kMemset) {
    set_times<MemsetRecord>(record, from.start, from.end);
  } else {
    set_times<MemcpyRecord>(record, from.start, from.end);  // Peer copies: at the same offsets.
  }
}
static_assert(offsetof(MemcpyRecord, start) == offsetof(MemcpyPeerRecord, start));

std::uint64_t bytes_of(const void* record) {
  const std::uint32_t kind = kind_of(record);
  if (kind == kMemcpy || kind == kMemcpyPeer)
    return static_cast<const MemcpyRecord*>(record)->bytes;
  return kind == kMemset ? static_cast<const MemsetRecord*>(record)->bytes : 0;
}

}  // namespace

void complain(const char* what) { std::fprintf(stderr, "stand-in: %s\n", what); }

std::uint32_t own_thread() {
  if (system_thread_ids) return static_cast<std::uint32_t>(syscall(SYS_gettid));
  return static_cast<std::uint32_t>(pthread_self());
}

void use_system_thread_ids(bool system) { system_thread_ids = system; }

std::uint64_t Activity::now() const {
  if (const Clock clock = clock_) return clock();
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void Activity::register_callbacks(Requested requested, Completed completed) {
  requested_ = requested;
  completed_ = completed;
  const std::lock_guard hold(mutex_);
  if (has_worker_) return;
  has_worker_ = true;
  // The worker must not run the program's signal handlers.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, worker_main, this) != 0) std::abort();
  pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Activity::enable(std::uint32_t kind, bool on) {
  enabled_[kind] = on;
  // "Activity kind DRIVER overrides the settings done by this API if it is called after the API."
  if (kind == kDriver || kind == kRuntime) {
    for (auto& call : calls_[kind == kRuntime ? 1 : 0]) call = on;
  }
}

bool Activity::is_any_enabled() const {
  return std::any_of(std::begin(enabled_), std::end(enabled_),
                     [](const auto& on) { return on.load(); });
}

void Activity::enable_call(std::uint32_t kind, std::uint32_t callback, bool on) {
  if (callback < kMaxCallbacks) calls_[kind == kRuntime ? 1 : 0][callback] = on;
}

bool Activity::wants_call(std::uint32_t kind, std::uint32_t callback) const {
  return callback < kMaxCallbacks && calls_[kind == kRuntime ? 1 : 0][callback];
}

Filling& Activity::own_filling() {
  static thread_local Filling* own = nullptr;
  if (own == nullptr) {
    const std::lock_guard hold(mutex_);
    fillings_.push_back(std::make_unique<Filling>());
    own = fillings_.back().get();
  }
  return *own;
}

/// Asks the client for a buffer, on this thread.
bool Activity::request(Filling& filling) {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  std::size_t most = 0;
  if (requested_ == nullptr) return false;
  {
    std::unique_lock<std::recursive_mutex> hold(lock, std::defer_lock);
    if (faults_.strict) hold.lock();
    requested_(&bytes, &size, &most);
  }
  if (bytes == nullptr) {
    if (!faults_.crashes_without_buffer) return false;
    complain("this version of CUPTI crashes when it is given no buffer");
    std::abort();
  }
  if (reinterpret_cast<std::uintptr_t>(bytes) % 8 != 0) complain("a buffer is not aligned to 8");
  {
    const std::lock_guard hold(mutex_);
    if (!out_.insert(bytes).second) complain("a buffer is lent that CUPTI already has");
  }
  std::memset(bytes, 0, size);  // CUPTI does so unless told that buffers are zeroed.
  filling.buffer = std::make_unique<Buffer>();
  filling.buffer->bytes = bytes;
  filling.buffer->size = size;
  filling.buffer->most_records = most;
  return true;
}

void Activity::write(const void* record, const Unfinished* unfinished) {
  const std::uint32_t kind = kind_of(record);
  if (is_over_ || !enabled_[kind]) return;
  const std::size_t bytes = record_bytes(kind, faults_.version);
  Filling& filling = own_filling();
  const std::lock_guard hold(filling.mutex);
  if (filling.buffer != nullptr) {
    const Buffer& buffer = *filling.buffer;
    const bool is_full = buffer.size - buffer.used < bytes ||
                         (buffer.most_records != 0 && buffer.records >= buffer.most_records);
    if (is_full) queue(std::move(filling.buffer));
  }
  if ((filling.buffer == nullptr && !request(filling)) ||
      filling.buffer->size - filling.buffer->used < bytes) {
    ++dropped_;
    ++counters_[kind].dropped;
    return;
  }
  Buffer& buffer = *filling.buffer;
  std::memcpy(buffer.bytes + buffer.used, record, bytes);
  if (faults_.bad_record != 0 && buffer.records + 1 == faults_.bad_record) {
    constexpr std::uint32_t kNoKind = kMaxKinds - 1;
    std::memcpy(buffer.bytes + buffer.used, &kNoKind, sizeof kNoKind);
  }
  bool is_untimed = false;
  if (unfinished != nullptr) {
    const bool kernel = kind == kConcurrentKernel;
    is_untimed = kernel && faults_.untimed != 0 && ++kernels_ % faults_.untimed == 0;
    if (!is_untimed)
      note_unfinished(buffer, {buffer.used, kind, unfinished->start, unfinished->end});
  }
  buffer.used += bytes;
  ++buffer.records;
  count_written(record, is_untimed);
}

void Activity::note_unfinished(Buffer& buffer, Unfinished unfinished) {
  if (unfinished.end <= now()) {
    set_times(unfinished, buffer.bytes);
  } else {
    buffer.unfinished.push_back(unfinished);
  }
}

void Activity::count_written(const void* record, bool is_untimed) {
  Counters& counters = counters_[kind_of(record)];
  counters.written.fetch_add(1, std::memory_order_relaxed);
  if (is_untimed) counters.untimed.fetch_add(1, std::memory_order_relaxed);
  if (!is_untimed) counters.bytes.fetch_add(bytes_of(record), std::memory_order_relaxed);
}

void Activity::queue(std::unique_ptr<Buffer> buffer) {
  const std::lock_guard hold(mutex_);
  full_.push_back(std::move(buffer));
  wake_.notify_one();
}

/// Writes the times of all records whose work has ended. Returns true if no record is left without
/// times.
bool Activity::finish_records(Buffer& buffer) const {
  if (buffer.unfinished.empty()) return true;
  const std::uint64_t time = now();
  std::erase_if(buffer.unfinished, [&](const Unfinished& record) {
    if (record.end > time) return false;
    set_times(record, buffer.bytes);
    return true;
  });
  return buffer.unfinished.empty();
}

/// Moves the finished buffers of `full_` to `ready`; with `force`, all of them.
void Activity::collect(bool force, std::vector<std::unique_ptr<Buffer>>& ready) {
  const std::lock_guard hold(mutex_);
  std::deque<std::unique_ptr<Buffer>> left;
  for (std::unique_ptr<Buffer>& buffer : full_) {
    if (finish_records(*buffer) || force) {
      ready.push_back(std::move(buffer));
    } else {
      left.push_back(std::move(buffer));
    }
  }
  full_ = std::move(left);
}

void Activity::deliver(Buffer& buffer) {
  if (faults_.worker_us != 0) usleep(faults_.worker_us);
  counters_[kConcurrentKernel].untimed += static_cast<std::uint64_t>(
      std::count_if(buffer.unfinished.begin(), buffer.unfinished.end(),
                    [](const Unfinished& record) { return record.kind == kConcurrentKernel; }));
  std::uint64_t delivered[kMaxKinds] = {};
  std::uint8_t* record = nullptr;
  while (next(buffer.bytes, buffer.used, &record) == 0) ++delivered[kind_of(record)];
  {
    const std::lock_guard hold(mutex_);
    out_.erase(buffer.bytes);
  }
  {
    std::unique_lock<std::recursive_mutex> hold(lock, std::defer_lock);
    if (faults_.strict) hold.lock();
    const auto start = std::chrono::steady_clock::now();
    completed_(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
    client_ns_ += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
  }
  for (std::uint32_t kind = 0; kind < kMaxKinds; ++kind)
    counters_[kind].delivered += delivered[kind];
}

void Activity::hand_over(bool force, bool full_only) {
  const std::lock_guard one_at_a_time(delivery_);
  if (is_over_) return;
  std::vector<std::unique_ptr<Buffer>> ready;
  collect(force, ready);
  if (!full_only) {
    std::vector<Filling*> fillings;
    {
      const std::lock_guard hold(mutex_);
      for (const auto& filling : fillings_) fillings.push_back(filling.get());
    }
    for (Filling* filling : fillings) {
      const std::lock_guard hold(filling->mutex);
      if (filling->buffer == nullptr || filling->buffer->records == 0) continue;
      if (finish_records(*filling->buffer) || force) ready.push_back(std::move(filling->buffer));
    }
  }
  for (const std::unique_ptr<Buffer>& buffer : ready) deliver(*buffer);
}

void Activity::note_flush(std::uint64_t start) {
  OverheadRecord record{};
  constexpr std::uint32_t kBufferFlush = 1U << 16;
  constexpr std::uint32_t kThread = 2;
  record.kind = kOverhead;
  record.overhead_kind = kBufferFlush;
  record.object_kind = kThread;
  record.object[0] = static_cast<std::uint32_t>(getpid());
  record.object[1] = own_thread();
  record.start = start;
  record.end = now();
  write(&record);
}

void Activity::flush(bool force) {
  if (is_over_) return;
  const std::uint64_t start = now();
  if (faults_.deliver_on_caller) {
    hand_over(force, false);
  } else {
    std::unique_lock hold(mutex_);
    force_wanted_ |= force;
    const std::uint64_t mine = ++flushes_wanted_;
    wake_.notify_one();
    done_.wait(hold, [&] { return flushes_done_ >= mine || is_over_; });
  }
  if (!force) note_flush(start);
}

void Activity::set_period(std::uint32_t milliseconds) {
  const std::lock_guard hold(mutex_);
  period_ms_ = milliseconds;
  wake_.notify_one();
}

void* Activity::worker_main(void* activity) {
  static_cast<Activity*>(activity)->run_worker();
  return nullptr;
}

void Activity::run_worker() {
  worker_thread_ = static_cast<std::uint32_t>(syscall(SYS_gettid));
  std::unique_lock hold(mutex_);
  while (!is_over_) {
    const auto has_work = [&] {
      return is_over_ || flushes_wanted_ > flushes_done_ || !full_.empty();
    };
    if (period_ms_ != 0) {
      wake_.wait_for(hold, std::chrono::milliseconds(period_ms_), has_work);
    } else {
      wake_.wait(hold, has_work);
    }
    const std::uint64_t wanted = flushes_wanted_;
    const bool flush = wanted > flushes_done_;
    const bool force = std::exchange(force_wanted_, false);
    hold.unlock();
    hand_over(force, !flush);
    hold.lock();
    flushes_done_ = wanted;
    done_.notify_all();
    // Full buffers remain whose kernels still run.
    if (!full_.empty() && flushes_wanted_ == flushes_done_)
      wake_.wait_for(hold, std::chrono::milliseconds(1),
                     [&] { return flushes_wanted_ > flushes_done_; });
  }
  done_.notify_all();
}

std::int32_t Activity::next(std::uint8_t* buffer, std::size_t valid, std::uint8_t** record) const {
  constexpr std::int32_t kMaxLimitReached = 12;
  constexpr std::int32_t kInvalidKind = 21;
  std::size_t offset = 0;
  if (*record != nullptr) {
    const auto at = static_cast<std::size_t>(*record - buffer);
    offset = at + record_bytes(kind_of(*record), faults_.version);
  }
  if (offset >= valid) return kMaxLimitReached;
  const std::size_t size = record_bytes(kind_of(buffer + offset), faults_.version);
  if (size == 0 || valid - offset < size) return kInvalidKind;
  *record = buffer + offset;
  return 0;
}

Counts Activity::counts(std::uint32_t kind) const {
  const Counters& counters = counters_[kind];
  return {counters.written, counters.dropped, counters.untimed, counters.delivered, counters.bytes};
}

void Activity::end() {
  is_over_ = true;
  std::vector<Filling*> fillings;
  {
    const std::lock_guard hold(mutex_);
    for (const auto& buffer : full_) lost_ += buffer->records;
    for (const auto& filling : fillings_) fillings.push_back(filling.get());
  }
  for (Filling* filling : fillings) {
    const std::lock_guard hold(filling->mutex);
    if (filling->buffer != nullptr) lost_ += filling->buffer->records;
  }
  wake_.notify_all();
  done_.notify_all();
}

void Activity::forget_threads() { is_over_ = true; }

}  // namespace standin
