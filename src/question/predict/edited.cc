// Applies a scenario to a graph, and to all ranks of a job, and replays the result.

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "foretrace/simulate.h"
#include "question/predict/baseline.h"
#include "transform/checked.h"

namespace foretrace {

Edited edited_by(const Graph& graph, const Scenario& scenario, const SimulateOptions& options,
                 Donors* donors) {
  Edited edited{.graph = graph.clone(), .timeline = {}, .times = {}, .applied = {}};
  edited.applied = apply(scenario, edited.graph, donors);
  edited.timeline = simulate(edited.graph, options);
  edited.times = step_times(edited.graph, edited.timeline);
  return edited;
}

namespace {

/// Indices of the transforms that name a rank.
std::vector<std::size_t> steps_naming(const Scenario& scenario, std::int32_t rank) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    if (ranks_named(*scenario.transforms[i]).contains(rank)) steps.push_back(i);
  }
  return steps;
}

void renumber(Graph& graph, std::int32_t rank) {
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) graph.lane(LaneId{i}).rank = rank;
}

/// Copies a shared edit, or moves it for its last user.
Edited take_edit(SharedEdits::Edit& edit) {
  if (--edit.users == 0) return std::move(edit.edited);
  return {.graph = edit.edited.graph.clone(),
          .timeline = {},
          .times = {},
          .applied = edit.edited.applied};
}

}  // namespace

SharedEdits shared_edits(const JobRanks& job, const Scenario& scenario, Donors* donors) {
  SharedEdits edits;
  std::map<std::pair<std::uint32_t, std::vector<std::size_t>>, std::size_t> indices;
  for (std::size_t i = 0; i < job.world.size(); ++i) {
    const WorldRank& rank = job.world[i];
    const auto [found, is_new] =
        indices.try_emplace({rank.recorded, steps_naming(scenario, rank.number)}, edits.all.size());
    if (is_new) edits.all.push_back({.rank = i, .edited = {}});
    edits.index_of.push_back(found->second);
  }
  on_all_cores(edits.all.size(), [&](std::size_t i) {
    const WorldRank& rank = job.world[edits.all[i].rank];
    Edited& edited = edits.all[i].edited;
    edited.graph = job.ranks[rank.recorded].inference.graph.clone();
    if (!rank.is_recorded) renumber(edited.graph, rank.number);
    std::vector<const Graph*> others;
    for (std::size_t other = 0; other < job.ranks.size(); ++other) {
      if (other != rank.recorded) others.push_back(&job.ranks[other].inference.graph);
    }
    edited.applied = apply(scenario, edited.graph, donors, others);
  });
  return edits;
}

EditedJob replayed(const JobRanks& job, SharedEdits edits, const JointOptions& options) {
  std::vector<const Graph*> graphs;
  for (const std::size_t i : edits.index_of) graphs.push_back(&edits.all[i].edited.graph);
  EditedJob all{.replay = replay(job, graphs, options), .ranks = {}};
  all.ranks.resize(job.world.size());
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < all.replay.first_alike.size(); ++i) {
    if (all.replay.first_alike[i] == i) firsts.push_back(i);
  }
  for (const std::size_t i : firsts) ++edits.all[edits.index_of[i]].users;
  for (const std::size_t i : firsts) all.ranks[i] = take_edit(edits.all[edits.index_of[i]]);
  on_all_cores(firsts.size(), [&](std::size_t at) {
    Edited& rank = all.ranks[firsts[at]];
    rank.timeline = std::move(all.replay.timelines[firsts[at]]);
    // Done before the step times are found, which compare work with the available time.
    keep_waits(job, firsts[at], rank.timeline, rank.graph);
    rank.times = step_times(rank.graph, rank.timeline);
  });
  return all;
}

EditedJob edited_by(const JobRanks& job, const Scenario& scenario, const JointOptions& options,
                    Donors* donors) {
  return replayed(job, shared_edits(job, scenario, donors), options);
}

}  // namespace foretrace
