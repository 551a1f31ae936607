#include "ask/interval/resample.h"

#include <algorithm>
#include <array>

#include "base/draws.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "foretrace/simulate.h"
#include "timeline/step_probes.h"

namespace foretrace {
namespace {

constexpr std::size_t kSetsInPass = 8;
/// Durations drawn in all; a large graph is replayed less often.
constexpr std::size_t kMostDurations = 25'000'000;
constexpr std::size_t kFewestResamples = 5 * kSetsInPass;
/// Threads that replay, and tasks of all graphs that they replay at the same time.
constexpr std::size_t kMostShares = 4;
constexpr std::size_t kMostAtOnce = 8'000'000;
/// Work that grew more than this is a stall.
constexpr float kStall = 2;

using DrawnSets = std::array<std::vector<Nanoseconds>, kSetsInPass>;

class Resampler {
 public:
  Resampler(const StepVariation& variation, const Graph& recorded, const Graph& changed,
            const ResampleSettings& settings)
      : variation_(variation),
        settings_(settings),
        compiled_(changed),
        probes_(changed),
        work_(probes_.work(changed)) {
    for (std::size_t i = 0; i < variation.donors().size(); ++i) {
      if (variation.donors()[i] != settings.leave_out) columns_.push_back(i);
    }
    if (columns_.size() < 2) return;
    tabulate(recorded, changed);
  }

  Resampled run() const {
    Resampled found;
    found.donors = columns_.size();
    if (columns_.size() < 2) return found;
    const std::size_t tasks = std::max<std::size_t>(compiled_.task_count(), 1);
    const std::size_t most = std::max(kMostDurations / tasks, kFewestResamples);
    const std::size_t passes =
        std::max<std::size_t>(std::min(settings_.resamples, most) / kSetsInPass, 1);
    std::vector<std::vector<Nanoseconds>> times(passes);
    const std::size_t shares =
        std::min(passes, std::clamp<std::size_t>(kMostAtOnce / tasks, 1, kMostShares));
    on_all_cores(shares, [&](std::size_t share) {
      DrawnSets sets;
      for (auto& set : sets) set.resize(compiled_.task_count());
      for (std::size_t pass = share; pass < passes; pass += shares) {
        draw(pass, sets);
        replay(sets, times[pass]);
      }
    });
    for (const auto& some : times) found.times.insert(found.times.end(), some.begin(), some.end());
    found.resamples = passes * kSetsInPass;
    found.steps = found.times.size() / found.resamples;
    return found;
  }

 private:
  /// The time of a task with the work of each donor, in compiled order.
  void tabulate(const Graph& recorded, const Graph& changed) {
    const std::size_t width = columns_.size();
    table_.resize(changed.task_count() * width);
    step_of_.assign(changed.task_count(), 0);
    const auto order = compiled_.order();
    const auto durations = compiled_.durations();
    for (std::uint32_t i = 0; i < changed.task_count(); ++i) {
      const std::size_t at = order[i];
      Nanoseconds* const cells = table_.data() + at * width;
      const Nanoseconds now = durations[at];
      if (i >= variation_.task_count() ||
          variation_.place(TaskId{i}).row == StepVariation::kNoRow) {
        std::fill(cells, cells + width, now);
        continue;
      }
      const StepVariation::Place& place = variation_.place(TaskId{i});
      step_of_[at] = place.step;
      const auto row = variation_.row(place.row);
      const Nanoseconds before = recorded.task(TaskId{i}).duration;
      for (std::size_t c = 0; c < width; ++c)
        cells[c] = varied(now, before, place.own, row[columns_[c]]);
    }
  }

  static Nanoseconds varied(Nanoseconds now, Nanoseconds before, float own, float other) {
    if (own == other) return now;
    if (own <= 0) {  // A task that the what-if did not shorten is not assumed to be shorter here.
      return now + Nanoseconds(static_cast<std::int64_t>(other));
    }
    const double ratio = static_cast<double>(other) / static_cast<double>(own);
    if (now <= before || ratio <= kStall) return rounded_product(now, ratio);
    return rounded_product(now, kStall) + rounded_product(before, ratio - kStall);
  }

  /// As scaled(), for factors that are not out of all reason, in a fraction of the time.
  static Nanoseconds rounded_product(Nanoseconds time, double factor) {
    const double product = static_cast<double>(time.count()) * factor;
    if (product > 1e17) return scaled(time, factor);
    return Nanoseconds(static_cast<std::int64_t>(product + 0.5));
  }

  /// Every pass has a seed of its own, so that it does not matter which thread it falls to.
  void draw(std::size_t pass, DrawnSets& sets) const {
    Draws draws(settings_.seed + (pass << 32U));
    std::vector<std::array<std::uint32_t, kSetsInPass>> drawn(variation_.step_count());
    for (auto& of_step : drawn) {
      for (std::uint32_t& column : of_step)
        column = static_cast<std::uint32_t>(draws.below(columns_.size()));
    }
    const std::size_t width = columns_.size();
    for (std::size_t at = 0; at < step_of_.size(); ++at) {
      const Nanoseconds* const cells = table_.data() + at * width;
      const auto& columns = drawn[step_of_[at]];
      for (std::size_t set = 0; set < kSetsInPass; ++set) sets[set][at] = cells[columns[set]];
    }
  }

  void replay(const DrawnSets& sets, std::vector<Nanoseconds>& times) const {
    const std::vector<std::span<const Nanoseconds>> spans(sets.begin(), sets.end());
    const Compiled::Replays replays = compiled_.replay_all(spans, probes_.tasks());
    const std::size_t probes = probes_.tasks().size();
    for (std::size_t set = 0; set < kSetsInPass; ++set) {
      const StepTimes found =
          probes_.step_times({.starts = std::span(replays.starts).subspan(set * probes, probes),
                              .finishes = std::span(replays.finishes).subspan(set * probes, probes),
                              .work = work_,
                              .length = replays.lengths[set]});
      if (!settings_.leave_out) {
        times.insert(times.end(), found.counted.begin(), found.counted.end());
        continue;
      }
      for (std::size_t step = found.first; step < found.each.size(); ++step) {
        if (step != settings_.leave_out) times.push_back(found.each[step]);
      }
    }
  }

  const StepVariation& variation_;
  ResampleSettings settings_;
  Compiled compiled_;
  StepProbes probes_;
  std::vector<Nanoseconds> work_;
  std::vector<std::size_t> columns_;  ///< Columns of the donors that may be drawn.
  std::vector<Nanoseconds> table_;
  std::vector<std::uint32_t> step_of_;
};

}  // namespace

Resampled resample(const StepVariation& variation, const Graph& recorded, const Graph& changed,
                   const ResampleSettings& settings) {
  return Resampler(variation, recorded, changed, settings).run();
}

bool all_in_line(const Graph& graph) {
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).discipline != Discipline::fifo) return false;
  }
  return true;
}

std::vector<Nanoseconds> around(const Resampled& found, Nanoseconds point) {
  std::vector<Nanoseconds> moved = found.times;
  for (std::size_t step = 0; step < found.steps; ++step) {
    std::vector<Nanoseconds> of_step;
    for (std::size_t i = step; i < moved.size(); i += found.steps) of_step.push_back(moved[i]);
    const Nanoseconds typical = interquartile_mean(std::move(of_step));
    for (std::size_t i = step; i < moved.size(); i += found.steps) moved[i] += point - typical;
  }
  return moved;
}

}  // namespace foretrace
