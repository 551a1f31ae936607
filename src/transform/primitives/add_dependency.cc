#include <fmt/core.h>
#include <map>
#include <tuple>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Makes each task of "to" wait for one task of "from":
///
///     a  |AA...|   from A to B  ->  a  |AA...|
///     b  |BBB..|                    b  |..BBB|
class AddDependency final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("from", from_, "The tasks waited for");
    fields.object("to", to_, "The tasks that wait");
    fields.choice("match", match_, {"nearest", "step", "layer"},
                  "Which one each waits for: the last to start before it, the last of its step, or "
                  "the last of "
                  "its layer in its step");
    fields.integer("steps", steps_, "With \"match\" step or layer: the one this many steps earlier",
                   0, 1'000'000);
    fields.choice("anchor", anchor_, {"finish", "start"}, "Wait for the finish or for the start");
    fields.time("lag", lag_, "Additional delay", Nanoseconds(0));
    fields.text("why", why_, "Name of the new dependencies in reports");
  }

  Effect apply(Graph& graph, const Context&) const override {
    std::vector<TaskId> from = from_.select_some(graph, "from");
    std::vector<TaskId> to = to_.select_some(graph, "to");
    const std::vector<Nanoseconds> starts = simulate(graph, {.memory = false}).start;
    sort_by_start(from, starts);
    sort_by_start(to, starts);
    const std::vector<Dependency> added =
        match_ == "nearest" ? nearest(from, to, starts) : by_step(graph, from, to);
    if (added.empty()) {
      throw Error(
          fmt::format("no task of \"to\" has one of \"from\" to wait for (match {})", match_));
    }
    const WaitReason why = wait_reason_named(graph.names(), why_);
    for (Dependency dependency : added) {
      dependency.lag = lag_;
      dependency.anchor = anchor_ == "start" ? Anchor::start : Anchor::finish;
      dependency.provenance = Provenance::assumed;
      dependency.why = why;
      graph.add(dependency);
    }
    Effect effect;
    effect.changed = added.size();
    effect.summary = counted(added.size(), "dependency") + " added";
    return effect;
  }

 private:
  /// Only tasks that start strictly earlier are used, so that no cycle results.
  static std::vector<Dependency> nearest(const std::vector<TaskId>& from,
                                         const std::vector<TaskId>& to,
                                         const std::vector<Nanoseconds>& starts) {
    std::vector<Dependency> added;
    std::size_t earlier = 0;
    for (const TaskId task : to) {
      while (earlier < from.size() && starts[index(from[earlier])] < starts[index(task)]) ++earlier;
      if (earlier > 0) added.push_back({.before = from[earlier - 1], .after = task});
    }
    return added;
  }

  std::vector<Dependency> by_step(const Graph& graph, const std::vector<TaskId>& from,
                                  const std::vector<TaskId>& to) const {
    const auto key = [&](TaskId id) {
      const Task& task = graph.task(id);
      return std::tuple(std::int64_t{task.step}, match_ == "layer" ? task.layer : -1);
    };
    std::map<std::tuple<std::int64_t, std::int32_t>, TaskId> last;
    for (const TaskId task : from) last[key(task)] = task;
    std::vector<Dependency> added;
    for (const TaskId task : to) {
      auto wanted = key(task);
      std::get<0>(wanted) -= steps_;
      const auto found = last.find(wanted);
      if (found == last.end() || found->second == task) continue;
      added.push_back({.before = found->second, .after = task});
    }
    return added;
  }

  Selector from_;
  Selector to_;
  std::string match_ = "nearest";
  std::int64_t steps_ = 0;
  std::string anchor_ = "finish";
  Nanoseconds lag_{0};
  std::string why_ = "added";
};

}  // namespace

TransformEntry add_dependency_entry() {
  return {.make = create<AddDependency>,
          .assumes =
              "\"Before\" means earlier in a replay of the graph. If the new dependencies close a "
              "cycle, the replay reports it.",
          .advice = {.why_not = "a manual edit: you choose which waits to add"}};
}

}  // namespace foretrace
