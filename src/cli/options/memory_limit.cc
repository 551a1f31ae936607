#include "cli/options/memory_limit.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <thread>

namespace foretrace {
namespace {

/// Runtimes of sanitizers reserve far more memory than they use, so nothing is limited there. g++
/// and clang++ announce a sanitizer in different ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

#if defined(__GLIBC__)
/// Extends the C library's heap at once and asks for large pages there: the kernel then clears 2
/// MiB at a fault instead of 4 KiB. Only addresses are reserved; memory is taken as it is used.
/// Does nothing where the heap cannot be extended.
void reserve_large_pages(Bytes free) {
  constexpr std::int64_t kMaxReserved = 1 << 30;
  constexpr std::int64_t kShareOfFreeMemory = 8;
  constexpr std::uintptr_t kPage = 2 << 20;  // On x86-64; other kernels round the range themselves.
  // Only the heap of the main thread is extended this way. Up to this many threads can share it
  // without much waiting.
  constexpr unsigned kMaxSharing = 4;
  if (std::thread::hardware_concurrency() <= kMaxSharing) ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TOP_PAD, static_cast<int>(std::min(kMaxReserved, free.count / kShareOfFreeMemory)));
  // This size is below the threshold from which on the C library maps memory, so it comes from the
  // heap.
  void* const first = ::malloc(1 << 20);
  const auto begin = (reinterpret_cast<std::uintptr_t>(first) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  if (first != nullptr && begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  ::free(first);
  constexpr int kUsualPad = 128 << 10;
  ::mallopt(M_TOP_PAD, kUsualPad);
}
#endif

}  // namespace

void limit_memory(std::optional<Bytes> free) {
  if (kIsSanitized) return;
  rlimit limit{};
  if (!free || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(free->count));
  ::setrlimit(RLIMIT_DATA, &limit);
}

void keep_freed_memory([[maybe_unused]] std::optional<Bytes> free) {
#if defined(__GLIBC__)
  constexpr int kLargest = 32 << 20;  // The largest threshold that the C library accepts.
  ::mallopt(M_MMAP_THRESHOLD, kLargest);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  if (free && !kIsSanitized) reserve_large_pages(*free);
#endif
}

}  // namespace foretrace
