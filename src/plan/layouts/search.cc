#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/threads.h"
#include "foretrace/error.h"
#include "plan/layouts/candidates.h"

namespace foretrace {
namespace {

constexpr std::size_t kBlock = 256;  ///< Candidates whose bounds a thread works out in one go.
constexpr std::size_t kRound = 64;   ///< Replays between two looks at what is still worth one.
constexpr double kHour = 3600e6;     ///< In microseconds.

/// Microseconds of a step by what may make it lose.
struct Parts {
  double bubble = 0, network = 0, kernels = 0;
};

Parts parts_of(const CalibratedPrice& priced) {
  const StepPrice& price = priced.price;
  const double factor = priced.us / price.step;
  return {price.bubble * factor, (price.tensor + price.sends + price.gradients) * factor,
          (price.compute + price.optimizer + price.other) * factor};
}

Loss loss_of(const Parts& parts, const Parts& best) {
  const double bubble = parts.bubble - best.bubble, network = parts.network - best.network;
  const double kernels = parts.kernels - best.kernels;
  if (bubble >= network && bubble >= kernels) return Loss::bubble;
  return network >= kernels ? Loss::network : Loss::kernels;
}

double cost_of(const PlanSpace& space, double us, std::int64_t devices) {
  return us / kHour * static_cast<double>(devices) * space.gpu_hour;
}

Bytes limit_of(const PlanSpace& space) {
  return space.memory ? *space.memory : space.step.platform.device.memory;
}

PlannedLayout planned(const PlanSpace& space, const Layout& layout, StepCalibration& calibration) {
  PlannedLayout answer{.layout = layout};
  MeasuredStep step = space.step;
  step.layout = layout;
  answer.price = calibration.price(step);
  answer.cost = cost_of(space, answer.price.us, layout.devices());
  answer.fits = answer.price.memory.reserved <= limit_of(space);
  return answer;
}

PlannedLayout compared(PlannedLayout one, const PlannedLayout& best) {
  if (!one.fits)
    one.loss = Loss::memory;
  else if (one.price.us > best.price.us)
    one.loss = loss_of(parts_of(one.price), parts_of(best.price));
  return one;
}

struct Bound {
  double us = 0;
  Parts parts;
  std::int64_t reserved = 0;
  bool is_served = true, fits = true;  ///< The schedule serves the layout; it fits a device.
  std::uint8_t programs = 0;           ///< A bit for each of launch_programs() that runs it.
};

struct Replayed {
  std::size_t place = 0;  ///< Of its candidate.
  double us = 0, cost = 0;
  std::int64_t reserved = 0;
};

bool is_faster(const Replayed& a, const Replayed& b) {
  return std::tie(a.us, a.place) < std::tie(b.us, b.place);
}

class Search {
 public:
  Search(const PlanSpace& space, const StepCalibration& calibration)
      : space_(space),
        calibration_(calibration),
        limit_(limit_of(space)),
        threads_(space.threads > 0 ? space.threads : threads_for_idle_cores()),
        candidates_(candidates_of(space)),
        bounds_(candidates_.size()) {}

  PlanOutcome run() {
    PlanOutcome outcome;
    find_bounds(outcome);
    replay();
    std::ranges::sort(replayed_, is_faster);
    outcome.candidates -= count_served_by_none();
    outcome.replayed = replayed_.size();
    const PlannedLayout first = planned_at(replayed_.front().place);
    const std::size_t shown = std::min(space_.shown, replayed_.size());
    for (std::size_t i = 0; i < shown; ++i)
      outcome.best.push_back(compared(planned_at(replayed_[i].place), first));
    std::vector<char> is_named(candidates_.size(), 0);
    for (std::size_t i = 0; i < shown; ++i) is_named[replayed_[i].place] = 1;
    for (const Replayed& one : front_of()) {
      outcome.front.push_back(compared(planned_at(one.place), first));
      is_named[one.place] = 1;
    }
    for (const auto& one : launched_)
      outcome.launched.push_back(one ? std::optional(compared(planned_at(one->place), first))
                                     : std::nullopt);
    count_losses(is_named, parts_of(first.price), outcome);
    return outcome;
  }

 private:
  PlannedLayout planned_at(std::size_t place) {
    Layout layout = space_.step.layout;
    set_layout(candidates_[place], layout);
    return planned(space_, layout, of_thread(0));
  }

