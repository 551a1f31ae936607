// Finds the record of a profiler's trace for each op of an execution trace.

#include <algorithm>

#include "import/execution_traces/align_sequences.h"
#include "import/execution_traces/link_execution_trace.h"

namespace foretrace {

namespace {

bool is_op(const HostRecord& record) {
  return record.kind == HostKind::op || record.kind == HostKind::annotation;
}

std::int64_t record_function(const Trace& trace, const HostRecord& record) {
  return record.details == kNone ? -1 : trace.op_details[record.details].record_function;
}

/// The index in `to` of each name in `from`; kNone for names that `to` lacks.
std::vector<std::uint32_t> translate_names(const Names& from, const Names& to) {
  std::vector<std::uint32_t> translation(from.size(), kNone);
  for (std::size_t i = 1; i < from.size(); ++i) {
    const NameId id = to.find(from[static_cast<NameId>(i)]);
    if (id != NameId{}) translation[i] = static_cast<std::uint32_t>(id);
  }
  return translation;
}

class Matcher {
 public:
  Matcher(const Trace& profiled, const Trace& execution)
      : profiled_(profiled),
        execution_(execution),
        names_(translate_names(execution.names, profiled.names)) {}

  OpMatch match() {
    if (OpMatch by_ids = match_ids(); by_ids.by_ids) return by_ids;
    return match_sequences();
  }

 private:
  using Hosts = std::vector<std::uint32_t>;
  struct OpId {
    std::int64_t id;
    std::uint32_t host;
  };

  std::uint32_t name_of(std::uint32_t op) const {
    return names_[static_cast<std::size_t>(execution_.hosts[op].name)];
  }

  /// Matches ops by id. The result counts (`by_ids`) only if ops with equal ids have equal names,
  /// because the two recordings may have started to count record functions at different times.
  OpMatch match_ids() const {
    std::vector<OpId> by_id;
    for (std::uint32_t i = 0; i < profiled_.hosts.size(); ++i) {
      const std::int64_t id = record_function(profiled_, profiled_.hosts[i]);
      if (id > 0 && is_op(profiled_.hosts[i])) by_id.push_back({id, i});
    }
    const auto before = [](const OpId& a, const OpId& b) { return a.id < b.id; };
    std::stable_sort(by_id.begin(), by_id.end(), before);
    OpMatch match;
    match.hosts.assign(execution_.hosts.size(), kNone);
    std::int64_t found = 0;
    for (std::uint32_t op = 0; op < match.hosts.size(); ++op) {
      const OpId wanted{record_function(execution_, execution_.hosts[op]), 0};
      if (wanted.id <= 0) continue;
      const auto host = std::lower_bound(by_id.begin(), by_id.end(), wanted, before);
      if (host == by_id.end() || host->id != wanted.id) continue;
      ++found;
      if (static_cast<std::uint32_t>(profiled_.hosts[host->host].name) != name_of(op)) continue;
      match.hosts[op] = host->host;
      ++match.matched;
    }
    match.by_ids = found > 0 && 10 * match.matched >= 9 * found && 10 * match.share() >= 1;
    return match;
  }

  static std::vector<Hosts> ops_of_threads(const Trace& trace) {
    std::vector<Hosts> threads(trace.threads.size());
    for (std::uint32_t i = 0; i < trace.hosts.size(); ++i) {
      if (is_op(trace.hosts[i])) threads[trace.hosts[i].thread].push_back(i);
    }
    for (Hosts& hosts : threads) {
      // If two ops start at the same time, the longer one is the outer one.
      std::stable_sort(hosts.begin(), hosts.end(), [&](std::uint32_t a, std::uint32_t b) {
        const HostRecord& left = trace.hosts[a];
        const HostRecord& right = trace.hosts[b];
        return left.start_ns != right.start_ns ? left.start_ns < right.start_ns
                                               : left.duration_ns > right.duration_ns;
      });
    }
    return threads;
  }

  std::vector<std::uint32_t> names_in_profile(const Hosts& hosts) const {
    std::vector<std::uint32_t> names;
    names.reserve(hosts.size());
    for (const std::uint32_t host : hosts)
      names.push_back(static_cast<std::uint32_t>(profiled_.hosts[host].name));
    return names;
  }

  /// Number of `ops` that have a partner of the same name. `counts` has the number of possible
  /// partners for each name.
  std::int64_t count_common(const Hosts& ops, std::vector<std::int32_t> counts) const {
    std::int64_t count = 0;
    for (const std::uint32_t op : ops) {
      if (name_of(op) != kNone && counts[name_of(op)]-- > 0) ++count;
    }
    return count;
  }

  /// The thread with the most names in common among the threads that are not taken;
  /// `threads.size()` if no thread shares a name.
  std::size_t partner_of(const Hosts& ops, const std::vector<Hosts>& threads,
                         const std::vector<bool>& taken) const {
    std::size_t best = threads.size();
    std::int64_t most = 0;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      if (taken[t]) continue;
      std::vector<std::int32_t> counts(profiled_.names.size());
      for (const std::uint32_t host : threads[t])
        ++counts[static_cast<std::size_t>(profiled_.hosts[host].name)];
      const std::int64_t count = count_common(ops, std::move(counts));
      if (count > most) most = count, best = t;
    }
    return best;
  }

  OpMatch match_sequences() const {
    constexpr std::size_t kMaxThreads =
        64;  // Every pair is compared, and shorter threads have hardly any ops.
    OpMatch match;
    match.hosts.assign(execution_.hosts.size(), kNone);
    std::vector<Hosts> executed = ops_of_threads(execution_);
    std::vector<Hosts> profiled = ops_of_threads(profiled_);
    const auto longer = [](const Hosts& a, const Hosts& b) { return a.size() > b.size(); };
    std::stable_sort(executed.begin(), executed.end(), longer);
    std::stable_sort(profiled.begin(), profiled.end(), longer);
    if (executed.size() > kMaxThreads) executed.resize(kMaxThreads);
    if (profiled.size() > kMaxThreads) profiled.resize(kMaxThreads);
    std::vector<bool> taken(profiled.size());
    for (const Hosts& ops : executed) {
      const std::size_t partner = partner_of(ops, profiled, taken);
      if (partner == profiled.size()) continue;
      taken[partner] = true;
      align(ops, profiled[partner], match);
    }
    return match;
  }

  void align(const Hosts& ops, const Hosts& hosts, OpMatch& match) const {
    std::vector<std::uint32_t> names;
    names.reserve(ops.size());
    for (const std::uint32_t op : ops) names.push_back(name_of(op));
    const std::vector<std::uint32_t> places = align_sequences(names, names_in_profile(hosts));
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == kNone) continue;
      match.hosts[ops[i]] = hosts[places[i]];
      ++match.matched;
    }
  }

  const Trace& profiled_;
  const Trace& execution_;
  std::vector<std::uint32_t> names_;
};

}  // namespace

OpMatch match_ops(const Trace& profiled, const Trace& execution) {
  return Matcher(profiled, execution).match();
}

}  // namespace foretrace
