#pragma once

// Asks CUPTI for its records on a thread of its own. CUPTI has been seen to hang in that call; then
// the thread stays there for ever, and everybody else goes on.

#include <pthread.h>

#include <cstdint>
#include <optional>

#include "collect/cupti/cupti_library.h"
#include "collect/own/monotonic.h"

namespace foretrace::collect {

class CuptiFlush {
 public:
  /// Returns what CUPTI did; nothing if that is not known by `until` (of the monotonic clock), or
  /// if no thread can be made. A call that was still under way is waited for first. For one thread
  /// at a time; `cupti` must live for ever.
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
  bool is_wanted_ = false;  ///< Until CUPTI has returned.
  std::uint32_t flag_ = 0;
  cupti::Result result_ = cupti::kSuccess;
};

}  // namespace foretrace::collect
