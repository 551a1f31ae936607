#include "network/flow/fair_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretrace {
namespace {

/// Units in the greatest capacity, as a power of 2. Loads never exceed a capacity, so that their
/// sums remain exact as doubles too.
constexpr int kUnitBits = 52;
/// Rates that differ by less than this fraction are equal: whole units leave a remainder.
constexpr double kSame = 1e-9;
/// After so many attempts to solve only what a change affects, everything connected is solved.
constexpr int kAttempts = 8;

bool is_above(std::int64_t rate, std::int64_t other) {
  return static_cast<double>(rate) > static_cast<double>(other) * (1 + kSame);
}

}  // namespace

FairRates::FairRates(std::span<const Bandwidth> capacities) : links_(capacities.size()) {
  double most = 1;
  for (const Bandwidth& one : capacities) most = std::max(most, one.bytes_per_second);
  unit_ = std::exp2(std::ceil(std::log2(most)) - kUnitBits);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i].capacity = std::max<Units>(1, std::llround(capacities[i].bytes_per_second / unit_));
  }
}

std::uint32_t FairRates::add(std::span<const std::uint32_t> route) {
  std::uint32_t id = static_cast<std::uint32_t>(entries_.size());
  if (unused_.empty()) {
    entries_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Entry& entry = entries_[id];
  entry.route.assign(route.begin(), route.end());
  entry.position.resize(route.size());
  for (std::uint32_t hop = 0; hop < route.size(); ++hop) {
    std::vector<RouteHop>& hops = links_[route[hop]].hops;
    entry.position[hop] = static_cast<std::uint32_t>(hops.size());
    hops.push_back({id, hop});
  }
  return id;
}

void FairRates::remove(std::uint32_t id) {
  Entry& entry = entries_[id];
  for (std::uint32_t hop = 0; hop < entry.route.size(); ++hop) {
    std::vector<RouteHop>& hops = links_[entry.route[hop]].hops;
    const RouteHop moved = hops.back();
    hops[entry.position[hop]] = moved;
    entries_[moved.entry].position[moved.hop] = entry.position[hop];
    hops.pop_back();
  }
  if (entry.limit != kNone) --links_[entry.limit].limited;
  entry.route.clear();
  entry.limit = kNone;
  entry.rate = 0;
  unused_.push_back(id);
}

void FairRates::add_flows(std::uint32_t id, std::int32_t by) {
  Entry& entry = entries_[id];
  entry.count = static_cast<std::uint32_t>(static_cast<std::int32_t>(entry.count) + by);
  for (const std::uint32_t link : entry.route) links_[link].load += entry.rate * by;
  dirty_.insert(dirty_.end(), entry.route.begin(), entry.route.end());
}

std::optional<std::uint32_t> FairRates::find(std::span<const std::uint32_t> route) const {
  const std::vector<RouteHop>* fewest = &links_[route.front()].hops;
  for (const std::uint32_t link : route) {
    if (links_[link].hops.size() < fewest->size()) fewest = &links_[link].hops;
  }
  for (const RouteHop& hop : *fewest) {
    if (std::ranges::equal(entries_[hop.entry].route, route)) return hop.entry;
  }
  return std::nullopt;
}

void FairRates::update_rates(std::vector<Change>& changed) {
  if (dirty_.empty()) return;
  ++solve_;
  for (const std::uint32_t link : dirty_) solve_limited_by(link);
  dirty_.clear();
  int attempt = 0;
  do fill();
  while (widen(++attempt >= kAttempts));
  finish(changed);
}

/// Takes the rate of an entry off its links, because it is to be solved.
void FairRates::solve(std::uint32_t id) {
  Entry& entry = entries_[id];
  if (is_solved(entry)) return;
  entry.solve = solve_;
  entry.before = entry.rate;
  solved_.push_back(id);
  if (entry.limit == kNone) return;
  --links_[entry.limit].limited;
  for (const std::uint32_t link : entry.route) links_[link].load -= entry.rate * entry.count;
}

/// Solves the entries that a link limits together, so that they keep equal rates, and new ones.
void FairRates::solve_limited_by(std::uint32_t link) {
  for (const RouteHop& hop : links_[link].hops) {
    const std::uint32_t limit = entries_[hop.entry].limit;
    if (limit == link || limit == kNone) solve(hop.entry);
  }
}

/// Distributes the capacity that the others leave among the solved entries by progressive filling.
void FairRates::fill() {
  computed_ += solved_.size();
  touched_.clear();
  exceeded_.clear();
  for (const std::uint32_t id : solved_) {
    entries_[id].is_fixed = false;
    for (const std::uint32_t other : entries_[id].route) {
      Link& link = links_[other];
      if (link.open == 0) touched_.push_back(other), link.left = link.capacity - link.load;
      link.open += entries_[id].count;
    }
  }
  const auto share_of = [](const Link& link) {
    return std::max<Units>(1, link.left / static_cast<Units>(link.open));
  };
  heap_.clear();
  for (const std::uint32_t link : touched_) heap_.push_back({share_of(links_[link]), link});
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    Candidate& least = heap_.back();
    const Link& link = links_[least.link];
    const Units share = link.open == 0 ? least.share : share_of(link);
    if (share > least.share) {  // Some of its flows have been fixed at a lower rate meanwhile.
      least.share = share;
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      continue;
    }
    const std::uint32_t full = least.link;
    heap_.pop_back();
    if (links_[full].open > 0) fix_all_on(full, share);
  }
}

