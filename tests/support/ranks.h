#pragma once

// Ranks of a job as text, each with a clock of its own.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "infer/ranks/join.h"

namespace foretrace {

/// The recording of a rank whose times are those of the graph's replay. Its collectives are the
/// graph's tasks of that kind, in the order of their starts, named by operation. Its clock is
/// `ahead` of the common one and gains `drift`; `begins` is the start of the recording on the
/// common clock.
struct RankText {
  std::string_view graph;
  std::int32_t number = 0, world_size = 2;
  Nanoseconds begins{0}, ahead{0};
  double drift = 0;
};

inline Inference rank_of(const RankText& text) {
  Inference rank;
  rank.graph = parse_graph(text.graph);
  rank.recorded = simulate(rank.graph);
  for (std::uint32_t i = 0; i < rank.graph.lane_count(); ++i)
    rank.graph.lane(LaneId{i}).rank = text.number;
  const auto gained = [&](Nanoseconds& time) {
    time += Nanoseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * text.drift));
  };
  for (Nanoseconds& time : rank.recorded.start) gained(time);
  for (Nanoseconds& time : rank.recorded.finish) gained(time);
  rank.rank = {text.number, text.world_size, text.begins + text.ahead};
  for (std::uint32_t i = 0; i < rank.graph.task_count(); ++i) {
    const Task& task = rank.graph.task(TaskId{i});
    if (task.kind != TaskKind::collective) continue;
    RecordedCollective one;
    one.task = TaskId{i}, one.operation = task.name;
    rank.graph.collectives().push_back(one);
  }
  std::sort(rank.graph.collectives().begin(), rank.graph.collectives().end(),
            [&](const RecordedCollective& a, const RecordedCollective& b) {
              return rank.recorded.start[index(a.task)] < rank.recorded.start[index(b.task)];
            });
  return rank;
}

inline std::vector<std::string> rank_labels(const std::vector<Inference>& ranks) {
  std::vector<std::string> labels;
  for (const Inference& rank : ranks) labels.push_back("rank " + std::to_string(rank.rank.number));
  return labels;
}

inline RankJoin joined(const std::vector<Inference>& ranks) {
  std::vector<const Inference*> all;
  for (const Inference& rank : ranks) all.push_back(&rank);
  return join_ranks(all, rank_labels(ranks));
}

}  // namespace foretrace
