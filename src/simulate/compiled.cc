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

Compiled::LagPlaces Compiled::lag_places(const Graph& graph) const {
  const Rows& rows = impl_->rows;
  CHECK(graph.task_count() == rows.task_count());
  LagPlaces places{.of_gap = std::vector<std::uint32_t>(rows.task_count(), LagPlaces::kNone),
                   .of_dependency = {}};
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  const auto place = [&](const Wait& wait) { return next[rows.position[wait.after]]++; };
  each_wait_in_line(graph, [&](const Wait& wait) { places.of_gap[wait.after] = place(wait); });
  const std::vector<char> in_line = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& dependency) {
    places.of_dependency.push_back(place(wait_of(graph, in_line, dependency)));
  });
  return places;
}

Nanoseconds Compiled::replay() { return pass(impl_->rows, impl_->finish); }

std::span<const Nanoseconds> Compiled::finish() const { return impl_->finish; }

Compiled::Replays Compiled::replay_all(std::span<const std::span<const Nanoseconds>> sets,
                                       std::span<const TaskId> probes) const {
  const std::vector<Probe> sorted = probes_by_row(probes, impl_->rows.position);
  Replays found;
  found.lengths.reserve(sets.size());
  // The last batch is padded to eight sets, whose times need room too.
  const std::size_t rounded = (sets.size() + kSetsAtOnce - 1) / kSetsAtOnce * kSetsAtOnce;
  found.starts.resize(rounded * probes.size());
  found.finishes.resize(rounded * probes.size());
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
    const ProbeTimes wanted{
        .probes = sorted, .starts = times_of(found.starts), .finishes = times_of(found.finishes)};
    thread_local EightScratch scratch;
    EightPass pass(impl_->rows, durations, wanted, 0ns, scratch);
    pass.run(impl_->rows.task_count());
    for (std::size_t i = 0; i < count; ++i) found.lengths.emplace_back(pass.greatest()[i]);
  }
  found.starts.resize(sets.size() * probes.size());
  found.finishes.resize(sets.size() * probes.size());
  return found;
}

}  // namespace foretrace
