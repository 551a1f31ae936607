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

class Search {
 public:
  Search(const PlanSpace& space, const StepCalibration& calibration)
      : space_(space),
        calibration_(calibration),
        threads_(space.threads > 0 ? space.threads : threads_for_idle_cores()),
        candidates_(candidates_of(space)),
        bounds_(candidates_.size()),
        ranking_(space.shown) {}

  std::size_t blocks() const { return (candidates_.size() + kBlock - 1) / kBlock; }
  std::size_t begin_of(std::size_t block) const {
    return std::min(candidates_.size(), block * kBlock);
  }

  void set(std::size_t block, std::size_t place, const LayoutBound& bound) {
    static_cast<LayoutBound&>(bounds_[begin_of(block) + place]) = bound;
  }
  std::vector<LayoutBound> bounds(std::size_t block) const {
    return {bounds_.begin() + static_cast<std::ptrdiff_t>(begin_of(block)),
            bounds_.begin() + static_cast<std::ptrdiff_t>(begin_of(block + 1))};
  }

  void find_bounds(std::size_t first, std::size_t end, const PlanSearch::Found& found,
                   const std::atomic<bool>& stop) {
    std::mutex mutex;
    std::vector<char> is_found(end - first, 0);
    std::size_t taken = 0;  // Blocks up to the first gap.
    in_blocks(first, end, [&](StepCalibration& calibration, std::size_t block, MeasuredStep& step) {
      if (stop) return;
      for (std::size_t i = begin_of(block); i < begin_of(block + 1); ++i) {
        set_layout(candidates_[i], step.layout);
        static_cast<LayoutBound&>(bounds_[i]) = bound_of(calibration, step);
      }
      const std::lock_guard lock(mutex);
      is_found[block - first] = 1;
      for (; taken < is_found.size() && is_found[taken] != 0; ++taken)
        found(first + taken, bounds(first + taken));
    });
  }

  /// REQUIRES: all bounds are known.
  PlanOutcome run() {
    PlanOutcome outcome;
    complete_bounds();
    replay();
    outcome.candidates = candidates_.size() - count_served_by_none();
    outcome.replayed = ranking_.size();
    const PlannedLayout first = planned_at(ranking_.fastest().front().place);
    std::vector<char> is_named(candidates_.size(), 0);
    const auto named = [&](const Replayed& one) {
      is_named[one.place] = 1;
      return compared(planned_at(one.place), first);
    };
    for (const Replayed& one : ranking_.fastest()) outcome.best.push_back(named(one));
    for (const Replayed& one : ranking_.front()) outcome.front.push_back(named(one));
    for (const auto& one : ranking_.launched())
      outcome.launched.push_back(one ? std::optional(compared(planned_at(one->place), first))
                                     : std::nullopt);
    count_losses(is_named, parts_of(first.price), outcome);
    return outcome;
  }

 private:
  PlannedLayout planned_at(std::size_t place) {
    Layout layout = space_.step.layout;
    set_layout(candidates_[place], layout);
    return priced_layout(space_, layout, of_thread(0));
  }

  StepCalibration& of_thread(std::size_t thread) {
    if (calibrations_.size() < threads_) calibrations_.resize(threads_);
    if (!calibrations_[thread]) calibrations_[thread] = calibration_.clone();
    return *calibrations_[thread];
  }

  /// Calls work(calibration, block, step) on all threads; `work` may modify its `step`.
  template <class Work>
  void in_blocks(std::size_t first, std::size_t end, const Work& work) {
    of_thread(0);
    on_threads(threads_, end - first, [&](std::size_t thread, std::size_t i) {
      MeasuredStep step = space_.step;
      work(of_thread(thread), first + i, step);
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
    in_blocks(0, blocks(), [&](StepCalibration&, std::size_t block, MeasuredStep& step) {
      for (std::size_t i = begin_of(block); i < begin_of(block + 1); ++i) {
        Bound& bound = bounds_[i];
        if (!bound.is_served || !bound.fits) continue;
        set_layout(candidates_[i], step.layout);
        bound.cost = cost_of(space_, bound.us, step.layout.devices());
        for (std::size_t p = 0; p < launch_programs().size(); ++p)
          bound.programs |= static_cast<std::uint8_t>(launch_programs()[p].runs(step.layout) << p);
      }
    });
  }

  std::size_t count_served_by_none() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(bounds_, [](const Bound& bound) { return !bound.is_served; }));
  }

