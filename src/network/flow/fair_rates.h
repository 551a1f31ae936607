#pragma once

// Max-min fair rates of entries over links; see flows.h. This class has no notion of time.
//
// Rates are max-min fair if and only if each entry has a link that limits it: the link is full, and
// no other entry on it is faster. A change therefore solves only the entries that a changed link
// limits, as if all others kept their rates: they rise together until a link is full. On the way
// they meet others, which are solved from there on: those that are faster than a full link's share,
// and, once all have risen to their rate, those whose link is not full any more or has others that
// still rise.
//
//     entry  route   capacities a = 10, b = 4, c = 9      3 ends: b no longer limits 2, which
//     1      a       2 and 3 are limited by b (2 each),   rises to 2, what a has left, where 1 is
//     2      a b     1 by a (8)                           faster: both rise; b stops 2 at 4, a
//     3      b       4 by c (9)                           stops 1 at 6. 4 keeps its rate.
//     4      c
//
// A link is covered if the link before it is the same in all routes so far, and no wider: it has a
// part of that link's flows, so it never limits them first, and rates are computed without it. A
// NIC's cable covers what follows it inside the host, as long as everything comes from there.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

class FairRates {
 public:
  explicit FairRates(std::span<const Bandwidth> capacities);

  /// Adds an entry without flows. Ids of removed entries are reused.
  std::uint32_t add(std::span<const std::uint32_t> route);
  /// REQUIRES: the entry has no flows.
  void remove(std::uint32_t entry);
  /// Adds to the number of flows of an entry.
  void add_flows(std::uint32_t entry, std::int32_t by);

  /// Finds the entry with this route by looking at the link of the route with the fewest entries.
  /// Returns nullopt if there is none.
  std::optional<std::uint32_t> find(std::span<const std::uint32_t> route) const;
  /// Bytes per second of each flow of the entry, as of the last update_rates().
  double rate(std::uint32_t entry) const { return bytes_per_second(entries_[entry].rate); }

  /// The link that limits the rate.
  std::uint32_t limit(std::uint32_t entry) const { return entries_[entry].limit; }

  struct Change {
    std::uint32_t entry;
    double before;  ///< The rate before the change.
  };
  /// Computes new rates for the entries that the changes since the last call affect; appends the
  /// entries whose rate changed.
  void update_rates(std::vector<Change>& changed);
  /// The number of rates computed so far: a measure of the work.
  std::uint64_t computed() const { return computed_; }

 private:
  /// Rates and capacities are whole multiples of a unit, 2^-52 of the greatest capacity: their sums
  /// are exact, in whichever order.
  using Units = std::int64_t;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Predecessor of a link that has none in some routes, or different ones.
  static constexpr std::uint32_t kSeveral = kNone - 1;

  struct RouteHop {
    std::uint32_t entry, hop;  ///< `hop`: index into the entry's hops.
  };
  /// One cache line, which is what most of the time goes to.
  struct alignas(64) Link {
    Units capacity = 0;
    Units load = 0;                     ///< Rates of all flows, except those that are being solved.
    Units left = 0;                     ///< Capacity left for entries that are not fixed yet.
    std::uint32_t open = 0;             ///< Flows that are not fixed yet.
    std::uint32_t limited = 0;          ///< Entries whose rate this link limits and keeps.
    std::uint32_t solve = 0, list = 0;  ///< The last ones that it was part of.
    std::vector<RouteHop> hops;         ///< Empty if covered.
  };
  struct LinkHistory {
    Units level = 0;               ///< The rate of the entries that it limits.
    std::uint32_t before = kNone;  ///< The link before this one in all routes so far; or kSeveral.
    bool is_covered = false;       ///< By the link before it.
  };
  struct Hop {
    std::uint32_t link, position;  ///< `position`: index of the entry in the list of the link.
  };
  struct alignas(64) Entry {
    std::vector<Hop> hops;  ///< The links of the route that are not covered.
    std::uint32_t count = 0, solve = 0;
    std::uint32_t limit = kNone;  ///< The link that limits the rate; kNone before the first solve.
    bool is_fixed = false;
    Units rate = 0, before = 0;
  };
  struct Candidate {
    Units share;
    std::uint32_t link;
    std::uint32_t entry;  ///< The one that has the link for itself; kNone if several share it.
    bool operator>(const Candidate& other) const {
      return share != other.share ? share > other.share : link > other.link;
    }
  };

  void note_predecessors(std::span<const std::uint32_t> route);
  void uncover(std::uint32_t link);
  void add_hop(std::uint32_t entry, std::uint32_t link);
  double bytes_per_second(Units rate) const { return static_cast<double>(rate) * unit_; }
  bool is_solved(const Entry& entry) const { return entry.solve == solve_; }
  void solve(std::uint32_t entry);
  void solve_limited_by(std::uint32_t link);
  static Units share_of(const Link& link) {
    if (link.open == 1) return std::max<Units>(1, link.left);
    return std::max<Units>(1, link.left / static_cast<Units>(link.open));
  }
  void list_candidates();
  void list_candidates_of(std::uint32_t entry);
  void fill(Candidate least);
  bool solve_faster_on(std::uint32_t link, Units share);
  void fix_all_on(std::uint32_t link, Units share);
  void check(std::uint32_t link);
  void finish(std::vector<Change>& changed);

  double unit_ = 1;  ///< Bytes per second; a power of 2.
  std::vector<Link> links_;
  std::vector<LinkHistory> history_;  ///< By link.
  std::vector<Entry> entries_;
  std::vector<std::vector<std::uint32_t>> routes_;  ///< By entry.
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> dirty_;   ///< Links whose traffic changed.
  std::vector<std::uint32_t> solved_;  ///< Entries.
  std::size_t listed_ = 0;             ///< Solved entries whose links are in the heap.
  std::size_t unfixed_ = 0;            ///< Solved entries that no link limits yet.
  std::uint32_t solve_ = 0, list_ = 0;
  std::uint64_t computed_ = 0;
  std::vector<Candidate> heap_;
  std::vector<Candidate> checks_;  ///< Links that limited entries, at the rate of these.
};

}  // namespace foretrace
