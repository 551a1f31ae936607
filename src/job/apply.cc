#include "job/apply.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <set>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "transform/checked.h"

namespace foretrace {
namespace {

/// Throws Error if all tasks one after the other would take more time than the clock can count.
void check_length(const Graph& graph) {
  constexpr double kMax = 9.2e18;
  if (total_length(graph) < kMax) return;
  throw Error("makes tasks take more than 292 years in all; use a smaller factor or time");
}

class Application {
 public:
  Application(Graph& graph, Donors* donors, std::span<const Graph* const> other_ranks)
      : graph_(graph), donors_(donors), other_ranks_(other_ranks) {}

  void apply(Transform& transform, const std::string& use) {
    if (!applies_to(transform, graph_)) {
      applied.steps.push_back({.use = use, .summary = std::string(kNamesAnotherRank)});
      return;
    }
    Effect effect = within(use, [&] { return effect_of(transform); });
    applied.changed += effect.changed;
    applied.steps.push_back({.use = use,
                             .summary = effect.summary,
                             .changed_nothing = effect.changed == 0,
                             .figures = std::move(effect.figures),
                             .applies = std::move(effect.applies),
                             .times_error = std::move(effect.times_error),
                             .transfers = effect.transfers,
                             .doubts = std::move(effect.doubts),
                             .host_saved = effect.host_saved,
                             .slower = effect.slower,
                             .samples = transform.job_change().samples,
                             .parts = transform.job_change().parts});
    if (effect.changed == 0) applied.notes.add(Severity::warning, kChangedNothing, use);
    for (const std::string& assumption : effect.assumptions) {
      std::vector<std::string>& all = applied.assumptions;
      if (std::find(all.begin(), all.end(), assumption) == all.end()) all.push_back(assumption);
    }
    applied.notes.merge(effect.notes);
  }

  ApplyResult applied;

 private:
  Effect effect_of(Transform& transform) {
    const std::string donor = transform.donor();
    Context context{.machine = machine_ ? &*machine_ : nullptr,
                    .other_ranks = other_ranks_,
                    .gpus_per_worker = gpus_per_worker_,
                    .network = network_,
                    .samples = samples_,
                    .positions = positions_};
    if (!donor.empty() && donors_ != nullptr)
      context.donor = &donors_->graph_for(graph_, donor, applied.notes);
    Effect effect = apply_checked(transform, graph_, context);
    check_length(graph_);
    const JobChange change = transform.job_change();
    if (!change.device.empty()) {
      machine_ = find_device(change.device);
      applied.device_memory = machine_->memory;
    }
    gpus_per_worker_ *= change.ranks;
    if (change.ranks == 1) {
      samples_ *= change.samples;
      positions_ *= change.tokens / change.samples;
    }
    if (!change.network.empty()) network_ = change.network;
    return effect;
  }

  Graph& graph_;
  Donors* donors_;
  std::span<const Graph* const> other_ranks_;
  std::int64_t gpus_per_worker_ = 1;
  double samples_ = 1, positions_ = 1;
  std::string network_;                 ///< Network that the steps so far have chosen.
  std::optional<DeviceModel> machine_;  ///< Device that the work runs on after the steps so far.
};

std::string use_of(const Scenario& scenario, std::size_t step) {
  return step < scenario.uses.size() ? scenario.uses[step] : "transform " + std::to_string(step);
}

std::set<std::int32_t> ranks_of(const Graph& graph) {
  std::set<std::int32_t> ranks;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) ranks.insert(graph.lane(LaneId{i}).rank);
  return ranks;
}

bool is_subset(const std::set<std::int32_t>& part, const std::set<std::int32_t>& all) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

void check_ranks(const Scenario& scenario, const std::set<std::int32_t>& ranks) {
  std::string list;
  for (const std::int32_t rank : ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    for (const std::int32_t rank : ranks_named(*scenario.transforms[i])) {
      if (ranks.contains(rank)) continue;
      throw Error(fmt::format("{}: there are no tasks of rank {}; the ranks of this job are {}",
                              use_of(scenario, i), rank, list));
    }
  }
}

}  // namespace

bool applies_to(Transform& transform, const Graph& graph) {
  const std::set<std::int32_t> selected = ranks_named(transform);
  return selected.empty() || is_subset(selected, ranks_of(graph));
}

void check_ranks(const Scenario& scenario, const JobRanks& job) {
  std::set<std::int32_t> ranks;
  for (const WorldRank& rank : job.world) ranks.insert(rank.number);
  check_ranks(scenario, ranks);
}

void check_ranks(const Scenario& scenario, const Graph& graph) {
  check_ranks(scenario, ranks_of(graph));
}

void Donors::read(const Scenario& scenario) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    const std::string path = scenario.transforms[i]->donor();
    if (path.empty() || jobs_.contains(path)) continue;
    within(use_of(scenario, i),
           [&] { jobs_.emplace(path, read_job(path, {.reading = reading_})); });
  }
}

const Graph& Donors::graph_for(const Graph& learner, const std::string& path, Notes& notes) {
  const std::lock_guard lock(mutex_);
  const std::vector<Rank>& ranks = jobs_.at(path).ranks;
  const std::set<std::int32_t> learner_ranks = ranks_of(learner);
  auto found = std::find_if(ranks.begin(), ranks.end(),
                            [&](const Rank& rank) { return learner_ranks.contains(rank.number); });
  if (found == ranks.end()) {
    found = ranks.begin();
    if (ranks.size() > 1)
      notes.add(Severity::info, "the other trace lacks this rank, so its first one is taken", path);
  }
  return found->inference.graph;
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

ApplyResult apply(const Scenario& scenario, Graph& graph, Donors* donors,
                  std::span<const Graph* const> other_ranks, std::size_t end) {
  Application application(graph, donors, other_ranks);
  if (!scenario.machine.empty()) {
    const auto machine = read_transform({{"use", "faster_device"}, {"to", scenario.machine}});
    application.apply(*machine, "faster_device:to=" + scenario.machine);
  }
  for (std::size_t i = 0; i < std::min(end, scenario.transforms.size()); ++i)
    application.apply(*scenario.transforms[i], use_of(scenario, i));
  return std::move(application.applied);
}

ApplyResult apply_only(std::size_t step, const Scenario& scenario, Graph& graph) {
  Application application(graph, nullptr, {});
  application.apply(*scenario.transforms[step], use_of(scenario, step));
  return std::move(application.applied);
}

AllocatorSettings allocator_of(const Scenario& scenario) {
  AllocatorSettings settings = scenario.allocator;
  if (settings.limit == Bytes{} && !scenario.machine.empty())
    settings.limit = find_device(scenario.machine).memory;
  return settings;
}

}  // namespace foretrace
