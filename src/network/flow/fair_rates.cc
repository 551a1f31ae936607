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
  entry.position.resize(route.size());
  entry.priority = priority;
  entry.count = 0;
  entry.rate = 0;
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
  dirty_.insert(dirty_.end(), entry.route.begin(), entry.route.end());
  entry.route.clear();
  entry.count = 0;
  entry.rate = 0;
  unused_.push_back(id);
}

void FairRates::add_flows(std::uint32_t id, std::int32_t by) {
  Entry& entry = entries_[id];
  entry.count = static_cast<std::uint32_t>(static_cast<std::int32_t>(entry.count) + by);
  dirty_.insert(dirty_.end(), entry.route.begin(), entry.route.end());
}

std::optional<std::uint32_t> FairRates::find(std::span<const std::uint32_t> route,
                                             std::uint32_t priority) const {
  const std::vector<RouteHop>* fewest = &links_[route.front()].hops;
  for (const std::uint32_t link : route) {
    if (links_[link].hops.size() < fewest->size()) fewest = &links_[link].hops;
  }
  for (const RouteHop& hop : *fewest) {
    const Entry& entry = entries_[hop.entry];
    if (entry.priority == priority && std::ranges::equal(entry.route, route)) return hop.entry;
  }
  return std::nullopt;
}

void FairRates::add_affected_link(std::uint32_t link) {
  if (links_[link].visit == visit_) return;
  links_[link].visit = visit_;
  affected_links_.push_back(link);
}

/// Collects the links and entries connected with the changed links.
void FairRates::collect_affected() {
  ++visit_;
  affected_entries_.clear();
  affected_links_.clear();
  for (const std::uint32_t link : dirty_) add_affected_link(link);
  for (std::size_t i = 0; i < affected_links_.size(); ++i) {
    for (const RouteHop& hop : links_[affected_links_[i]].hops) {
      Entry& entry = entries_[hop.entry];
      if (entry.visit == visit_) continue;
      entry.visit = visit_;
      affected_entries_.push_back(hop.entry);
      for (const std::uint32_t link : entry.route) add_affected_link(link);
    }
  }
}

void FairRates::update_rates(std::vector<Change>& changed) {
  if (dirty_.empty()) return;
  collect_affected();
  dirty_.clear();
  for (const std::uint32_t link : affected_links_) links_[link].left = links_[link].capacity;
  for (const std::uint32_t id : affected_entries_) entries_[id].before = entries_[id].rate;
  std::sort(affected_entries_.begin(), affected_entries_.end(),
            [&](std::uint32_t a, std::uint32_t b) {
              return entries_[a].priority < entries_[b].priority;
            });
  for (std::size_t first = 0; first < affected_entries_.size();) {
    std::size_t last = first;
    const std::uint32_t priority = entries_[affected_entries_[first]].priority;
    while (last < affected_entries_.size() &&
           entries_[affected_entries_[last]].priority == priority)
      ++last;
    fill_class({affected_entries_.data() + first, last - first});
    first = last;
  }
  for (const std::uint32_t id : affected_entries_) {
    if (entries_[id].rate != entries_[id].before) changed.push_back({id, entries_[id].before});
  }
}

/// Distributes the remaining capacity among entries of one priority by progressive filling.
void FairRates::fill_class(std::span<const std::uint32_t> entries) {
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
    for (const RouteHop& hop : link.hops) {
      Entry& entry = entries_[hop.entry];
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
