#include "cli/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "foretrace/free_memory.h"

namespace foretrace {

void limit_memory() {
// The tools behind these reserve far more than they use.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const std::optional<Bytes> left = free_memory();
  rlimit limit{};
  if (!left || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(left->count));
  ::setrlimit(RLIMIT_DATA, &limit);
#endif
}

}  // namespace foretrace
