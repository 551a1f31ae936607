#include "plan/layouts/candidates.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <memory>
#include <utility>

#include "base/wording.h"
#include "foretrace/error.h"
#include "plan/search.h"
#include "schedule/schedule.h"

namespace foretrace {
namespace {

constexpr std::array kRecomputes = {"none", "selective", "full"};

bool is_offered(std::string_view name, const ScheduleRule& rule) {
  Layout layout;
  layout.pipeline = 2, layout.virtual_stages = rule.chunks, layout.schedule = name;
  return std::ranges::any_of(launch_programs(),
                             [&](const LaunchProgram& one) { return one.runs(layout); });
}

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
        throw Error(fmt::format("--fix: must be one of {}, got {}", joined(searched), name));
    }
    const bool is_fixed = space.fixed.contains("schedule");
    const auto names = planned_schedules(is_fixed || space.all_schedules);
    if (is_fixed && std::ranges::find(names, base_.schedule) == names.end())
      throw Error(
          fmt::format("--fix: schedule: must be one of {}, got {}", joined(names), base_.schedule));
    for (std::size_t i = 0; i < schedules().size(); ++i) {
      const ScheduleEntry& entry = schedules()[i];
      if (std::ranges::find(names, entry.name) == names.end()) continue;
      auto rule = entry.make();
      // 1F1B with several chunks is the interleaved schedule.
      const bool is_named =
          base_.schedule == entry.name || (rule->serves_any_chunks() && base_.schedule == "1f1b");
      if (is_named || !is_fixed)
        schedules_.emplace_back(static_cast<std::int8_t>(i), std::move(rule));
    }
  }

  std::vector<Candidate> run() {
    for (const std::int64_t gpus : space_.gpus) {
      for (const std::int64_t tensor : values_of("tp", base_.tensor, divisors(gpus))) {
        for (const std::int64_t context : values_of("cp", base_.context, divisors(gpus / tensor)))
          add_pipelines(gpus, tensor, context);
      }
    }
    if (found_.empty()) throw Error("no layout is left: " + constraint_);
    return std::move(found_);
  }

 private:
  /// Returns the searched values, or only the fixed value if the setting is fixed; empty if that
  /// value is not among the searched ones.
  std::vector<std::int64_t> values_of(const char* name, std::int64_t value,
                                      std::vector<std::int64_t> searched) {
    if (!space_.fixed.contains(name)) return searched;
    if (std::ranges::find(searched, value) != searched.end()) return {value};
    note_constraint(
        0, fmt::format("{} must be one of {}, got {}", name, joined_numbers(searched), value));
    return {};
  }

  static std::string joined_numbers(const std::vector<std::int64_t>& numbers) {
    std::vector<std::string> texts;
    for (const std::int64_t number : numbers) texts.push_back(std::to_string(number));
    return joined(texts);
  }

  /// Remembers the constraint to report if no layout is left: the first of those that the search
  /// reached last.
  void note_constraint(int order, const std::string& constraint) {
    if (order <= constraint_order_) return;
    constraint_order_ = order, constraint_ = constraint;
  }

  void add_pipelines(std::int64_t gpus, std::int64_t tensor, std::int64_t context) {
    for (const std::int64_t pipeline :
         values_of("pp", base_.pipeline, divisors(gpus / tensor / context))) {
      const std::int64_t data = gpus / tensor / context / pipeline;
      if (space_.fixed.contains("dp") && data != base_.data) {
        note_constraint(
            0, fmt::format("tp x pp x dp x cp must be equal to the number of GPUs, {}", gpus));
        continue;
      }
      for (const std::int64_t expert :
           values_of("ep", base_.expert, divisors(data * context * tensor))) {
        try {
          space_.step.workload->layers({.tensor = tensor,
                                        .context = context,
                                        .expert = expert,
                                        .expert_tensor = expert == 1 ? tensor : 1});
        } catch (const Error& error) {
          note_constraint(1, error.what());
          continue;
        }
        Candidate candidate;
        candidate.tensor = static_cast<std::int32_t>(tensor);
        candidate.pipeline = static_cast<std::int32_t>(pipeline);
        candidate.data = static_cast<std::int32_t>(data);
        candidate.context = static_cast<std::int32_t>(context);
        candidate.expert = static_cast<std::int32_t>(expert);
        add_batches(candidate);
      }
    }
  }

  void add_batches(Candidate candidate) {
    if (base_.global_batch % candidate.data != 0)
      return note_constraint(2, fmt::format("--global-batch: must be a multiple of dp, {}, got {}",
                                            candidate.data, base_.global_batch));
    const std::int64_t samples = base_.global_batch / candidate.data;
    const auto add = [&](std::int64_t size) {
      candidate.micro_batch = static_cast<std::int32_t>(size);
      add_schedules(candidate, samples / size);
    };
    if (!space_.fixed.contains("micro_batch"))
      for (std::int64_t size = 1; samples % size == 0; size *= 2) add(size);
    else if (samples % base_.micro_batch == 0)
      add(base_.micro_batch);
    else
      note_constraint(
          2, fmt::format("--global-batch: must be a multiple of dp x micro_batch, {}, got {}",
                         candidate.data * base_.micro_batch, base_.global_batch));
  }

  void add_schedules(Candidate candidate, std::int64_t micro_batches) {
    if (candidate.pipeline == 1) return add_chunks(candidate, 1, micro_batches);
    for (const auto& [number, rule] : schedules_) {
      rule->stages = candidate.pipeline, rule->micro_batches = micro_batches;
      const std::int64_t most =
          rule->serves_any_chunks() ? layers_ / candidate.pipeline : rule->chunks;
      try {
        rule->check();
      } catch (const Error& error) {
        note_constraint(3, error.what());
        continue;
      }
      candidate.schedule = number;
      for (std::int64_t v = rule->chunks; v <= most; ++v) add_chunks(candidate, v, micro_batches);
    }
  }

  void add_chunks(Candidate candidate, std::int64_t chunks, std::int64_t micro_batches) {
    const std::int64_t stages = candidate.pipeline;
    if (space_.fixed.contains("virtual_stages") && chunks != base_.virtual_stages) return;
    if (chunks > 1 && micro_batches % stages != 0)
      return note_constraint(
          4, fmt::format("virtual stages need micro-batches in multiples of pp, {}, got {}", stages,
                         micro_batches));
    const bool divides = layers_ % (stages * chunks) == 0;
    if (!divides && (layers_ + 2) % (stages * chunks) != 0)
      return note_constraint(
          4, fmt::format("pp x virtual_stages must divide the layers, {}", layers_));
    candidate.embedding_is_layer = !divides;
    candidate.virtual_stages = static_cast<std::int32_t>(chunks);
    add_memory_settings(candidate);
  }

  void add_memory_settings(Candidate candidate) {
    const bool is_replicated = candidate.data * candidate.context > 1;
    for (std::size_t recompute = 0; recompute < kRecomputes.size(); ++recompute) {
      if (space_.fixed.contains("recompute") && base_.recompute != kRecomputes[recompute]) continue;
      for (std::int64_t zero = 0; zero <= (is_replicated ? 3 : 0); ++zero) {
        if (space_.fixed.contains("zero") && is_replicated && base_.zero != zero) continue;
        for (const bool split : {false, true}) {
          if (split && candidate.tensor == 1) continue;
          if (space_.fixed.contains("sequence_parallel") && candidate.tensor > 1 &&
              base_.sequence_parallel != split)
            continue;
          candidate.recompute = static_cast<std::int8_t>(recompute);
          candidate.zero = static_cast<std::int8_t>(zero);
          candidate.sequence_parallel = split;
          found_.push_back(candidate);
        }
      }
    }
  }

  const PlanSpace& space_;
  const Layout& base_;
  std::int64_t layers_;
  /// By number in schedules().
  std::vector<std::pair<std::int8_t, std::unique_ptr<ScheduleRule>>> schedules_;
  std::vector<Candidate> found_;
  int constraint_order_ = -1;
  std::string constraint_ = "a count of GPUs must be given";
};

}  // namespace

