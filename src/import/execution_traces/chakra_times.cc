// Determines when the nodes of a Chakra file run and what they wait for.

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "import/execution_traces/chakra.h"

namespace foretrace {

namespace {

/// The index of the node with this id; kNone if there is none.
std::uint32_t find_node(const std::vector<ChakraNode>& nodes, std::uint64_t id) {
  const auto found = std::lower_bound(
      nodes.begin(), nodes.end(), id,
      [](const ChakraNode& node, std::uint64_t wanted) { return node.id < wanted; });
  return found != nodes.end() && found->id == id ? static_cast<std::uint32_t>(found - nodes.begin())
                                                 : kNone;
}

bool is_among(const std::vector<std::uint64_t>& ids, std::uint64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// The CPU node that launched this device work, or kNone. It may be a control or a data dependency,
/// depending on the age of the file, and there are other dependencies beside it. Prefers a CPU node
/// that is both, then the first CPU node among the data dependencies, then among the control
/// dependencies.
std::uint32_t launcher_of(const std::vector<ChakraNode>& nodes, const ChakraNode& node) {
  const auto first_cpu = [&](const std::vector<std::uint64_t>& ids, auto&& condition) {
    for (const std::uint64_t id : ids) {
      const std::uint32_t other = find_node(nodes, id);
      if (other != kNone && !nodes[other].on_device && !nodes[other].is_frame && condition(id))
        return other;
    }
    return kNone;
  };
  constexpr std::size_t kMaxCallers = 16;  // Usually there is one caller.
  if (node.control.size() > kMaxCallers) return first_cpu(node.data, [](auto) { return true; });
  const auto any = [](std::uint64_t) { return true; };
  const auto in_data = [&](std::uint64_t id) { return is_among(node.data, id); };
  if (const std::uint32_t both = first_cpu(node.control, in_data); both != kNone) return both;
  if (const std::uint32_t first = first_cpu(node.data, any); first != kNone) return first;
  return first_cpu(node.control, any);
}

/// Whether the control dependencies use an earlier numbering of the nodes. Then they name device
/// nodes as callers of CPU nodes, which is impossible.
bool control_is_stale(const std::vector<ChakraNode>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const ChakraNode& node) {
    if (node.on_device) return false;
    return std::any_of(node.control.begin(), node.control.end(), [&](std::uint64_t id) {
      const std::uint32_t other = find_node(nodes, id);
      return other != kNone && nodes[other].on_device;
    });
  });
}

/// Computes starts that are not in the file.
class Schedule {
 public:
  Schedule(const std::vector<ChakraNode>& nodes, const ChakraLinks& links)
      : nodes_(nodes), links_(links), waits_(nodes.size()), dependents_(nodes.size()) {
    times_.start.resize(nodes.size());
    times_.finish.resize(nodes.size());
    times_.ready.resize(nodes.size());
    times_.awaited.assign(nodes.size(), kNone);
  }

  ChakraTimes run(Notes& notes) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      waits_[i] = static_cast<std::uint32_t>(links_.before[i].size());
      for (const std::uint32_t before : links_.before[i]) dependents_[before].push_back(i);
      if (waits_[i] == 0) ready_.push(i);
    }
    std::vector<bool> done(nodes_.size());
    std::size_t first = 0;  // All nodes before it are done.
    std::int64_t forced = 0;
    for (std::size_t count = 0; count < nodes_.size(); ++count) {
      if (ready_.empty()) {
        while (done[first]) ++first;
        ready_.push(static_cast<std::uint32_t>(first));
        ++forced;
      }
      const std::uint32_t node = ready_.top();
      ready_.pop();
      done[node] = true;
      schedule(node, done);
      for (const std::uint32_t after : dependents_[node]) {
        if (--waits_[after] == 0 && !done[after]) ready_.push(after);
      }
    }
    if (forced > 0) {
      notes.add(Severity::warning, "nodes that depend on themselves in a cycle, started anyway", {},
                forced);
    }
    return std::move(times_);
  }

 private:
  void schedule(std::uint32_t node, const std::vector<bool>& done) {
    const ChakraNode& current = nodes_[node];
    std::int64_t& lane =
        lanes_[{current.on_device, current.on_device ? current.stream : current.thread}];
    std::int64_t ready = lane, device_done = 0;
    for (const std::uint32_t before : links_.before[node]) {
      if (!done[before]) continue;
      const std::int64_t finish = times_.finish[before];
      if (current.on_device || !nodes_[before].on_device) {
        ready = std::max(ready, finish);
      } else if (times_.awaited[node] == kNone || finish > device_done) {
        times_.awaited[node] = before;
        device_done = finish;
      }
    }
    times_.ready[node] = ready;
    times_.start[node] = std::max(ready, device_done);
    lane = times_.finish[node] = times_.start[node] + current.duration_ns;
  }

  const std::vector<ChakraNode>& nodes_;
  const ChakraLinks& links_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::vector<std::uint32_t>> dependents_;
  /// The node with the smallest id is first, because ids follow the order in which the program ran.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready_;
  std::map<std::pair<bool, std::int64_t>, std::int64_t> lanes_;  ///< The time each lane is free.
  ChakraTimes times_;
};

