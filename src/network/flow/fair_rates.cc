#include "network/flow/fair_rates.h"

#include <algorithm>

namespace foretrace {

FairRates::FairRates(std::span<const Bandwidth> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < links_.size(); ++i)
    links_[i].capacity = capacities[i].bytes_per_second;
}

std::uint32_t FairRates::add(std::span<const std::uint32_t> route, std::uint32_t priority) {
  std::uint32_t id = static_cast<std::uint32_t>(entries_.size());
  if (unused_.empty()) {
    entries_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Entry& entry = entries_[id];
  entry.route.assign(route.begin(), route.end());
  entry.place.resize(route.size());
  entry.priority = priority;
  entry.count = 0;
  entry.rate = 0;
  for (std::uint32_t hop = 0; hop < route.size(); ++hop) {
    std::vector<Place>& places = links_[route[hop]].places;
    entry.place[hop] = static_cast<std::uint32_t>(places.size());
    places.push_back({id, hop});
  }
  return id;
}

void FairRates::remove(std::uint32_t id) {
  Entry& entry = entries_[id];
  for (std::uint32_t hop = 0; hop < entry.route.size(); ++hop) {
    std::vector<Place>& places = links_[entry.route[hop]].places;
    const Place moved = places.back();
    places[entry.place[hop]] = moved;
    entries_[moved.entry].place[moved.hop] = entry.place[hop];
    places.pop_back();
  }
  dirty_.insert(dirty_.end(), entry.route.begin(), entry.route.end());
  entry.route.clear();
  entry.count = 0;
  entry.rate = 0;
  unused_.push_back(id);
}

void FairRates::change(std::uint32_t id, std::int32_t by) {
  Entry& entry = entries_[id];
  entry.count = static_cast<std::uint32_t>(static_cast<std::int32_t>(entry.count) + by);
  dirty_.insert(dirty_.end(), entry.route.begin(), entry.route.end());
}

std::optional<std::uint32_t> FairRates::find(std::span<const std::uint32_t> route,
                                             std::uint32_t priority) const {
  const std::vector<Place>* fewest = &links_[route.front()].places;
  for (const std::uint32_t link : route) {
    if (links_[link].places.size() < fewest->size()) fewest = &links_[link].places;
  }
  for (const Place& place : *fewest) {
    const Entry& entry = entries_[place.entry];
    if (entry.priority == priority && std::ranges::equal(entry.route, route)) return place.entry;
  }
  return std::nullopt;
}

void FairRates::reach_link(std::uint32_t link) {
  if (links_[link].visit == visit_) return;
  links_[link].visit = visit_;
  in_reach_.push_back(link);
}

/// Collects the links and entries connected with the changed links.
void FairRates::reach() {
  ++visit_;
  reached_.clear();
  in_reach_.clear();
  for (const std::uint32_t link : dirty_) reach_link(link);
  for (std::size_t i = 0; i < in_reach_.size(); ++i) {
    for (const Place& place : links_[in_reach_[i]].places) {
      Entry& entry = entries_[place.entry];
      if (entry.visit == visit_) continue;
      entry.visit = visit_;
      reached_.push_back(place.entry);
      for (const std::uint32_t link : entry.route) reach_link(link);
    }
  }
}

void FairRates::settle(std::vector<Change>& changed) {
  if (dirty_.empty()) return;
  reach();
  dirty_.clear();
  for (const std::uint32_t link : in_reach_) links_[link].left = links_[link].capacity;
  for (const std::uint32_t id : reached_) entries_[id].before = entries_[id].rate;
  std::sort(reached_.begin(), reached_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return entries_[a].priority < entries_[b].priority;
  });
  for (std::size_t first = 0; first < reached_.size();) {
    std::size_t last = first;
    const std::uint32_t priority = entries_[reached_[first]].priority;
    while (last < reached_.size() && entries_[reached_[last]].priority == priority) ++last;
    serve({reached_.data() + first, last - first});
    first = last;
  }
  for (const std::uint32_t id : reached_) {
    if (entries_[id].rate != entries_[id].before) changed.push_back({id, entries_[id].before});
  }
}

/// Distributes the remaining capacity among entries of one priority by progressive filling.
void FairRates::serve(std::span<const std::uint32_t> entries) {
  for (const std::uint32_t id : entries) {
    entries_[id].is_fixed = false;
    for (const std::uint32_t link : entries_[id].route) links_[link].open = 0;
  }
  touched_.clear();
  for (const std::uint32_t id : entries) {
    for (const std::uint32_t link : entries_[id].route) {
      if (links_[link].open == 0) touched_.push_back(link);
      links_[link].open += entries_[id].count;
    }
  }
  heap_.clear();
  for (const std::uint32_t link : touched_) {
    if (links_[link].open > 0) heap_.push_back({links_[link].left / links_[link].open, link});
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  const std::uint32_t priority = entries.empty() ? 0 : entries_[entries.front()].priority;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Candidate least = heap_.back();
    heap_.pop_back();
    Link& link = links_[least.link];
    if (link.open == 0) continue;
    const double share = std::max(0.0, link.left / link.open);
    if (share > least.share) {  // Some of its flows have been fixed at a lower rate meanwhile.
      heap_.push_back({share, least.link});
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      continue;
    }
    touched_.clear();
    for (const Place& place : link.places) {
      Entry& entry = entries_[place.entry];
      if (entry.is_fixed || entry.priority != priority || entry.count == 0) continue;
      entry.is_fixed = true;
      entry.rate = share;
      for (const std::uint32_t other : entry.route) {
        if (links_[other].fixing == 0) touched_.push_back(other);
        links_[other].fixing += entry.count;
      }
    }
    for (const std::uint32_t other : touched_) fix(other, share);
  }
}

/// Subtracts the flows that one step fixed from a link at once, so that their order does not
/// matter.
void FairRates::fix(std::uint32_t id, double share) {
  Link& link = links_[id];
  link.left = std::max(0.0, link.left - share * link.fixing);
  link.open -= link.fixing;
  link.fixing = 0;
}

void FairRates::each(const std::function<void(std::uint32_t)>& visit) const {
  for (std::uint32_t id = 0; id < entries_.size(); ++id) {
    if (entries_[id].count > 0) visit(id);
  }
}

}  // namespace foretrace
