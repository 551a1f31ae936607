#pragma once

// Max-min fair rates of entries over links; see flows.h. It knows no time.

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

  /// An entry without flows. Ids of removed ones are used again.
  std::uint32_t add(std::span<const std::uint32_t> route, std::uint32_t priority);
  void remove(std::uint32_t entry);
  /// Adds to the number of flows of an entry.
  void change(std::uint32_t entry, std::int32_t by);

  /// The entry with this route and priority, found on the link of the route with fewest entries.
  std::optional<std::uint32_t> find(std::span<const std::uint32_t> route,
                                    std::uint32_t priority) const;
  std::span<const std::uint32_t> route(std::uint32_t entry) const { return entries_[entry].route; }
  std::uint32_t count(std::uint32_t entry) const { return entries_[entry].count; }
  /// Bytes per second of each flow of the entry, since settle().
  double rate(std::uint32_t entry) const { return entries_[entry].rate; }

  struct Change {
    std::uint32_t entry;
    double before;  ///< Its rate until now.
  };
  /// Works out new rates of what the changes since reach; appends those that differ.
  void settle(std::vector<Change>& changed);
  void each(const std::function<void(std::uint32_t)>& visit) const;

 private:
  struct Place {
    std::uint32_t entry, hop;  ///< `hop`: index into the entry's route.
  };
  struct Link {
    double capacity = 0;
    double left = 0;  ///< For entries that are not fixed.
    std::uint32_t open = 0, fixing = 0;
    std::uint32_t visit = 0;
    std::vector<Place> places;
  };
  struct Entry {
    std::vector<std::uint32_t> route, place;  ///< `place`: where each link lists it.
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

  void reach();
  void reach_link(std::uint32_t link);
  void serve(std::span<const std::uint32_t> entries);
  void fix(std::uint32_t link, double share);

  std::vector<Link> links_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> dirty_;               ///< Links whose traffic changed.
  std::vector<std::uint32_t> reached_, in_reach_;  ///< Entries, links.
  std::uint32_t visit_ = 0;
  std::vector<Candidate> heap_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace foretrace
