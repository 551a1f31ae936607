#include "analysis/doubt/resample.h"

#include <algorithm>
#include <array>

#include "base/random_generator.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "foretrace/error.h"
#include "simulate/pass.h"
#include "timeline/step_probes.h"

namespace foretrace {
namespace {

/// Most durations that are drawn in all; a large graph is replayed less often.
constexpr std::size_t kMaxDurations = 25'000'000;
constexpr std::size_t kFewestResamples = 5 * kSetsAtOnce;
/// Most threads that replay, and most tasks of all graphs that they replay at the same time.
constexpr std::size_t kMaxShares = 4;
constexpr std::size_t kMaxAtOnce = 8'000'000;
/// Work that grew by more than this factor contains a stall.
constexpr float kStall = 2;

/// Durations of one rank in eight replays, by row.
using DrawnSets = std::array<std::vector<Nanoseconds>, kSetsAtOnce>;

/// The durations that a rank can have.
class RankDraws {
 public:
  RankDraws(const ResampledRank& rank, const JointRows& rows, std::size_t number)
      : rank_(rank), order_(rows.order(number)), durations_(rows.durations(number)) {}

  /// Computes the time of each task with the work of each of these donors, by row.
  void tabulate(std::span<const std::size_t> donors) {
    width_ = donors.size();
    std::vector<std::size_t> columns;
    for (const std::size_t donor : donors) columns.push_back(column_of(donor));
    const std::size_t count = durations_.size();
    table_.resize(count * width_);
    step_of_.assign(count, 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t at = order_[i];
      Nanoseconds* const cells = table_.data() + at * width_;
      const Nanoseconds now = durations_[at];
      const StepVariation& variation = rank_.variation;
      if (i >= variation.task_count() ||
          variation.task_row(TaskId{i}).row == StepVariation::kNoRow) {
        std::fill(cells, cells + width_, now);
        continue;
      }
      const StepVariation::TaskRow& task_row = variation.task_row(TaskId{i});
      step_of_[at] = task_row.step;
      const auto row = variation.row(task_row.row);
      const Nanoseconds waited = rank_.waits.empty() ? 0ns : rank_.waits[i];
      const Nanoseconds before = rank_.recorded.task(TaskId{i}).duration - waited;
      for (std::size_t c = 0; c < width_; ++c)
        cells[c] = varied(now, before, task_row.work, row[columns[c]]);
    }
  }

  /// `drawn` has a column for each step and replay.
  void draw(std::span<const std::array<std::uint32_t, kSetsAtOnce>> drawn, DrawnSets& sets) const {
    for (auto& set : sets) set.resize(step_of_.size());
    for (std::size_t at = 0; at < step_of_.size(); ++at) {
      const Nanoseconds* const cells = table_.data() + at * width_;
      const auto& columns = drawn[step_of_[at]];
      for (std::size_t set = 0; set < kSetsAtOnce; ++set) sets[set][at] = cells[columns[set]];
    }
  }

 private:
  std::size_t column_of(std::size_t donor) const {
    const auto donors = rank_.variation.donors();
    return static_cast<std::size_t>(std::find(donors.begin(), donors.end(), donor) -
                                    donors.begin());
  }

  static Nanoseconds varied(Nanoseconds now, Nanoseconds before, float work, float drawn) {
    if (work == drawn) return now;
    if (work <= 0) {  // There is no ratio to scale by, so the work of the other step is added.
      return now + Nanoseconds(static_cast<std::int64_t>(drawn));
    }
    const double ratio = static_cast<double>(drawn) / static_cast<double>(work);
    if (now <= before || ratio <= kStall) return rounded_product(now, ratio);
    return rounded_product(now, kStall) + rounded_product(before, ratio - kStall);
  }

  /// Like scaled(), but much faster for products within reason.
  static Nanoseconds rounded_product(Nanoseconds time, double factor) {
    const double product = static_cast<double>(time.count()) * factor;
    if (product > 1e17) return scaled(time, factor);
    return Nanoseconds(static_cast<std::int64_t>(product + 0.5));
  }

  const ResampledRank& rank_;
  std::span<const std::uint32_t> order_;
  std::span<const Nanoseconds> durations_;
  std::size_t width_ = 0;
  std::vector<Nanoseconds> table_;
  std::vector<std::uint32_t> step_of_;  ///< Step of each row.
};

bool can_draw(const ResampledRank& rank, std::size_t donor) {
  return std::ranges::binary_search(rank.variation.donors(), donor);
}

class Resampler {
 public:
  Resampler(std::span<const ResampledRank> ranks, std::size_t shown, const JointRows& rows,
            const ResampleSettings& settings)
      : settings_(settings),
        rows_(rows),
        shown_(shown),
        steps_(ranks[shown].variation.step_count()),
        probes_(ranks[shown].changed),
        sorted_(probes_by_row(probes_.tasks(), rows.order(shown))),
        work_(probes_.work(ranks[shown].changed)) {
    donors_ = common_donors(ranks, shown);
    std::erase_if(donors_, [&](std::size_t donor) { return is_left_out(donor); });
    if (donors_.size() < 2) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks_.emplace_back(ranks[i], rows, i);
    on_all_cores(ranks_.size(), [&](std::size_t i) { ranks_[i].tabulate(donors_); });
  }

