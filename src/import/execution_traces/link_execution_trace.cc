#include "import/execution_traces/link_execution_trace.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>

#include "foretrace/error.h"

namespace foretrace {

namespace {

/// If a smaller share of its ops matches, an execution trace belongs to another run.
constexpr double kMinShare = 0.5;
/// Limit on the pairs of traces that are compared for one rank. More pairs mean that the folder
/// holds recordings of several jobs.
constexpr std::size_t kMaxPairs = 16;

void note_match(Trace& profiled, const Trace& execution, const OpMatch& match) {
  const std::string_view evidence = match.by_ids ? "the ids of their record functions"
                                                 : "the order of their names on each thread";
  profiled.notes.add(
      Severity::info,
      fmt::format("ops found in the execution trace of the same run, by {}", evidence),
      fmt::format("{} tensors read or written", profiled.tensors.size()), match.matched);
  const auto missing = static_cast<std::int64_t>(match.hosts.size()) - match.matched;
  if (missing == 0) return;
  const auto first = std::find(match.hosts.begin(), match.hosts.end(), kNone);
  const auto at = static_cast<std::size_t>(first - match.hosts.begin());
  profiled.notes.add(match.share() < 0.9 ? Severity::warning : Severity::info,
                     "ops of the execution trace that are missing in this trace",
                     execution.names[execution.hosts[at].name], missing);
}

/// Leaves out execution traces without times if there are others with times: Chakra's traces are
/// made from PyTorch's and contain the same tensors.
void keep_timed_traces(std::vector<Trace>& traces, Notes& notes) {
  const auto is_timed = [](const Trace& trace) { return trace.has_times; };
  if (std::none_of(traces.begin(), traces.end(), is_timed)) return;
  const auto dropped = std::erase_if(traces, std::not_fn(is_timed));
  if (dropped > 0) {
    notes.add(Severity::info, "execution traces without times next to those with times, left out",
              {}, static_cast<std::int64_t>(dropped));
  }
}

struct TracePair {
  std::size_t profiled, execution;
  OpMatch match;
};

/// All pairs of a profiler's trace and an execution trace of a rank, the best match first; empty if
/// there are too many pairs.
std::vector<TracePair> pairs_of(const std::vector<Trace>& traces, std::int32_t rank, Notes& notes) {
  std::vector<std::size_t> profiled, executions;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].rank != rank) continue;
    (is_execution_trace(traces[i]) ? executions : profiled).push_back(i);
  }
  std::vector<TracePair> pairs;
  if (profiled.size() * executions.size() > kMaxPairs) {
    notes.add(Severity::warning,
              "ranks with too many traces to link an execution trace; name a pair",
              "rank " + std::to_string(rank));
    return pairs;
  }
  for (const std::size_t p : profiled) {
    for (const std::size_t e : executions) pairs.push_back({p, e, match_ops(traces[p], traces[e])});
  }
  // Prefer PyTorch's own execution trace, which has all ops, to Chakra's, which is made from it and
  // from the profiler's trace.
  const auto quality = [&](const TracePair& pair) {
    const bool is_original = !traces[pair.execution].has_times;
    return std::pair(pair.match.share() >= kMinShare && is_original, pair.match.share());
  };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const TracePair& a, const TracePair& b) { return quality(a) > quality(b); });
  return pairs;
}

}  // namespace

bool is_execution_trace(const Trace& trace) {
  return trace.format == "pytorch_et" || trace.format == "chakra";
}

bool link_execution_trace(Trace& profiled, const Trace& execution, const OpMatch& match) {
  if (match.share() < kMinShare) {
    profiled.notes.add(
        Severity::warning, "execution traces that do not belong to this trace, not linked",
        fmt::format("only {} % of its {} ops are in this trace",
                    static_cast<int>(std::floor(100 * match.share())), match.hosts.size()));
    return false;
  }
  profiled.tensors.clear();
  for (TensorRecord tensor : execution.tensors) {
    tensor.host = match.hosts[tensor.host];
    if (tensor.host == kNone) continue;
    tensor.type = profiled.names.intern(execution.names[tensor.type]);
    tensor.shape = profiled.names.intern(execution.names[tensor.shape]);
    profiled.tensors.push_back(tensor);
  }
  profiled.files.insert(profiled.files.end(), execution.files.begin(), execution.files.end());
  note_match(profiled, execution, match);
  return true;
}

void link_execution_traces(std::vector<Trace>& traces, Notes& notes) {
  const auto executions = std::count_if(traces.begin(), traces.end(), is_execution_trace);
  if (executions == 0) return;
  if (executions == std::ssize(traces)) return keep_timed_traces(traces, notes);
  std::vector<std::int32_t> ranks;
  for (const Trace& trace : traces) ranks.push_back(trace.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::int64_t linked = 0;
  for (const std::int32_t rank : ranks) {
    std::vector<bool> taken(traces.size());
    for (const TracePair& pair : pairs_of(traces, rank, notes)) {
      if (taken[pair.profiled] || taken[pair.execution] || pair.match.share() < kMinShare) continue;
      taken[pair.profiled] = taken[pair.execution] = true;
      linked += link_execution_trace(traces[pair.profiled], traces[pair.execution], pair.match);
    }
  }
  if (linked < executions) {
    notes.add(Severity::info, "execution traces that were not linked with a trace next to them", {},
              executions - linked);
  }
  std::erase_if(traces, is_execution_trace);
}

void link_given_execution_trace(std::vector<Trace>& traces, const ImportOptions& options) {
  const std::vector<Trace> executions =
      import_all(options.execution_trace,
                 {.cache_folder = options.cache_folder, .max_unpacked = options.max_unpacked});
  for (const Trace& execution : executions) {
    if (is_execution_trace(execution)) continue;
    throw TraceError(fmt::format("{}: must be an execution trace, but is a trace of format {}",
                                 options.execution_trace, execution.format));
  }
  const bool one_each = traces.size() == 1 && executions.size() == 1;
  for (Trace& trace : traces) {
    const auto found = std::find_if(
        executions.begin(), executions.end(),
        [&](const Trace& execution) { return one_each || execution.rank == trace.rank; });
    if (found == executions.end()) {
      trace.notes.add(Severity::warning, "traces whose rank has no execution trace",
                      "rank " + std::to_string(trace.rank));
      continue;
    }
    if (is_execution_trace(trace))
      throw TraceError("must be a profiler's trace, but is an execution trace itself");
    if (found->rank != trace.rank && found->rank != 0) {
      trace.notes.add(Severity::warning, "execution traces of another rank",
                      "rank " + std::to_string(found->rank));
    }
    link_execution_trace(trace, *found, match_ops(trace, *found));
  }
}

}  // namespace foretrace
