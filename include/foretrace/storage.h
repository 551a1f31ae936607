#pragma once

// Where the samples of a training set come from: cache, another server's cache, or disk; and how
// fast CPU cores prepare them. After the first epoch, with every epoch in a new random order:
//
//     none         everything is read from disk
//     minio        cached items are never evicted: x of the items hit (CoorDL, VLDB'21, section 4)
//     page_cache   as the page cache of Linux: each miss evicts an item at random
//     lru          each miss evicts the least recently used item
//     partitioned  minio on each of s servers, no item twice, misses ask the other servers first
//
// x is the share of the data set that one server caches. The shares of misses of page_cache have no
// free parameter. With m the share of misses, an item survives g of its server's epochs with
// probability exp(-k g), where k = J m / x for J jobs that read the whole set, each in its own
// order, and k = m / (s x) for one job of s servers, each of which reads a random 1/s of the set:
//
//     1 job     h = ((1 - e^-k) / k)^2,                  m = 1 - h
//     J jobs    m = k I(J) (1 + I(J-1)),                 I(n) = integral 0..1 of (1 - y)^n e^-ky dy
//     s servers h = ((1 - e^-k) / k)^2 / s / (1 - (1 - 1/s) e^-k)
//     lru       h = 1 - a + a ln a,  a = 1 - x           (1 job, 1 server)
//
// 1 job gives the published 0.85 (x = 0.35) and 0.53 (x = 0.65), 2 servers the published 45 GiB
// (Mohan et al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB'21). 8 jobs at x = 0.35
// read 6.3 times as much as one; 7.1 times was measured there: the formula ignores jobs that drift
// apart in phase and other users of the cache.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

struct CachedSet {
  std::string policy = "page_cache";
  double cached = 0;         ///< Share of the data set that one server has room for, 0 to 1.
  std::int64_t servers = 1;  ///< Servers that train one job together.
  std::int64_t jobs = 1;     ///< Separate jobs on each server that read the same data.
};

/// The names of the policies, in the order above.
const std::vector<std::string_view>& cache_policies();

/// Where a job finds the items it needs in an epoch, as shares that add up to 1.
struct ItemShares {
  double local = 0;   ///< In the server's own cache.
  double remote = 0;  ///< In the cache of another server.
  double disk = 0;
};

/// Throws Error if the policy has no model for the set: lru with several jobs or servers,
/// page_cache with several of both.
ItemShares item_shares(const CachedSet& set);

/// The smallest cached share of the set with which at most the share `misses` of the items comes
/// from disk; 1 if none is enough. Throws Error as item_shares() does.
double cached_for(CachedSet set, double misses);

/// Samples per second that a number of CPU cores prepares, as measured: "3:2100" is 2100 with 3
/// cores. Rates between two rows are interpolated; below the first row they start at 0, and beyond
/// the last row they stay the same.
class PrepRates {
 public:
  PrepRates() = default;
  /// Throws Error on rows that cannot be read, on cores out of order and on rates that fall.
  explicit PrepRates(const std::vector<std::string>& rows);

  bool empty() const { return rows_.empty(); }
  double at(double cores) const;

 private:
  struct Row {
    double cores = 0;
    double rate = 0;
  };
  std::vector<Row> rows_;
};

}  // namespace foretrace