  Resampled run() const {
    Resampled found;
    found.donors = donors_.size();
    if (donors_.size() < 2) return found;
    const std::size_t tasks = std::max<std::size_t>(rows_.task_count(), 1);
    const std::size_t most = std::max(kMaxDurations / tasks, kFewestResamples);
    const std::size_t passes =
        std::max<std::size_t>(std::min(settings_.resamples, most) / kSetsAtOnce, 1);
    std::vector<std::vector<Nanoseconds>> times(passes);
    const std::size_t shares =
        std::min(passes, std::clamp<std::size_t>(kMaxAtOnce / tasks, 1, kMaxShares));
    on_all_cores(shares, [&](std::size_t share) {
      std::vector<DrawnSets> sets(ranks_.size());
      for (std::size_t pass = share; pass < passes; pass += shares) {
        draw(pass, sets);
        replay(sets, times[pass]);
      }
    });
    for (const auto& of_pass : times)
      found.times.insert(found.times.end(), of_pass.begin(), of_pass.end());
    found.resamples = passes * kSetsAtOnce;
    found.steps = found.times.size() / found.resamples;
    return found;
  }

 private:
  bool is_left_out(std::size_t step) const {
    return std::ranges::find(settings_.leave_out, step) != settings_.leave_out.end();
  }

  /// Every pass has its own seed, so that it does not matter which thread runs it.
  void draw(std::size_t pass, std::vector<DrawnSets>& sets) const {
    RandomGenerator draws(settings_.seed + (std::uint64_t{pass} << 32U));
    std::vector<std::array<std::uint32_t, kSetsAtOnce>> drawn(steps_);
    for (auto& of_step : drawn) {
      for (std::uint32_t& column : of_step)
        column = static_cast<std::uint32_t>(draws.below(donors_.size()));
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].draw(drawn, sets[i]);
  }

  void replay(const std::vector<DrawnSets>& sets, std::vector<Nanoseconds>& times) const {
    const std::size_t probes = sorted_.size();
    std::vector<Nanoseconds> starts(probes * kSetsAtOnce), finishes(probes * kSetsAtOnce);
    std::vector<JointRows::RankSets> ranks;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      JointRows::RankSets& rank = ranks.emplace_back();
      for (std::size_t set = 0; set < kSetsAtOnce; ++set)
        rank.durations[set] = as_counts(std::span<const Nanoseconds>(sets[i][set]));
      if (i != shown_) continue;
      rank.probe_times = {.probes = sorted_,
                          .starts = {as_counts(std::span(starts)), starts.size()},
                          .finishes = {as_counts(std::span(finishes)), finishes.size()}};
    }
    const EightTimes lengths = rows_.replay_eight(ranks)[shown_];
    for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
      const StepTimes found =
          probes_.step_times({.starts = std::span(starts).subspan(set * probes, probes),
                              .finishes = std::span(finishes).subspan(set * probes, probes),
                              .work = work_,
                              .length = Nanoseconds(lengths[set])});
      if (settings_.leave_out.empty()) {
        times.insert(times.end(), found.counted.begin(), found.counted.end());
        continue;
      }
      for (std::size_t step = found.first; step < found.each.size(); ++step) {
        if (!is_left_out(step)) times.push_back(found.each[step]);
      }
    }
  }

  ResampleSettings settings_;
  const JointRows& rows_;
  std::size_t shown_;
  std::size_t steps_;
  StepProbes probes_;
  std::vector<Probe> sorted_;
  std::vector<Nanoseconds> work_;
  std::vector<RankDraws> ranks_;
  std::vector<std::size_t> donors_;  ///< Steps that every rank can draw.
};

}  // namespace

std::vector<std::size_t> common_donors(std::span<const ResampledRank> ranks, std::size_t shown) {
  const StepVariation& variation = ranks[shown].variation;
  for (const ResampledRank& rank : ranks) {
    if (rank.variation.step_count() != variation.step_count()) return {};
  }
  std::vector<std::size_t> common;
  for (const std::size_t donor : variation.donors()) {
    if (std::ranges::all_of(ranks,
                            [&](const ResampledRank& rank) { return can_draw(rank, donor); }))
      common.push_back(donor);
  }
  return common;
}

Resampled resample(std::span<const ResampledRank> ranks, std::size_t shown, const JointRows& rows,
                   const ResampleSettings& settings) {
  return Resampler(ranks, shown, rows, settings).run();
}

Resampled resample(const StepVariation& variation, const Graph& recorded, const Graph& changed,
                   const ResampleSettings& settings) {
  const RankGraph alone{&changed};
  const std::optional<JointRows> rows = JointRows::make({&alone, 1}, {}, RowOrder::near);
  CHECK(rows);
  const ResampledRank rank{variation, recorded, changed};
  return resample({&rank, 1}, 0, *rows, settings);
}

std::vector<Nanoseconds> recentered(const Resampled& found, Nanoseconds point) {
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