/// Fixes the open entries of a full link.
void FairRates::fix_all_on(std::uint32_t full, Units share) {
  for (const RouteHop& hop : links_[full].hops) {
    Entry& entry = entries_[hop.entry];
    if (!is_solved(entry)) {
      if (is_above(entry.rate, share)) exceeded_.push_back(entry.limit);
      continue;
    }
    if (entry.is_fixed) continue;
    entry.is_fixed = true;
    entry.rate = share;
    entry.limit = full;
    for (const std::uint32_t link : entry.route) {
      links_[link].left -= share * entry.count;
      links_[link].open -= entry.count;
    }
  }
}

/// Whether a link limits the entries that it limited before, with the new rates of the others.
bool FairRates::still_limits(std::uint32_t id) const {
  const Link& link = links_[id];
  if (link.limited == 0) return true;
  if (static_cast<double>(link.left) > static_cast<double>(link.capacity) * kSame) return false;
  Units fastest = 0, limited = std::numeric_limits<Units>::max();
  for (const RouteHop& hop : link.hops) {
    const Entry& entry = entries_[hop.entry];
    if (is_solved(entry))
      fastest = std::max(fastest, entry.rate);
    else if (entry.limit == id)
      limited = std::min(limited, entry.rate);
  }
  return !is_above(fastest, limited);
}

/// Also solves the entries that no link limits any more, or all neighbors; returns whether there
/// are any.
bool FairRates::widen(bool to_all) {
  const std::size_t before = solved_.size();
  for (const std::uint32_t link : exceeded_) solve_limited_by(link);
  for (const std::uint32_t link : touched_) {
    if (!still_limits(link)) solve_limited_by(link);
  }
  if (!to_all || solved_.size() == before) return solved_.size() > before;
  for (const std::uint32_t link : touched_)
    for (const RouteHop& hop : links_[link].hops) solve(hop.entry);
  return true;
}

void FairRates::finish(std::vector<Change>& changed) {
  for (const std::uint32_t id : solved_) {
    const Entry& entry = entries_[id];
    ++links_[entry.limit].limited;
    for (const std::uint32_t link : entry.route) links_[link].load += entry.rate * entry.count;
    if (entry.rate != entry.before) changed.push_back({id, bytes_per_second(entry.before)});
  }
  solved_.clear();
}

void FairRates::each(const std::function<void(std::uint32_t)>& visit) const {
  for (std::uint32_t id = 0; id < entries_.size(); ++id) {
    if (entries_[id].count > 0) visit(id);
  }
}

}  // namespace foretrace
