#include "plan/search.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/threads.h"
#include "foretrace/error.h"
#include "plan/layouts/candidates.h"
#include "plan/layouts/priced.h"
#include "plan/layouts/ranking.h"
#include "plan/layouts/refusal.h"

namespace foretrace {
namespace {

/// Candidates whose bounds a thread computes as one unit of work.
constexpr std::size_t kBlock = 256;
/// Replays between two checks of which candidates are still worth one.
constexpr std::size_t kRound = 64;

void ignore(std::size_t, const std::vector<LayoutBound>&) {}

}  // namespace

class LayoutSearch {
 public:
  LayoutSearch(const PlanSpace& space, const StepCalibration& calibration)
      : space_(space),
        calibration_(calibration),
        threads_(space.threads > 0 ? space.threads : threads_for_idle_cores()),
        candidates_(candidates_of(space)),
        bounds_(candidates_.size()),
        ranking_(space.shown, space.programs.size()) {}

  std::size_t blocks() const { return (candidates_.size() + kBlock - 1) / kBlock; }
  std::size_t begin_of(std::size_t block) const {
    return std::min(candidates_.size(), block * kBlock);
  }

  void set(std::size_t block, std::size_t offset, const LayoutBound& bound) {
    static_cast<LayoutBound&>(bounds_[begin_of(block) + offset]) = bound;
  }
  std::vector<LayoutBound> bounds(std::size_t block) const {
    return {bounds_.begin() + static_cast<std::ptrdiff_t>(begin_of(block)),
            bounds_.begin() + static_cast<std::ptrdiff_t>(begin_of(block + 1))};
  }

  void find_bounds(std::size_t first, std::size_t end, const PlanSearch::OnBlock& on_block,
                   const std::atomic<bool>& stop) {
    std::mutex mutex;
    std::vector<char> is_done(end - first, 0);
    std::size_t reported = 0;  // Blocks up to the first gap.
    for_each_block(first, end,
                   [&](StepCalibration& calibration, std::size_t block, MeasuredStep& step) {
                     if (stop) return;
                     for (std::size_t i = begin_of(block); i < begin_of(block + 1); ++i) {
                       step.layout = layout_of(candidates_[i], space_.step.layout);
                       static_cast<LayoutBound&>(bounds_[i]) = bound_of(calibration, step);
                     }
                     const std::lock_guard lock(mutex);
                     is_done[block - first] = 1;
                     for (; reported < is_done.size() && is_done[reported] != 0; ++reported)
                       on_block(first + reported, bounds(first + reported));
                   });
  }

  /// REQUIRES: all bounds are known.
  PlanOutcome run() {
    PlanOutcome outcome;
    complete_bounds();
    replay();
    outcome.candidates = candidates_.size() - count_served_by_none();
    outcome.replayed = ranking_.size();
    const PlannedLayout first = planned(ranking_.fastest().front().candidate);
    std::vector<char> is_shown(candidates_.size(), 0);
    const auto show = [&](const ReplayedLayout& layout) {
      is_shown[layout.candidate] = 1;
      return with_loss(planned(layout.candidate), first);
    };
    for (const ReplayedLayout& layout : ranking_.fastest()) outcome.best.push_back(show(layout));
    for (const ReplayedLayout& layout : ranking_.front()) outcome.front.push_back(show(layout));
    for (const auto& layout : ranking_.launched())
      outcome.launched.push_back(
          layout ? std::optional(with_loss(planned(layout->candidate), first)) : std::nullopt);
    count_losses(is_shown, parts_of(first.price), outcome);
    return outcome;
  }

 private:
  PlannedLayout planned(std::size_t candidate) {
    const Layout layout = layout_of(candidates_[candidate], space_.step.layout);
    return priced_layout(space_, layout, calibration_of(0));
  }

  StepCalibration& calibration_of(std::size_t thread) {
    if (calibrations_.size() < threads_) calibrations_.resize(threads_);
    if (!calibrations_[thread]) calibrations_[thread] = calibration_.clone();
    return *calibrations_[thread];
  }

  /// Calls work(calibration, block, step) on all threads; `work` may modify its `step`.
  template <class Work>
  void for_each_block(std::size_t first, std::size_t end, const Work& work) {
    calibration_of(0);
    on_threads(threads_, end - first, [&](std::size_t thread, std::size_t i) {
      MeasuredStep step = space_.step;
      work(calibration_of(thread), first + i, step);
    });
  }

  LayoutBound bound_of(StepCalibration& calibration, const MeasuredStep& step) const {
    LayoutBound bound;
    try {
      bound.reserved = calibration.memory(step).reserved.count;
      bound.fits = bound.reserved <= space_.limit().count;
      if (!bound.fits) return bound;
      const CalibratedPrice priced = calibration.price(step, PipelineTime::at_least);
      bound.us = priced.us, bound.parts = parts_of(priced);
    } catch (const Error&) {
      bound.is_served = false;
    }
    return bound;
  }

  void complete_bounds() {
    for_each_block(0, blocks(), [&](StepCalibration&, std::size_t block, MeasuredStep& step) {
      for (std::size_t i = begin_of(block); i < begin_of(block + 1); ++i) {
        Bound& bound = bounds_[i];
        if (!bound.is_served || !bound.fits) continue;
        step.layout = layout_of(candidates_[i], space_.step.layout);
        bound.cost = cost_of(space_, bound.us, step.layout.devices());
        for (std::size_t p = 0; p < space_.programs.size(); ++p)
          bound.programs |= static_cast<std::uint8_t>(space_.programs[p]->runs(step.layout) << p);
      }
    });
  }

