#pragma once

// Max-min fair rates of entries over links; see flows.h. This class has no notion of time.

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
  std::uint32_t add(std::span<const std::uint32_t> route, std::uint32_t priority);
  void remove(std::uint32_t entry);
  /// Adds to the number of flows of an entry.
  void add_flows(std::uint32_t entry, std::int32_t by);

  /// Finds the entry with this route and priority by looking at the link of the route with the
  /// fewest entries. Returns nullopt if there is none.
  std::optional<std::uint32_t> find(std::span<const std::uint32_t> route,
                                    std::uint32_t priority) const;
  std::span<const std::uint32_t> route(std::uint32_t entry) const { return entries_[entry].route; }
  std::uint32_t count(std::uint32_t entry) const { return entries_[entry].count; }
  /// Bytes per second of each flow of the entry, as of the last update_rates().
  double rate(std::uint32_t entry) const { return entries_[entry].rate; }

  struct Change {
    std::uint32_t entry;
    double before;  ///< The rate before the change.
  };
  /// Computes new rates for all entries that the changes since the last call affect; appends the
  /// entries whose rate changed.
  void update_rates(std::vector<Change>& changed);
  void each(const std::function<void(std::uint32_t)>& visit) const;

 private:
  struct RouteHop {
    std::uint32_t entry, hop;  ///< `hop`: index into the entry's route.
  };
  struct Link {
    double capacity = 0;
    double left = 0;  ///< Capacity left for entries that are not fixed yet.
    std::uint32_t open = 0, fixing = 0;
    std::uint32_t visit = 0;
    std::vector<RouteHop> hops;
  };
  struct Entry {
    /// `position`: index of the entry in the list of each link of its route.
    std::vector<std::uint32_t> route, position;
    std::uint32_t priority = 0, count = 0, visit = 0;
    bool is_fixed = false;
    double rate = 0, before = 0;
  };
  struct Candidate {
    double share;
    std::uint32_t link;
    bool operator>(const Candidate& other) const {
      return share != other.share ? share > other.share : link > other.link;
    }
  };

  void collect_affected();
  void add_affected_link(std::uint32_t link);
  void fill_class(std::span<const std::uint32_t> entries);
  void fix(std::uint32_t link, double share);

  std::vector<Link> links_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> dirty_;                              ///< Links whose traffic changed.
  std::vector<std::uint32_t> affected_entries_, affected_links_;  ///< Entries, links.
  std::uint32_t visit_ = 0;
  std::vector<Candidate> heap_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace foretrace
