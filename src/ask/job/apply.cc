#include "ask/job/apply.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/machine.h"
#include "transform/checked.h"

namespace foretrace {
namespace {

/// Refuses more time than the clock can count, should all of it pass in turn.
void check_length(const Graph& graph) {
  constexpr double kMost = 9.2e18;
  if (total_length(graph) < kMost) return;
  throw Error("makes tasks take more than 292 years in all; use a smaller factor or time");
}

void apply_one(Transform& transform, const std::string& use, Graph& graph, Applied& applied) {
  if (!is_for(transform, graph)) {
    applied.steps.push_back({.use = use, .summary = "names another rank"});
    return;
  }
  Effect effect = within(use, [&] {
    Effect done = apply_checked(transform, graph);
    check_length(graph);
    return done;
  });
  applied.changed += effect.changed;
  applied.steps.push_back({use, effect.summary, effect.changed == 0, std::move(effect.figures)});
  if (effect.changed == 0)
    applied.notes.add(Severity::warning, "a step of the scenario changed nothing", use);
  for (const std::string& assumption : effect.assumptions) {
    std::vector<std::string>& known = applied.assumptions;
    if (std::find(known.begin(), known.end(), assumption) == known.end())
      known.push_back(assumption);
  }
  applied.notes.merge(effect.notes);
}

std::string use_of(const Scenario& scenario, std::size_t step) {
  return step < scenario.uses.size() ? scenario.uses[step] : "transform " + std::to_string(step);
}

std::set<std::int32_t> ranks_of(const Graph& graph) {
  std::set<std::int32_t> ranks;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) ranks.insert(graph.lane(LaneId{i}).rank);
  return ranks;
}

bool all_in(const std::set<std::int32_t>& some, const std::set<std::int32_t>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

void check_ranks(const Scenario& scenario, const std::set<std::int32_t>& known) {
  std::string list;
  for (const std::int32_t rank : known) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    for (const std::int32_t rank : ranks_named(*scenario.transforms[i])) {
      if (known.contains(rank)) continue;
      throw Error(use_of(scenario, i) + ": no task is of rank " + std::to_string(rank) +
                  "; recorded are " + list);
    }
  }
}

}  // namespace

bool is_for(Transform& transform, const Graph& graph) {
  const std::set<std::int32_t> named = ranks_named(transform);
  return named.empty() || all_in(named, ranks_of(graph));
}

void check_ranks(const Scenario& scenario, const Job& job) {
  std::set<std::int32_t> known;
  for (const Rank& rank : job.ranks) known.merge(ranks_of(rank.inference.graph));
  check_ranks(scenario, known);
}

void check_ranks(const Scenario& scenario, const Graph& graph) {
  check_ranks(scenario, ranks_of(graph));
}

void Donors::teach(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    const std::string path = scenario.transforms[i]->donor();
    if (path.empty()) continue;
    within(use_of(scenario, i), [&] {
      if (!graphs_.contains(path)) {
        const std::vector<Trace> traces = import_all(path, how_);
        graphs_.emplace(path, infer(traces.front()).graph);
      }
      scenario.transforms[i]->learn(graphs_.at(path));
    });
  }
}

bool edits(const Scenario& scenario) {
  return !scenario.transforms.empty() || !scenario.machine.empty();
}

double total_length(const Graph& graph) {
  double total = 0;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.removed(TaskId{i})) continue;
    const Task& task = graph.task(TaskId{i});
    total += static_cast<double>(task.duration.count());
    total += static_cast<double>(task.gap.count());
  }
  graph.each_dependency(
      [&](const Dependency& wait) { total += static_cast<double>(wait.lag.count()); });
  return total;
}

Applied apply(const Scenario& scenario, Graph& graph) {
  Applied applied;
  if (!scenario.machine.empty()) {
    const auto machine = read_transform({{"use", "faster_device"}, {"to", scenario.machine}});
    apply_one(*machine, "faster_device:to=" + scenario.machine, graph, applied);
  }
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    apply_one(*scenario.transforms[i], use_of(scenario, i), graph, applied);
  }
  return applied;
}

AllocatorSettings allocator_of(const Scenario& scenario) {
  AllocatorSettings settings = scenario.allocator;
  if (settings.limit == Bytes{} && !scenario.machine.empty())
    settings.limit = find_device(scenario.machine).memory;
  return settings;
}

}  // namespace foretrace
