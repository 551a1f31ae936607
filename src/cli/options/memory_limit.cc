#include "cli/options/memory_limit.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/free_memory.h"

namespace foretrace {
namespace {

/// Runtimes of sanitizers reserve far more memory than they use. g++ and clang++ tell otherwise.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

}  // namespace

void limit_memory() {
  if (kIsSanitized) return;
  const std::optional<Bytes> left = free_memory();
  rlimit limit{};
  if (!left || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(left->count));
  ::setrlimit(RLIMIT_DATA, &limit);
}

void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kLargest = 32 << 20;  // The most that the C library takes for this threshold.
  ::mallopt(M_MMAP_THRESHOLD, kLargest);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace foretrace