  std::size_t count_served_by_none() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(bounds_, [](const Bound& bound) { return !bound.is_served; }));
  }

  /// Replays in order of the bounds, so that the most promising layouts come first.
  void replay() {
    std::vector<std::size_t> remaining;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i].is_served && bounds_[i].fits) remaining.push_back(i);
    }
    if (remaining.empty()) refuse_space(space_, candidates_, bounds_, calibration_);
    std::ranges::sort(remaining, [&](std::size_t a, std::size_t b) {
      return std::tie(bounds_[a].us, a) < std::tie(bounds_[b].us, b);
    });
    for (std::size_t next = 0; next < remaining.size();) {
      std::vector<std::size_t> round;
      for (; next < remaining.size() && round.size() < kRound; ++next) {
        if (ranking_.may_show(remaining[next], bounds_[remaining[next]]))
          round.push_back(remaining[next]);
      }
      std::vector<ReplayedLayout> layouts(round.size());
      on_threads(threads_, round.size(), [&](std::size_t thread, std::size_t i) {
        layouts[i] = replayed(calibration_of(thread), round[i]);
      });
      for (const ReplayedLayout& layout : layouts) ranking_.add(layout);
    }
  }

  ReplayedLayout replayed(StepCalibration& calibration, std::size_t candidate) const {
    MeasuredStep step = space_.step;
    step.layout = layout_of(candidates_[candidate], space_.step.layout);
    const double us = calibration.price(step).us;
    const Bound& bound = bounds_[candidate];
    return {candidate, us, cost_of(space_, us, candidates_[candidate].devices()), bound.reserved,
            bound.programs};
  }

  void count_losses(const std::vector<char>& is_shown, const PriceParts& best,
                    PlanOutcome& outcome) const {
    std::array<std::size_t, 5> counts{};
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (is_shown[i] || !bounds_[i].is_served) continue;
      const Loss loss = bounds_[i].fits ? loss_of(bounds_[i].parts, best) : Loss::memory;
      ++counts[static_cast<std::size_t>(loss)];
    }
    for (const Loss loss : {Loss::memory, Loss::bubble, Loss::network, Loss::kernels})
      outcome.losses.emplace_back(loss, counts[static_cast<std::size_t>(loss)]);
  }

  const PlanSpace& space_;
  const StepCalibration& calibration_;
  std::size_t threads_;
  std::vector<Candidate> candidates_;
  std::vector<Bound> bounds_;
  std::vector<std::optional<StepCalibration>> calibrations_;  ///< By thread.
  Ranking ranking_;
};

namespace {

/// Returns data parallelism alone, for one count of GPUs.
std::optional<PlannedLayout> plain_layout(PlanSpace space, std::int64_t gpus,
                                          const StepCalibration& calibration) {
  Layout& layout = space.step.layout;
  layout.tensor = layout.pipeline = layout.context = layout.expert = layout.virtual_stages = 1;
  layout.zero = 0, layout.data = gpus, layout.sequence_parallel = false;
  layout.replicas = layout.flushes = 1, layout.expert_tensor = 0;
  space.gpus = {gpus};
  for (const char* name : {"tp", "pp", "cp", "ep", "zero"}) space.fixed.insert(name);
  for (const char* name : {"dp", "schedule", "virtual_stages"}) space.fixed.erase(name);
  space.shown = 1;
  if (layout.global_batch % gpus != 0) return std::nullopt;
  try {
    LayoutSearch search(space, calibration);
    search.find_bounds(0, search.blocks(), ignore, false);
    return search.run().best.front();
  } catch (const Error&) {
    std::optional<PlannedLayout> least;
    StepCalibration copy = calibration.clone();
    for (const Layout& other : all_layouts(space)) {
      PlannedLayout planned = priced_layout(space, other, copy);
      if (!least || planned.price.memory.reserved < least->price.memory.reserved)
        least = std::move(planned);
    }
    return least;
  }
}

}  // namespace

struct PlanSearch::Impl {
  const PlanSpace& space;
  const StepCalibration& calibration;
  LayoutSearch search{space, calibration};
};

PlanSearch::PlanSearch(const PlanSpace& space, const StepCalibration& calibration)
    : impl_(new Impl{space, calibration}) {}
PlanSearch::PlanSearch(PlanSearch&&) noexcept = default;
PlanSearch::~PlanSearch() = default;

std::size_t PlanSearch::blocks() const { return impl_->search.blocks(); }

std::size_t PlanSearch::layouts(std::size_t block) const {
  return impl_->search.begin_of(block + 1) - impl_->search.begin_of(block);
}

void PlanSearch::set(std::size_t block, const std::vector<LayoutBound>& bounds) {
  CHECK(bounds.size() == layouts(block));
  for (std::size_t i = 0; i < bounds.size(); ++i) impl_->search.set(block, i, bounds[i]);
}

void PlanSearch::find(std::size_t first, std::size_t end, const OnBlock& on_block,
                      const std::atomic<bool>& stop) {
  impl_->search.find_bounds(first, end, on_block, stop);
}

PlanOutcome PlanSearch::outcome() {
  PlanOutcome outcome = impl_->search.run();
  for (const PlannedLayout& layout : plain_layouts(impl_->space, impl_->calibration))
    outcome.plain.push_back(with_loss(layout, outcome.best.front()));
  return outcome;
}

PlanOutcome plan_layouts(const PlanSpace& space, const StepCalibration& calibration) {
  PlanSearch search(space, calibration);
  search.find(0, search.blocks(), ignore, false);
  return search.outcome();
}

std::vector<PlannedLayout> plain_layouts(const PlanSpace& space,
                                         const StepCalibration& calibration) {
  std::vector<PlannedLayout> plain;
  for (const std::int64_t gpus : space.gpus) {
    if (auto layout = plain_layout(space, gpus, calibration)) plain.push_back(std::move(*layout));
  }
  return plain;
}

}  // namespace foretrace