/// Takes the recorded starts. In some files a device node has the time of its launch instead, so
/// the nodes of a stream may overlap; then a node is delayed until the one before it on the stream
/// ends.
ChakraTimes recorded_times(const std::vector<ChakraNode>& nodes, Notes& notes) {
  ChakraTimes times;
  times.awaited.assign(nodes.size(), kNone);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    times.start.push_back(std::max<std::int64_t>(0, nodes[i].start_ns));
    times.finish.push_back(times.start[i] + nodes[i].duration_ns);
    if (nodes[i].on_device) order.push_back(i);
  }
  times.ready = times.start;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return times.start[a] < times.start[b];
  });
  std::map<std::int64_t, std::int64_t> streams;
  std::int64_t moved = 0;
  for (const std::uint32_t i : order) {
    std::int64_t& free = streams[nodes[i].stream];
    if (times.start[i] < free) ++moved;
    times.start[i] = std::max(times.start[i], free);
    free = times.finish[i] = times.start[i] + nodes[i].duration_ns;
  }
  if (moved > 0) {
    notes.add(Severity::warning,
              "device nodes that start while another runs on their stream, delayed until it ends",
              {}, moved);
  }
  return times;
}

/// Adds the data dependencies of node `i`. Counts ids without a node in `missing`.
void link_data(const std::vector<ChakraNode>& nodes, std::uint32_t i, ChakraLinks& links,
               std::int64_t& missing) {
  for (const std::uint64_t id : nodes[i].data) {
    const std::uint32_t before = find_node(nodes, id);
    if (before == kNone) ++missing;
    if (before != kNone && before != i) links.before[i].push_back(before);
  }
}

void link_callers(const std::vector<ChakraNode>& nodes, std::uint32_t i, ChakraLinks& links) {
  const ChakraNode& node = nodes[i];
  for (const std::uint64_t id : node.control) {
    const std::uint32_t caller = find_node(nodes, id);
    if (caller == kNone || caller == i || nodes[caller].on_device) continue;
    if (!node.on_device && links.parent[i] == kNone) links.parent[i] = caller;
    if (node.data.empty()) links.before[i].push_back(caller);
  }
}

void link_launcher(const std::vector<ChakraNode>& nodes, std::uint32_t i, ChakraLinks& links) {
  links.launcher[i] = launcher_of(nodes, nodes[i]);
  std::vector<std::uint32_t>& before = links.before[i];
  if (links.launcher[i] != kNone) before.push_back(links.launcher[i]);
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
}

}  // namespace

ChakraLinks link_nodes(const std::vector<ChakraNode>& nodes, Notes& notes) {
  ChakraLinks links;
  links.parent.assign(nodes.size(), kNone);
  links.launcher.assign(nodes.size(), kNone);
  links.before.resize(nodes.size());
  const bool stale = control_is_stale(nodes);
  std::int64_t missing = 0;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    link_data(nodes, i, links, missing);
    if (!stale) link_callers(nodes, i, links);
    if (nodes[i].on_device) link_launcher(nodes, i, links);
  }
  if (stale) {
    notes.add(Severity::info,
              "control dependencies that name device nodes as callers; which op called which is "
              "not read from this file");
  }
  if (missing > 0)
    notes.add(Severity::info, "dependencies on nodes that the file does not contain", {}, missing);
  return links;
}

ChakraTimes time_nodes(const std::vector<ChakraNode>& nodes, const ChakraLinks& links,
                       Notes& notes) {
  const bool has_starts = std::any_of(nodes.begin(), nodes.end(),
                                      [](const ChakraNode& node) { return node.start_ns > 0; });
  if (has_starts) return recorded_times(nodes, notes);
  notes.add(Severity::warning,
            "the file has durations but no start times: nodes start as early as their dependencies "
            "allow");
  return Schedule(nodes, links).run(notes);
}

}  // namespace foretrace
