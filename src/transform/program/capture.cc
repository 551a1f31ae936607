#include "transform/program/capture.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/contains.h"
#include "timeline/step_marks.h"

namespace foretrace {
namespace {

/// Whether the name is of an op, or of a kernel of CUB or PyTorch, whose result size depends on the
/// data.
bool is_sized_by_data(std::string_view name) {
  return contains_any(
      name, {"aten::nonzero", "aten::masked_select", "aten::unique", "aten::_unique",
             "aten::argwhere", "write_indices", "DeviceSelectSweep", "DeviceUniqueByKey"});
}

struct CaptureFacts {
  bool captured = false;              ///< Some call captures or launches a graph.
  std::string sized;                  ///< First op or kernel whose result size depends on the data.
  bool all_to_all = false;            ///< Some collective is an all-to-all exchange.
  std::int64_t reads = 0;             ///< Copies to the host.
  std::int64_t collective_waits = 0;  ///< Waits of the host for collectives.
};

/// The steps that count, in order; without steps, all tasks do.
class CountedTasks {
 public:
  explicit CountedTasks(const Graph& graph) : steps_(counted_steps(graph)) {}

  bool has(const Task& task) const {
    return steps_.empty() || (task.step >= steps_.front() && task.step <= steps_.back());
  }
  std::int64_t count() const { return std::max<std::int64_t>(std::ssize(steps_), 1); }

 private:
  std::vector<std::int32_t> steps_;
};

CaptureFacts capture_facts(const Graph& graph, const CountedTasks& steps) {
  CaptureFacts facts;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (graph.removed(TaskId{i}) || !steps.has(task)) continue;
    const std::string_view name = graph.name(TaskId{i});
    facts.captured |= !runs_on_device(task.kind) &&
                      contains_any(name, {"GraphLaunch", "BeginCapture", "GraphInstantiate"});
    if (facts.sized.empty() && is_sized_by_data(name)) facts.sized = name;
    if (task.kind == TaskKind::collective)
      facts.all_to_all |= contains_any(name, {"SendRecv", "all_to_all", "alltoall", "AllToAll"});
    if (task.kind == TaskKind::copy_out) ++facts.reads;
  }
  graph.each_dependency([&](const Dependency& wait) {
    const Task& before = graph.task(wait.before);
    if (before.kind == TaskKind::collective && steps.has(before) &&
        !runs_on_device(graph.task(wait.after).kind))
      ++facts.collective_waits;
  });
  return facts;
}

}  // namespace

std::string capture_obstacle(const Graph& graph) {
  const CountedTasks steps(graph);
  const CaptureFacts facts = capture_facts(graph, steps);
  if (facts.captured) return "the steps already capture or launch CUDA graphs";
  if (!facts.sized.empty())
    return fmt::format(
        "no graph can contain the work after {}: the size of its result differs in each step",
        facts.sized.substr(0, facts.sized.find_first_of("<(")));
  // One read per step fetches the loss; sizes take more.
  if (facts.all_to_all && facts.reads > steps.count())
    return "no graph can contain all-to-all exchanges whose sizes the host reads from the device";
  if (facts.collective_waits > 0) return "the host waits for collectives, and a graph ends there";
  return {};
}

}  // namespace foretrace
