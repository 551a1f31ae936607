#include "plan/layouts/candidates.h"

#include <algorithm>
#include <array>

#include "base/wording.h"
#include "foretrace/error.h"
#include "plan/search.h"

namespace foretrace {
namespace {

/// Schedules with a flush, which all train the same. `chunks` 0 stands for 1F1B with any number of
/// chunks. Schedules that go both ways need an even number of stages; DualPipe also needs an even
/// number of micro-batches, at least twice the stages.
struct PlannedSchedule {
  const char* name;
  std::int64_t chunks;
  bool goes_both_ways = false;
};
constexpr std::array kPlannedSchedules = {
    PlannedSchedule{"1f1b", 1},          PlannedSchedule{"interleaved", 0},
    PlannedSchedule{"gpipe", 1},         PlannedSchedule{"zb_h1", 1},
    PlannedSchedule{"zb_h2", 1},         PlannedSchedule{"zb_v", 2},
    PlannedSchedule{"v_half", 2},        PlannedSchedule{"v_min", 2},
    PlannedSchedule{"dualpipe_v", 2},    PlannedSchedule{"chimera", 1, true},
    PlannedSchedule{"dualpipe", 1, true}};
constexpr std::array kRecomputes = {"none", "selective", "full"};
std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

class Enumeration {
 public:
  explicit Enumeration(const PlanSpace& space)
      : space_(space), base_(space.step.layout), layers_(space.step.workload->layer_count()) {
    for (const std::string& name : space.fixed) {
      const std::vector<std::string>& searched = searched_settings();
      if (std::ranges::find(searched, name) == searched.end())
        throw Error("--fix: must be one of " + joined(searched) + ", got " + name);
    }
    std::vector<std::string> names;
    for (const PlannedSchedule& one : kPlannedSchedules) names.emplace_back(one.name);
    if (space.fixed.contains("schedule") && std::ranges::find(names, base_.schedule) == names.end())
      throw Error("--fix: schedule: must be one of " + joined(names) + ", got " + base_.schedule);
  }

  std::vector<Candidate> run() {
    for (const std::int64_t gpus : space_.gpus) {
      for (const std::int64_t tensor : of("tp", base_.tensor, divisors(gpus))) {
        for (const std::int64_t context : of("cp", base_.context, divisors(gpus / tensor)))
          share(gpus, tensor, context);
      }
    }
    if (found_.empty()) throw Error("no layout is left: " + taken_by_);
    return std::move(found_);
  }

 private:
  /// Returns the searched values, or only the fixed value if the setting is fixed; empty if that
  /// value is not among the searched ones.
  std::vector<std::int64_t> of(const char* name, std::int64_t value,
                               std::vector<std::int64_t> searched) {
    if (!space_.fixed.contains(name)) return searched;
    if (std::ranges::find(searched, value) != searched.end()) return {value};
    took(0, std::string(name) + " must be one of " + joined_numbers(searched) + ", got " +
                std::to_string(value));
    return {};
  }

  static std::string joined_numbers(const std::vector<std::int64_t>& numbers) {
    std::vector<std::string> texts;
    for (const std::int64_t number : numbers) texts.push_back(std::to_string(number));
    return joined(texts);
  }

  /// Remembers the constraint to report if no layout is left: the one that the search reached last.
  void took(int order, const std::string& what) {
    if (order < taken_at_) return;
    taken_at_ = order, taken_by_ = what;
  }

  void share(std::int64_t gpus, std::int64_t tensor, std::int64_t context) {
    for (const std::int64_t pipeline :
         of("pp", base_.pipeline, divisors(gpus / tensor / context))) {
      const std::int64_t data = gpus / tensor / context / pipeline;
      if (space_.fixed.contains("dp") && data != base_.data) {
        took(0, "tp x pp x dp x cp must be equal to the number of GPUs, " + std::to_string(gpus));
        continue;
      }
      for (const std::int64_t expert : of("ep", base_.expert, divisors(data * context * tensor))) {
        try {
          space_.step.workload->layers({.tensor = tensor, .context = context, .expert = expert});
        } catch (const Error& error) {
          took(1, error.what());
          continue;
        }
        Candidate one;
        one.tensor = static_cast<std::int32_t>(tensor);
        one.pipeline = static_cast<std::int32_t>(pipeline);
        one.data = static_cast<std::int32_t>(data);
        one.context = static_cast<std::int32_t>(context);
        one.expert = static_cast<std::int32_t>(expert);
        add_batches(one);
      }
    }
  }

