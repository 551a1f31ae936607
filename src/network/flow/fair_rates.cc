#include "network/flow/fair_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace foretrace {
namespace {

/// Units in the greatest capacity, as a power of 2. Loads never exceed a capacity, so that their
/// sums remain exact as doubles too.
constexpr int kUnitBits = 52;
/// Rates that differ by less than 2^-30, 1e-9, are equal: whole units leave a remainder.
constexpr int kSameBits = 30;

std::int64_t margin(std::int64_t rate) { return rate >> kSameBits; }

template <class Candidates>
void push(Candidates& heap, typename Candidates::value_type candidate) {
  heap.push_back(candidate);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <class Candidates>
typename Candidates::value_type pop(Candidates& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const auto least = heap.back();
  heap.pop_back();
  return least;
}

}  // namespace

FairRates::FairRates(std::span<const Bandwidth> capacities)
    : links_(capacities.size()), history_(capacities.size()) {
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
    routes_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  note_predecessors(route);
  routes_[id].assign(route.begin(), route.end());
  for (const std::uint32_t link : route) {
    if (!history_[link].is_covered) add_hop(id, link);
  }
  return id;
}

void FairRates::add_hop(std::uint32_t id, std::uint32_t link) {
  std::vector<RouteHop>& hops = links_[link].hops;
  std::vector<Hop>& own = entries_[id].hops;
  own.push_back({link, static_cast<std::uint32_t>(hops.size())});
  hops.push_back({id, static_cast<std::uint32_t>(own.size() - 1)});
}

/// Updates which links are covered.
void FairRates::note_predecessors(std::span<const std::uint32_t> route) {
  std::uint32_t before = kSeveral;
  for (const std::uint32_t id : route) {
    LinkHistory& link = history_[id];
    if (link.before == kNone) {
      link.before = before;
      link.is_covered = before != kSeveral && links_[id].capacity >= links_[before].capacity;
    } else if (link.before != before && link.before != kSeveral) {
      if (link.is_covered) uncover(id);
      link.before = kSeveral;
    }
    before = id;
  }
}

/// Adds a link to the hops of the entries whose routes it is in.
void FairRates::uncover(std::uint32_t id) {
  history_[id].is_covered = false;
  std::uint32_t covering = history_[id].before;
  while (history_[covering].is_covered) covering = history_[covering].before;
  for (const RouteHop& hop : links_[covering].hops) {
    if (std::ranges::find(routes_[hop.entry], id) == routes_[hop.entry].end()) continue;
    add_hop(hop.entry, id);
    links_[id].load += entries_[hop.entry].rate * entries_[hop.entry].count;
  }
}

void FairRates::remove(std::uint32_t id) {
  Entry& entry = entries_[id];
  for (const auto& [link, position] : entry.hops) {
    std::vector<RouteHop>& hops = links_[link].hops;
    const RouteHop moved = hops.back();
    hops[position] = moved;
    entries_[moved.entry].hops[moved.hop].position = position;
    hops.pop_back();
  }
  if (entry.limit != kNone) --links_[entry.limit].limited;
  routes_[id].clear();
  entry.hops.clear();
  entry.limit = kNone;
  entry.rate = 0;
  unused_.push_back(id);
}

void FairRates::add_flows(std::uint32_t id, std::int32_t by) {
  Entry& entry = entries_[id];
  entry.count = static_cast<std::uint32_t>(static_cast<std::int32_t>(entry.count) + by);
  for (const auto& [link, position] : entry.hops) {
    links_[link].load += entry.rate * by;
    dirty_.push_back(link);
  }
}

std::optional<std::uint32_t> FairRates::find(std::span<const std::uint32_t> route) const {
  const std::vector<RouteHop>* fewest = nullptr;
  for (const std::uint32_t id : route) {
    if (history_[id].is_covered) continue;
    if (!fewest || links_[id].hops.size() < fewest->size()) fewest = &links_[id].hops;
    if (fewest->empty()) return std::nullopt;
  }
  if (!fewest) return std::nullopt;
  for (const RouteHop& hop : *fewest) {
    if (std::ranges::equal(routes_[hop.entry], route)) return hop.entry;
  }
  return std::nullopt;
}

void FairRates::update_rates(std::vector<Change>& changed) {
  if (dirty_.empty()) return;
  ++solve_;
  heap_.clear();
  checks_.clear();
  for (const std::uint32_t link : dirty_) solve_limited_by(link);
  dirty_.clear();
  list_candidates();
  while (unfixed_ > 0 || !checks_.empty()) {
    const bool is_check = !checks_.empty() && (unfixed_ == 0 || heap_.front() > checks_.front());
    if (is_check)
      check(pop(checks_).link);
    else
      fill(pop(heap_));
  }
  finish(changed);
}

/// Opens an entry: takes its rate off its links, because it is to be solved.
void FairRates::solve(std::uint32_t id) {
  Entry& entry = entries_[id];
  if (is_solved(entry)) return;
  entry.solve = solve_;
  entry.before = entry.rate;
  entry.is_fixed = false;
  solved_.push_back(id);
  ++unfixed_;
  if (entry.limit != kNone) --links_[entry.limit].limited;
  for (const auto& [other, position] : entry.hops) {
    Link& link = links_[other];
    const Units load = entry.rate * entry.count;
    link.load -= load;
    link.open += entry.count;
    if (link.solve == solve_) {
      link.left += load;
      continue;
    }
    link.solve = solve_;
    link.left = link.capacity - link.load;
    if (link.limited == 0) continue;
    const Units level = history_[other].level;
    push(checks_, {level + margin(level), other, kNone});
  }
}

/// Solves the entries that a link limits together, so that they keep equal rates, and new ones.
void FairRates::solve_limited_by(std::uint32_t link) {
  for (const RouteHop& hop : links_[link].hops) {
    const std::uint32_t limit = entries_[hop.entry].limit;
    if (limit == link || limit == kNone) solve(hop.entry);
  }
}

/// Lists the links that may limit the entries opened since the last call.
void FairRates::list_candidates() {
  ++list_;
  for (; listed_ < solved_.size(); ++listed_) list_candidates_of(solved_[listed_]);
}

/// Lists the links that an open entry shares with others, and the narrowest of those that it has
/// for itself.
void FairRates::list_candidates_of(std::uint32_t id) {
  const Entry& entry = entries_[id];
  Candidate own{0, kNone, id};
  for (const auto& [other, position] : entry.hops) {
    Link& link = links_[other];
    if (link.open == entry.count) {
      const Candidate candidate{share_of(link), other, id};
      if (own.link == kNone || own > candidate) own = candidate;
    } else if (link.list != list_) {
      link.list = list_;
      push(heap_, {share_of(link), other, kNone});
    }
  }
  if (own.link != kNone) push(heap_, own);
}

/// Fixes the open entries of a link if it is full at this share, before any other link.
void FairRates::fill(Candidate least) {
  const Link& link = links_[least.link];
  if (link.open == 0 || (least.entry != kNone && entries_[least.entry].is_fixed)) return;
  const Units share = share_of(link);
  // Flows of a shared link have been fixed at a lower rate meanwhile, or an entry has company.
  const bool has_risen = share > least.share;
  if (!has_risen && !solve_faster_on(least.link, share))
    fix_all_on(least.link, share);
  else if (least.entry != kNone)
    list_candidates_of(least.entry);
  else if (has_risen)
    push(heap_, {share, least.link, kNone});
}

/// Opens the entries that are faster than the share of a full link; returns whether there are any.
bool FairRates::solve_faster_on(std::uint32_t full, Units share) {
  if (links_[full].load <= share) return false;
  const std::size_t before = solved_.size();
  for (const RouteHop& hop : links_[full].hops) {
    const Entry& entry = entries_[hop.entry];
    if (!is_solved(entry) && entry.rate > share + margin(share)) solve(hop.entry);
  }
  if (solved_.size() == before) return false;
  list_candidates();
  return true;
}

/// Fixes the open entries of a full link.
void FairRates::fix_all_on(std::uint32_t full, Units share) {
  history_[full].level = share;
  for (const RouteHop& hop : links_[full].hops) {
    Entry& entry = entries_[hop.entry];
    if (!is_solved(entry) || entry.is_fixed) continue;
    entry.is_fixed = true;
    --unfixed_;
    entry.rate = share;
    entry.limit = full;
    for (const auto& [link, position] : entry.hops) {
      links_[link].left -= share * entry.count;
      links_[link].open -= entry.count;
    }
  }
}

/// Opens the entries that a link limited, once all rates have risen to theirs, unless it is full
/// without anything faster.
void FairRates::check(std::uint32_t id) {
  const Link& link = links_[id];
  if (link.limited == 0 || (link.open == 0 && link.left <= margin(link.capacity))) return;
  solve_limited_by(id);
  list_candidates();
}

void FairRates::finish(std::vector<Change>& changed) {
  computed_ += solved_.size();
  for (const std::uint32_t id : solved_) {
    const Entry& entry = entries_[id];
    ++links_[entry.limit].limited;
    for (const auto& [link, position] : entry.hops) links_[link].load += entry.rate * entry.count;
    if (entry.rate != entry.before) changed.push_back({id, bytes_per_second(entry.before)});
  }
  solved_.clear();
  listed_ = 0;
}

}  // namespace foretrace
