#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace foretrace {
namespace {

TEST(FreeMemory, IsKnownOnLinux) {
  const auto left = free_memory();
  ASSERT_TRUE(left);
  EXPECT_GT(left->count, 0);
}

TEST(FreeMemory, IsNoMoreThanTheLimitOnAddressSpaceLeaves) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more addresses than the limit leaves";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlim_t most = rlim_t{64} << 30;
  const rlimit limited{std::min(most, before.rlim_max), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const auto left = free_memory();
  setrlimit(RLIMIT_AS, &before);
  ASSERT_TRUE(left);
  EXPECT_LT(left->count, static_cast<std::int64_t>(limited.rlim_cur));
}

}  // namespace
}  // namespace foretrace