  StepCalibration& of_thread(std::size_t thread) {
    if (calibrations_.size() < threads_) calibrations_.resize(threads_);
    if (!calibrations_[thread]) calibrations_[thread] = calibration_.clone();
    return *calibrations_[thread];
  }

  void find_bounds(PlanOutcome& outcome) {
    of_thread(0);
    const std::size_t blocks = (candidates_.size() + kBlock - 1) / kBlock;
    on_threads(threads_, blocks, [&](std::size_t thread, std::size_t block) {
      StepCalibration& calibration = of_thread(thread);
      MeasuredStep step = space_.step;
      const std::size_t end = std::min(candidates_.size(), (block + 1) * kBlock);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        set_layout(candidates_[i], step.layout);
        bounds_[i] = bound_of(calibration, step);
      }
    });
    outcome.candidates = candidates_.size();
  }

  Bound bound_of(StepCalibration& calibration, const MeasuredStep& step) const {
    Bound bound;
    try {
      bound.reserved = calibration.memory(step).reserved.count;
      bound.fits = bound.reserved <= limit_.count;
      if (!bound.fits) return bound;
      const CalibratedPrice priced = calibration.price(step, PipelineTime::at_least);
      bound.us = priced.us, bound.parts = parts_of(priced);
      for (std::size_t i = 0; i < launch_programs().size(); ++i)
        bound.programs |= static_cast<std::uint8_t>(launch_programs()[i].runs(step.layout) << i);
    } catch (const Error&) {
      bound.is_served = false;
    }
    return bound;
  }

