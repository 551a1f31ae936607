#include "foretrace/storage.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

double misses(const std::string& policy, double cached, std::int64_t servers = 1,
              std::int64_t jobs = 1) {
  return item_shares({policy, cached, servers, jobs}).disk;
}

TEST(Storage, PageCacheMissesAsMeasured) {
  EXPECT_NEAR(misses("page_cache", 0.35), 0.862, 0.0005);
  EXPECT_NEAR(misses("page_cache", 0.35), 0.85, 0.03 * 0.85);  // 146 GiB, Mohan et al., VLDB'21
  EXPECT_NEAR(misses("page_cache", 0.65), 0.53, 0.03 * 0.53);  // 340 of 645 GB, DALI, same paper
}

TEST(Storage, TwoServersWithPageCachesReadAsMeasured) {
  // 146 GiB in two caches of 75 GiB; 45 GiB a server were measured (same paper).
  const double share = misses("page_cache", 75.0 / 146, 2);
  EXPECT_NEAR(share * 73, 45, 0.03 * 45);
}

TEST(Storage, JobsWithOrdersOfTheirOwnReadAlmostEverythingEach) {
  const double one = misses("page_cache", 0.35);
  const double eight = misses("page_cache", 0.35, 1, 8);
  EXPECT_NEAR(8 * eight / one, 6.293, 0.001);
  EXPECT_NEAR(8 * eight / one, 7.07, 0.15 * 7.07);  // 884 to 125 GiB (same paper)
  // With more and more jobs, the misses approach those of a cache with random content.
  EXPECT_NEAR(misses("page_cache", 0.35, 1, 1000), 0.65, 0.001);
}

TEST(Storage, PoliciesAgreeAtBothEnds) {
  for (const std::string_view policy : cache_policies()) {
    EXPECT_NEAR(misses(std::string(policy), 0), 1, 1e-12) << policy;
    if (policy == "none") continue;
    EXPECT_NEAR(misses(std::string(policy), 1), 0, 1e-12) << policy;
  }
}

TEST(Storage, MoreCacheNeverMissesMore) {
  for (const std::string_view policy : cache_policies()) {
    double before = 1;
    for (int percent = 0; percent <= 100; ++percent) {
      const double now = misses(std::string(policy), percent / 100.0);
      EXPECT_LE(now, before + 1e-9) << policy << " " << percent;
      before = now;
    }
  }
}

TEST(Storage, StrictLruIsPessimistic) {
  EXPECT_NEAR(misses("lru", 0.35), 0.93, 0.005);
  EXPECT_NEAR(misses("lru", 0.65), 0.7175, 0.005);
}

TEST(Storage, PartitionedCachesThatHoldAllReadNothing) {
  const ItemShares shares = item_shares({"partitioned", 0.5, 2, 1});
  EXPECT_EQ(shares.disk, 0);
  EXPECT_EQ(shares.local, 0.5);
  EXPECT_EQ(shares.remote, 0.5);
  EXPECT_DOUBLE_EQ(item_shares({"partitioned", 0.2, 4, 1}).disk, 1 - 0.8);
}

TEST(Storage, KnowsHowMuchCacheIsEnough) {
  for (const char* policy : {"minio", "page_cache", "lru"}) {
    const double cached = cached_for({policy, 0, 1, 1}, 0.5);
    EXPECT_NEAR(misses(policy, cached), 0.5, 1e-6) << policy;
  }
  EXPECT_EQ(cached_for({"minio", 0, 1, 1}, 1.5), 0);
}

TEST(Storage, PrepRatesAreInterpolatedAndSaturate) {
  const PrepRates rates({"3:2000", "12:4000", "24:4400"});
  EXPECT_DOUBLE_EQ(rates.at(1.5), 1000);
  EXPECT_DOUBLE_EQ(rates.at(7.5), 3000);
  EXPECT_DOUBLE_EQ(rates.at(64), 4400);
}

TEST(Storage, SaysWhatIsWrong) {
  const auto said = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said([] { PrepRates({"3-2000"}); }),
            "must be rows of cores and samples a second such as \"3:2100\", got \"3-2000\"");
  EXPECT_EQ(said([] { PrepRates({"3:nan"}); }),
            "must be rows of cores and samples a second such as \"3:2100\", got \"3:nan\"");
  EXPECT_EQ(said([] {
              PrepRates({"3:20", "6:10"});
            }),
            "must be in ascending order of cores, with rates that do not fall, got \"6:10\" after "
            "\"3:20\"");
  EXPECT_EQ(said([] { misses("lru", 0.5, 2); }),
            "cache: must not be lru with several jobs or servers, because that case is not "
            "modelled; use another cache");
}

}  // namespace
}  // namespace foretrace