std::vector<std::string_view> planned_schedules(bool all) {
  std::vector<std::string_view> names;
  for (const ScheduleEntry& entry : schedules()) {
    const auto rule = entry.make();
    if (rule->flushes() && (all || is_offered(entry.name, *rule))) names.push_back(entry.name);
  }
  return names;
}

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

Layout layout_of(const Candidate& candidate, const Layout& base) {
  Layout layout = base;
  layout.tensor = candidate.tensor, layout.pipeline = candidate.pipeline;
  layout.data = candidate.data, layout.context = candidate.context;
  layout.expert = candidate.expert, layout.virtual_stages = candidate.virtual_stages;
  layout.micro_batch = candidate.micro_batch;
  layout.schedule = candidate.schedule < 0
                        ? Layout().schedule
                        : schedules()[static_cast<std::size_t>(candidate.schedule)].name;
  layout.recompute = kRecomputes[static_cast<std::size_t>(candidate.recompute)];
  layout.zero = candidate.zero;
  layout.sequence_parallel = candidate.sequence_parallel;
  layout.embedding_is_layer = candidate.embedding_is_layer;
  if (layout.data * layout.context % layout.replicas != 0) layout.replicas = 1;
  if (layout.expert_tensor > 1) layout.expert_tensor = layout.tensor;
  if (layout.data * layout.context * layout.tensor % (layout.expert * layout.of_expert()) != 0)
    layout.expert_tensor = 1;
  if (layout.pipeline == 1 || layout.micro_batches() % layout.flushes != 0) layout.flushes = 1;
  return layout;
}

std::vector<Candidate> candidates_of(const PlanSpace& space) { return Enumeration(space).run(); }

std::vector<Layout> all_layouts(const PlanSpace& space) {
  std::vector<Layout> layouts;
  for (const Candidate& candidate : candidates_of(space))
    layouts.push_back(layout_of(candidate, space.step.layout));
  return layouts;
}

}  // namespace foretrace
