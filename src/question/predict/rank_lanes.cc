#include "question/predict/rank_lanes.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "timeline/step_marks.h"

namespace foretrace {
namespace {

/// The step is cut into as many equal parts; each shows what the device does for most of it.
constexpr std::int64_t kSlices = 240;

/// Returns when the last member has entered, by rank and task of each member that waits for it.
std::map<std::pair<std::size_t, TaskId>, Nanoseconds> last_entries(
    const JobRanks& job, std::span<const DrawnRank> runs, const std::vector<RankGraph>& ranks) {
  std::map<std::pair<std::size_t, TaskId>, Nanoseconds> entries;
  for (const MatchedCollective& collective : job.join.collectives) {
    const auto entry_of = [&](const CollectiveMember& member) {
      return runs[member.rank].timeline->start[index(member.task)] + ranks[member.rank].begins;
    };
    Nanoseconds last = Nanoseconds::min();
    for (const CollectiveMember& member : collective.members)
      last = std::max(last, entry_of(member));
    for (const CollectiveMember& member : collective.members) {
      if (!member.left_early) entries[{member.rank, member.task}] = last;
    }
  }
  return entries;
}

/// The time of each activity in each slice of a step.
class Slices {
 public:
  Slices(Nanoseconds from, Nanoseconds to)
      : from_(from), length_(std::max((to - from) / kSlices, 1ns)) {}

  void add(RankActivity what, Nanoseconds from, Nanoseconds to) {
    from = std::max(from - from_, 0ns), to = std::min(to - from_, length_ * kSlices);
    while (from < to) {
      const auto slice = static_cast<std::size_t>(from / length_);
      const Nanoseconds end = std::min(to, length_ * static_cast<std::int64_t>(slice + 1));
      times_[slice][static_cast<std::size_t>(what)] += end - from;
      from = end;
    }
  }

  /// Neighbours with the same activity are one piece; idle time has none.
  std::vector<RankLane::Piece> pieces() const {
    std::vector<RankLane::Piece> all;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const auto most = std::ranges::max_element(times_[i]);
      if (2 * *most < length_) continue;
      const auto what = static_cast<RankActivity>(most - times_[i].begin());
      const double at = static_cast<double>(i) / kSlices, to = static_cast<double>(i + 1) / kSlices;
      if (!all.empty() && all.back().what == what && all.back().to == at)
        all.back().to = to;
      else
        all.push_back({at, to, what});
    }
    return all;
  }

 private:
  Nanoseconds from_, length_;
  std::array<std::array<Nanoseconds, kRankActivities>, kSlices> times_{};
};

/// Adds the work of a rank that begins at `origin`. `begins_of` says when the transfer of a
/// collective begins.
void add_rank(const DrawnRank& run, Nanoseconds origin, const auto& begins_of, Slices& slices) {
  for (std::uint32_t i = 0; i < run.graph->task_count(); ++i) {
    const TaskKind kind = run.graph->task(TaskId{i}).kind;
    if (!runs_on_device(kind) || run.graph->removed(TaskId{i})) continue;
    const Nanoseconds start = run.timeline->start[i] + origin;
    const Nanoseconds finish = run.timeline->finish[i] + origin;
    if (class_of(kind) == TaskClass::communication) {
      const Nanoseconds begins = std::clamp(begins_of(TaskId{i}, start), start, finish);
      slices.add(RankActivity::waiting, start, begins);
      slices.add(RankActivity::communication, begins, finish);
    } else {
      const bool copies = class_of(kind) == TaskClass::copy;
      slices.add(copies ? RankActivity::copy : RankActivity::compute, start, finish);
    }
  }
}

}  // namespace

std::vector<RankLane> rank_lanes(const JobRanks& job, std::span<const DrawnRank> runs,
                                 std::size_t shown) {
  if (!job.is_joined()) return {};
  std::vector<const Graph*> graphs;
  for (const DrawnRank& run : runs) graphs.push_back(run.graph);
  const std::vector<RankGraph> ranks = rank_graphs(job, graphs);
  const std::vector<StepMark> marks = step_marks(*graphs[shown], *runs[shown].timeline);
  if (marks.size() < 2) return {};
  const std::size_t middle = (marks.size() - 1) / 2;
  const Nanoseconds from = marks[middle].time + ranks[shown].begins;
  const Nanoseconds to = marks[middle + 1].time + ranks[shown].begins;
  const auto entries = last_entries(job, runs, ranks);
  std::vector<RankLane> lanes;
  for (std::size_t rank = 0; rank < job.world.size(); ++rank) {
    if (!job.world[rank].is_recorded) continue;
    Slices slices(from, to);
    const auto begins_of = [&](TaskId task, Nanoseconds start) {
      const auto found = entries.find({rank, task});
      return found == entries.end() ? start : found->second;
    };
    add_rank(runs[rank], ranks[rank].begins, begins_of, slices);
    lanes.push_back({job.world[rank].number, to - from, slices.pieces()});
  }
  return lanes;
}

}  // namespace foretrace
