#pragma once

// Max-min fair rates of entries over links; see flows.h. This class has no notion of time.
//
// Rates are max-min fair if and only if each entry has a link that limits it: the link is full, and
// no other entry on it is faster. A change therefore solves only the entries that a changed link
// limits, as if all others kept their rates, and widens the solve to those whose limit that breaks:
//
//     entry  route   capacities a = 10, b = 4, c = 9      3 ends: b no longer limits 2, which is
//     1      a       2 and 3 are limited by b (2 each),   solved alone: b gives it 4, but a has
//     2      a b     1 by a (8)                           only 2 left, and 1 is faster there; 1 and
//     3      b       4 by c (9)                           2 are solved: 6 and 4. 4 keeps its rate.
//     4      c

#include <cstdint>
#include <functional>
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
  std::span<const std::uint32_t> route(std::uint32_t entry) const { return entries_[entry].route; }
  std::uint32_t count(std::uint32_t entry) const { return entries_[entry].count; }
  /// Bytes per second of each flow of the entry, as of the last update_rates().
  double rate(std::uint32_t entry) const { return bytes_per_second(entries_[entry].rate); }

  struct Change {
    std::uint32_t entry;
    double before;  ///< The rate before the change.
  };
  /// Computes new rates for the entries that the changes since the last call affect; appends the
  /// entries whose rate changed.
  void update_rates(std::vector<Change>& changed);
  void each(const std::function<void(std::uint32_t)>& visit) const;
  /// The number of rates computed so far: a measure of the work.
  std::uint64_t computed() const { return computed_; }

 private:
  /// Rates and capacities are whole multiples of a unit, 2^-52 of the greatest capacity: their sums
  /// are exact, in whichever order.
  using Units = std::int64_t;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct RouteHop {
    std::uint32_t entry, hop;  ///< `hop`: index into the entry's route.
  };
  struct Link {
    Units capacity = 0;
    Units load = 0;  ///< Rates of all flows, except those that are being solved.
    Units left = 0;  ///< Capacity left for entries that are not fixed yet.
    std::uint32_t open = 0;
    std::uint32_t limited = 0;  ///< Entries whose rate this link limits, without those solved.
    std::vector<RouteHop> hops;
  };
  struct Entry {
    /// `position`: index of the entry in the list of each link of its route.
    std::vector<std::uint32_t> route, position;
    std::uint32_t count = 0, solve = 0;
    std::uint32_t limit = kNone;  ///< The link that limits the rate; kNone before the first solve.
    bool is_fixed = false;
    Units rate = 0, before = 0;
  };
  struct Candidate {
    Units share;
    std::uint32_t link;
    bool operator>(const Candidate& other) const {
      return share != other.share ? share > other.share : link > other.link;
    }
  };

  double bytes_per_second(Units rate) const { return static_cast<double>(rate) * unit_; }
  bool is_solved(const Entry& entry) const { return entry.solve == solve_; }
  void solve(std::uint32_t entry);
  void solve_limited_by(std::uint32_t link);
  void fill();
  void fix_all_on(std::uint32_t link, Units share);
  bool widen(bool to_all);
  bool still_limits(std::uint32_t link) const;
  void finish(std::vector<Change>& changed);

  double unit_ = 1;  ///< Bytes per second; a power of 2.
  std::vector<Link> links_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> dirty_;     ///< Links whose traffic changed.
  std::vector<std::uint32_t> solved_;    ///< Entries.
  std::vector<std::uint32_t> touched_;   ///< Links of solved entries.
  std::vector<std::uint32_t> exceeded_;  ///< Links that limit others to more than they may have.
  std::uint32_t solve_ = 0;
  std::uint64_t computed_ = 0;
  std::vector<Candidate> heap_;
};

}  // namespace foretrace