  void add_batches(Candidate one) {
    if (base_.global_batch % one.data != 0)
      return took(2, "--global-batch: must be a multiple of dp, " + std::to_string(one.data) +
                         ", got " + std::to_string(base_.global_batch));
    const std::int64_t samples = base_.global_batch / one.data;
    const auto add = [&](std::int64_t size) {
      one.micro_batch = static_cast<std::int32_t>(size);
      add_schedules(one, samples / size);
    };
    if (!space_.fixed.contains("micro_batch"))
      for (std::int64_t size = 1; samples % size == 0; size *= 2) add(size);
    else if (samples % base_.micro_batch == 0)
      add(base_.micro_batch);
    else
      took(2, "--global-batch: must be a multiple of dp x micro_batch, " +
                  std::to_string(one.data * base_.micro_batch) + ", got " +
                  std::to_string(base_.global_batch));
  }

  void add_schedules(Candidate one, std::int64_t micro_batches) {
    const std::int64_t stages = one.pipeline;
    for (std::size_t i = 0; i < kPlannedSchedules.size(); ++i) {
      const auto& [name, chunks, goes_both_ways] = kPlannedSchedules[i];
      const bool is_any = chunks == 0;
      if (stages == 1 && i > 0) break;
      if (space_.fixed.contains("schedule") && stages > 1 && base_.schedule != name &&
          !(is_any && base_.schedule == "1f1b"))
        continue;
      if (goes_both_ways && stages % 2 != 0) continue;
      if (name == std::string_view("dualpipe") &&
          (micro_batches % 2 != 0 || micro_batches < 2 * stages))
        continue;
      one.schedule = static_cast<std::int8_t>(i);
      const std::int64_t most = is_any ? layers_ / stages : chunks;
      for (std::int64_t v = is_any ? 2 : chunks; v <= most; ++v) {
        if (space_.fixed.contains("virtual_stages") && v != base_.virtual_stages) continue;
        if (v > 1 && micro_batches % stages != 0) {
          took(3, "virtual stages need micro-batches in multiples of pp, " +
                      std::to_string(stages) + ", got " + std::to_string(micro_batches));
          continue;
        }
        const bool divides = layers_ % (stages * v) == 0;
        if (!divides && (layers_ + 2) % (stages * v) != 0) {
          took(3, "pp x virtual_stages must divide the layers, " + std::to_string(layers_));
          continue;
        }
        one.embedding_is_layer = !divides;
        one.virtual_stages = static_cast<std::int32_t>(v);
        add_rest(one);
      }
    }
  }

  void add_rest(Candidate one) {
    const bool is_replicated = one.data * one.context > 1;
    for (std::size_t recompute = 0; recompute < kRecomputes.size(); ++recompute) {
      if (space_.fixed.contains("recompute") && base_.recompute != kRecomputes[recompute]) continue;
      for (std::int64_t zero = 0; zero <= (is_replicated ? 3 : 0); ++zero) {
        if (space_.fixed.contains("zero") && is_replicated && base_.zero != zero) continue;
        for (const bool split : {false, true}) {
          if (split && one.tensor == 1) continue;
          if (space_.fixed.contains("sequence_parallel") && one.tensor > 1 &&
              base_.sequence_parallel != split)
            continue;
          one.recompute = static_cast<std::int8_t>(recompute);
          one.zero = static_cast<std::int8_t>(zero);
          one.sequence_parallel = split;
          found_.push_back(one);
        }
      }
    }
  }

  const PlanSpace& space_;
  const Layout& base_;
  std::int64_t layers_;
  std::vector<Candidate> found_;
  int taken_at_ = -1;
  std::string taken_by_ = "a count of GPUs must be given";
};

}  // namespace

const std::vector<std::string>& searched_settings() {
  static const std::vector<std::string> names = {"tp",
                                                 "pp",
                                                 "dp",
                                                 "cp",
                                                 "ep",
                                                 "virtual_stages",
                                                 "micro_batch",
                                                 "schedule",
                                                 "recompute",
                                                 "zero",
                                                 "sequence_parallel"};
  return names;
}

void set_layout(const Candidate& candidate, Layout& layout) {
  layout.tensor = candidate.tensor, layout.pipeline = candidate.pipeline;
  layout.data = candidate.data, layout.context = candidate.context;
  layout.expert = candidate.expert, layout.virtual_stages = candidate.virtual_stages;
  layout.micro_batch = candidate.micro_batch;
  layout.schedule = kPlannedSchedules[static_cast<std::size_t>(candidate.schedule)].name;
  layout.recompute = kRecomputes[static_cast<std::size_t>(candidate.recompute)];
  layout.zero = candidate.zero;
  layout.sequence_parallel = candidate.sequence_parallel;
  layout.embedding_is_layer = candidate.embedding_is_layer;
}

std::vector<Candidate> candidates_of(const PlanSpace& space) { return Enumeration(space).run(); }

std::vector<Layout> all_layouts(const PlanSpace& space) {
  std::vector<Layout> layouts;
  for (const Candidate& candidate : candidates_of(space)) {
    layouts.push_back(space.step.layout);
    set_layout(candidate, layouts.back());
  }
  return layouts;
}

}  // namespace foretrace
