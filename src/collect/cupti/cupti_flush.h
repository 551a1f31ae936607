#pragma once

// Asks CUPTI for its records on a separate thread. CUPTI has been seen to hang in that call; then
// this thread hangs for ever, and all others go on.

#include <pthread.h>

#include <cstdint>
#include <optional>

#include "collect/cupti/cupti_library.h"
#include "collect/runtime/threads.h"

namespace foretrace::collect {

class CuptiFlush {
 public:
  /// Returns CUPTI's result, or nullopt if the call has not returned by `until` (monotonic clock),
  /// or if no thread can be started. Waits first for an earlier call that is still under way.
  /// REQUIRES: one thread calls this at a time, and `cupti` lives for ever.
  std::optional<cupti::Result> run(const CuptiLibrary& cupti, std::uint32_t flag,
                                   std::uint64_t until);

 private:
  static void* thread_main(void* self);
  bool start();
  void serve();

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Condition changed_;
  const CuptiLibrary* cupti_ = nullptr;
  bool has_thread_ = false;
  bool is_pending_ = false;  ///< A flush was requested, and CUPTI has not returned from it yet.
  std::uint32_t flag_ = 0;
  cupti::Result result_ = cupti::kSuccess;
};

}  // namespace foretrace::collect