  std::size_t count_served_by_none() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(bounds_, [](const Bound& bound) { return !bound.is_served; }));
  }

  /// In order of their bounds, so that the first replays are of the best.
  void replay() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i].is_served && bounds_[i].fits) left.push_back(i);
    }
    if (left.empty()) refuse();
    std::ranges::sort(left, [&](std::size_t a, std::size_t b) {
      return std::tie(bounds_[a].us, a) < std::tie(bounds_[b].us, b);
    });
    for (std::size_t next = 0; next < left.size();) {
      std::vector<std::size_t> round;
      for (; next < left.size() && round.size() < kRound; ++next) {
        if (may_be_shown(left[next])) round.push_back(left[next]);
      }
      std::vector<Replayed> found(round.size());
      on_threads(threads_, round.size(), [&](std::size_t thread, std::size_t i) {
        found[i] = replayed(of_thread(thread), round[i]);
      });
      for (const Replayed& one : found) add(one);
    }
  }

  Replayed replayed(StepCalibration& calibration, std::size_t place) const {
    MeasuredStep step = space_.step;
    set_layout(candidates_[place], step.layout);
    const double us = calibration.price(step).us;
    return {place, us, cost_of(space_, us, candidates_[place].devices()), bounds_[place].reserved};
  }

  void add(const Replayed& one) {
    replayed_.push_back(one);
    for (std::size_t i = 0; i < launched_.size(); ++i) {
      const bool runs = (bounds_[one.place].programs >> i & 1) != 0;
      if (runs && (!launched_[i] || is_faster(one, *launched_[i]))) launched_[i] = one;
    }
    fastest_.push_back(one);
    std::ranges::sort(fastest_, is_faster);
    if (fastest_.size() > space_.shown) fastest_.pop_back();
    std::erase_if(efficient_, [&](const Replayed& other) { return is_worse(other, one); });
    if (std::ranges::none_of(efficient_,
                             [&](const Replayed& other) { return is_worse(one, other); }))
      efficient_.push_back(one);
  }

  /// Not better in anything, and slower.
  static bool is_worse(const Replayed& one, const Replayed& than) {
    return than.us < one.us && than.reserved <= one.reserved && than.cost <= one.cost;
  }

  bool may_be_shown(std::size_t place) const {
    const Bound& bound = bounds_[place];
    if (fastest_.size() < space_.shown || bound.us <= fastest_.back().us) return true;
    for (std::size_t i = 0; i < launched_.size(); ++i) {
      const bool runs = (bound.programs >> i & 1) != 0;
      if (runs && (!launched_[i] || bound.us <= launched_[i]->us)) return true;
    }
    const Replayed best{place, bound.us, cost_of(space_, bound.us, candidates_[place].devices()),
                        bound.reserved};
    return std::ranges::none_of(efficient_,
                                [&](const Replayed& other) { return is_worse(best, other); });
  }

  /// Among equal ones the first.
  std::vector<Replayed> front_of() {
    std::ranges::sort(replayed_, [](const Replayed& a, const Replayed& b) {
      return std::tie(a.us, a.reserved, a.cost, a.place) <
             std::tie(b.us, b.reserved, b.cost, b.place);
    });
    std::vector<Replayed> front;
    for (const Replayed& one : replayed_) {
      if (std::ranges::none_of(front, [&](const Replayed& other) {
            return other.reserved <= one.reserved && other.cost <= one.cost;
          }))
        front.push_back(one);
    }
    return front;
  }

  void count_losses(const std::vector<char>& is_named, const Parts& best,
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

  [[noreturn]] void refuse() {
    std::size_t smallest = candidates_.size(), count = 0;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (!bounds_[i].is_served) continue;
      ++count;
      if (smallest == candidates_.size() || bounds_[i].reserved < bounds_[smallest].reserved)
        smallest = i;
    }
    if (count == 0) throw Error("no layout is left: " + refusal_of_first());
    check_layer();
    Layout layout = space_.step.layout;
    set_layout(candidates_[smallest], layout);
    throw Error("no layout is left: memory took the last " + std::to_string(count) + " of them; " +
                layout_text(layout) + " needs least, " +
                to_text(Bytes{bounds_[smallest].reserved}) + " of " + to_text(limit_));
  }

  std::string refusal_of_first() {
    try {
      planned_at(0);
    } catch (const Error& error) {
      return error.what();
    }
    return "the schedules serve none";
  }

  /// Whatever is sharded, the weights of a layer are there as a whole while it runs.
  void check_layer() const {
    constexpr double kWeight = 2;
    double least = std::numeric_limits<double>::max();
    for (const Candidate& candidate : candidates_) {
      double largest = 0;
      for (const LayerRow& row : space_.step.workload->layers({.tensor = candidate.tensor,
                                 .context = candidate.context,
                                 .expert = candidate.expert}))
        largest = std::max(largest, kWeight * (row.parameters + row.expert_parameters));
      least = std::min(least, largest);
    }
    const Bytes layer{static_cast<std::int64_t>(least)};
    if (layer > limit_)
      throw Error("--memory: must hold the weights of one layer, " + to_text(layer) + ", got " +
                  to_text(limit_));
  }

  const PlanSpace& space_;
  const StepCalibration& calibration_;
  Bytes limit_;
  std::size_t threads_;
  std::vector<Candidate> candidates_;
  std::vector<Bound> bounds_;
  std::vector<std::optional<StepCalibration>> calibrations_;  ///< By thread.
  std::vector<Replayed> replayed_;
  std::vector<Replayed> fastest_;  ///< Of `replayed_`, at most so many as are shown.
  /// The fastest of `replayed_` that each program runs.
  std::vector<std::optional<Replayed>> launched_{launch_programs().size()};
  std::vector<Replayed> efficient_;  ///< Of `replayed_`, those that nothing is better than.
};

/// Data parallelism alone, for one count of GPUs.
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
    return Search(space, calibration).run().best.front();
  } catch (const Error&) {
    std::optional<PlannedLayout> least;
    StepCalibration own = calibration.clone();
    for (const Layout& other : all_layouts(space)) {
      PlannedLayout one = planned(space, other, own);
      if (!least || one.price.memory.reserved < least->price.memory.reserved)
        least = std::move(one);
    }
    return least;
  }
}

}  // namespace

std::string_view to_string(Loss loss) {
  constexpr std::array<std::string_view, 5> kNames = {"", "memory", "bubble", "network", "kernels"};
  return kNames[static_cast<std::size_t>(loss)];
}

PlanOutcome plan_layouts(const PlanSpace& space, const StepCalibration& calibration) {
  PlanOutcome outcome = Search(space, calibration).run();
  for (const std::int64_t gpus : space.gpus) {
    if (auto one = plain_layout(space, gpus, calibration))
      outcome.plain.push_back(compared(std::move(*one), outcome.best.front()));
  }
  return outcome;
}

PlannedLayout planned_layout(const PlanSpace& space, const Layout& layout,
                             const StepCalibration& calibration, const PlannedLayout& best) {
  layout.check();
  StepCalibration own = calibration.clone();
  return compared(planned(space, layout, own), best);
}

}  // namespace foretrace
