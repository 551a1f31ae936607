#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "simulate/pass.h"
#include "simulate/rows.h"
#include "simulate/waits.h"

namespace foretrace {

struct Compiled::Impl {
  Rows rows;
  std::vector<Nanoseconds> finish;
};

Compiled::Compiled(const Graph& graph) : impl_(std::make_unique<Impl>()) {
  const LaneId lane = lane_not_in_line(graph);
  if (lane != kNoLane) {
    throw Error(fmt::format("all lanes must run their tasks in order, but \"{}\" does not",
                            graph.lane(lane).name));
  }
  impl_->rows = make_rows(graph, RowOrder::near);
  impl_->finish.resize(impl_->rows.task_count());
}

Compiled::Compiled(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Compiled Compiled::clone() const { return Compiled(std::make_unique<Impl>(*impl_)); }

Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;
Compiled::~Compiled() = default;

std::size_t Compiled::task_count() const { return impl_->rows.task_count(); }

std::size_t Compiled::bytes() const {
  return impl_->rows.bytes() + impl_->finish.capacity() * sizeof(Nanoseconds);
}

std::span<const std::uint32_t> Compiled::order() const { return impl_->rows.position; }

std::span<Nanoseconds> Compiled::durations() { return impl_->rows.duration; }
std::span<const Nanoseconds> Compiled::durations() const { return impl_->rows.duration; }

std::span<std::int64_t> Compiled::lags() { return impl_->rows.lag; }

Compiled::LagIndices Compiled::lag_indices(const Graph& graph) const {
  const Rows& rows = impl_->rows;
  CHECK(graph.task_count() == rows.task_count());
  LagIndices indices{.of_gap = std::vector<std::uint32_t>(rows.task_count(), LagIndices::kNone),
                     .of_dependency = {}};
  std::vector<std::uint32_t> next_of_row(rows.first.begin(), rows.first.end() - 1);
  const auto next_index = [&](const Wait& wait) {
    return next_of_row[rows.position[wait.after]]++;
  };
  each_wait_in_line(graph,
                    [&](const Wait& wait) { indices.of_gap[wait.after] = next_index(wait); });
  const std::vector<char> in_line = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& dependency) {
    indices.of_dependency.push_back(next_index(wait_of(graph, in_line, dependency)));
  });
  return indices;
}

Nanoseconds Compiled::replay() { return pass(impl_->rows, impl_->finish); }

std::span<const Nanoseconds> Compiled::finish() const { return impl_->finish; }

Compiled::Replays Compiled::replay_all(std::span<const std::span<const Nanoseconds>> sets,
                                       std::span<const TaskId> probes) const {
  const std::vector<Probe> sorted_probes = probes_by_row(probes, impl_->rows.position);
  Replays replays;
  replays.lengths.reserve(sets.size());
  // The last batch is padded to eight sets, whose times need room too.
  const std::size_t rounded = (sets.size() + kSetsAtOnce - 1) / kSetsAtOnce * kSetsAtOnce;
  replays.starts.resize(rounded * probes.size());
  replays.finishes.resize(rounded * probes.size());
  for (std::size_t begin = 0; begin < sets.size(); begin += kSetsAtOnce) {
    const std::size_t count = std::min(kSetsAtOnce, sets.size() - begin);
    EightDurations durations;
    for (std::size_t i = 0; i < kSetsAtOnce; ++i) {
      const std::span<const Nanoseconds> set =
          sets[begin + std::min(i, count - 1)];  // The last set pads the batch.
      CHECK(set.size() == task_count());
      durations[i] = as_counts(set);
    }
    const auto times_of = [&](std::vector<Nanoseconds>& all) {
      return std::span(as_counts(std::span(all)) + begin * probes.size(),
                       kSetsAtOnce * probes.size());
    };
    const ProbeTimes probe_times{.probes = sorted_probes,
                                 .starts = times_of(replays.starts),
                                 .finishes = times_of(replays.finishes)};
    thread_local EightScratch scratch;
    EightPass pass(impl_->rows, durations, probe_times, 0ns, scratch);
    pass.run(impl_->rows.task_count());
    for (std::size_t i = 0; i < count; ++i) replays.lengths.emplace_back(pass.greatest()[i]);
  }
  replays.starts.resize(sets.size() * probes.size());
  replays.finishes.resize(sets.size() * probes.size());
  return replays;
}

}  // namespace foretrace