  /// Replays in order of the bounds, so that the most promising layouts come first.
  void replay() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i].is_served && bounds_[i].fits) left.push_back(i);
    }
    if (left.empty()) refuse_space(space_, candidates_, bounds_, calibration_);
    std::ranges::sort(left, [&](std::size_t a, std::size_t b) {
      return std::tie(bounds_[a].us, a) < std::tie(bounds_[b].us, b);
    });
    for (std::size_t next = 0; next < left.size();) {
      std::vector<std::size_t> round;
      for (; next < left.size() && round.size() < kRound; ++next) {
        if (ranking_.may_show(left[next], bounds_[left[next]])) round.push_back(left[next]);
      }
      std::vector<Replayed> found(round.size());
      on_threads(threads_, round.size(), [&](std::size_t thread, std::size_t i) {
        found[i] = replayed(of_thread(thread), round[i]);
      });
      for (const Replayed& one : found) ranking_.add(one);
    }
  }

  Replayed replayed(StepCalibration& calibration, std::size_t place) const {
    MeasuredStep step = space_.step;
    set_layout(candidates_[place], step.layout);
    const double us = calibration.price(step).us;
    const Bound& bound = bounds_[place];
    return {place, us, cost_of(space_, us, candidates_[place].devices()), bound.reserved,
            bound.programs};
  }

  void count_losses(const std::vector<char>& is_named, const PriceParts& best,
                    PlanOutcome& outcome) const {
    std::array<std::size_t, 5> counts{};
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (is_named[i] || !bounds_[i].is_served) continue;
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

/// Returns data parallelism alone, for one count of GPUs.
std::optional<PlannedLayout> plain_layout(PlanSpace space, std::int64_t gpus,
                                          const StepCalibration& calibration) {
  Layout& layout = space.step.layout;
  layout.tensor = layout.pipeline = layout.context = layout.expert = layout.virtual_stages = 1;
  layout.zero = 0, layout.data = gpus, layout.sequence_parallel = false;
  space.gpus = {gpus};
  for (const char* name : {"tp", "pp", "cp", "ep", "zero"}) space.fixed.insert(name);
  for (const char* name : {"dp", "schedule", "virtual_stages"}) space.fixed.erase(name);
  space.shown = 1;
  if (layout.global_batch % gpus != 0) return std::nullopt;
  try {
    Search search(space, calibration);
    search.find_bounds(0, search.blocks(), ignore, false);
    return search.run().best.front();
  } catch (const Error&) {
    std::optional<PlannedLayout> least;
    StepCalibration own = calibration.clone();
    for (const Layout& other : all_layouts(space)) {
      PlannedLayout one = priced_layout(space, other, own);
      if (!least || one.price.memory.reserved < least->price.memory.reserved)
        least = std::move(one);
    }
    return least;
  }
}

}  // namespace

struct PlanSearch::Impl {
  const PlanSpace& space;
  const StepCalibration& calibration;
  Search search{space, calibration};
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

void PlanSearch::find(std::size_t first, std::size_t end, const Found& found,
                      const std::atomic<bool>& stop) {
  impl_->search.find_bounds(first, end, found, stop);
}

PlanOutcome PlanSearch::outcome() {
  PlanOutcome outcome = impl_->search.run();
  for (const PlannedLayout& one : plain_layouts(impl_->space, impl_->calibration))
    outcome.plain.push_back(compared(one, outcome.best.front()));
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
    if (auto one = plain_layout(space, gpus, calibration)) plain.push_back(std::move(*one));
  }
  return plain;
}

}  // namespace foretrace
