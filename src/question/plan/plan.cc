#include "foretrace/question/plan.h"

#include <algorithm>
#include <atomic>
#include <fmt/core.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields/assignments.h"
#include "base/files/json_file.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/version.h"
#include "launch/launch.h"
#include "plan/plan.h"
#include "plan/search.h"
#include "plan/strategy.h"
#include "question/generate/measured_rows.h"
#include "question/plan/plan_recorded.h"
#include "question/plan/resumable_plan.h"
#include "question/sweep/answer_file.h"

namespace foretrace {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr AnswerKind kPlanAnswers = {"foretrace.plan.bounds/2", "plan"};

std::string line_of(const Ordered& json) { return shown_answer(json_line(json)) + '\n'; }

/// Settings that all layouts share, without those that are searched.
nlohmann::json shared_settings(const PlanSpace& space) {
  Layout layout = space.step.layout;
  nlohmann::json settings = write_json(layout);
  for (const std::string& name : searched_settings()) {
    if (!space.fixed.contains(name)) settings.erase(name);
  }
  settings.erase("embedding_is_layer");  // Follows from the number of stages.
  return settings;
}

/// Everything that bounds depend on. Files are identified by their contents, not by their paths.
Ordered question_json(const PlanQuestion& question, const PlanSpace& space) {
  Ordered json = {{"model", write_json(*find_workload(question.model))},
                  {"machine", hash_digits(json_line(cluster_json(question.machine)))},
                  {"settings", shared_settings(space)},
                  {"gpus", space.gpus},
                  {"fixed", space.fixed},
                  {"all_schedules", space.all_schedules},
                  {"memory_bytes", space.limit().count}};
  if (!question.calibrate.empty())
    json["calibrate"] = {{"sha256", sha256_of_file(question.calibrate)},
                         {"rows", question.calibrate_rows},
                         {"only", question.only}};
  return json;
}

std::string header_line(const Ordered& question, std::uint64_t blocks, const Shard& shard) {
  Ordered line = {{"schema", kPlanAnswers.schema}, {"tool", {{"version", kVersion}}}};
  line["points"] = blocks;
  const std::string identity = hash_digits(json_line(line) + json_line(question));
  line["plan"] = identity;
  if (shard.count > 1) line["shard"] = {{"number", shard.number}, {"of", shard.count}};
  line["question"] = question;
  return line_of(line);
}

/// The reason why a file with this first line belongs to another question than ours; empty if it
/// belongs to ours.
std::string difference_of_plans(const std::string& our_header, const std::string& file_header) {
  const Ordered ours = parse_json<Ordered>(our_header);
  const Ordered other = try_parse_json<Ordered>(file_header);
  if (!other.is_object()) return "its first line is not JSON";
  if (other.value("plan", Ordered()) == ours["plan"]) return {};
  if (other.value("tool", Ordered()) != ours["tool"])
    return "it was written by another version of this program";
  const Ordered question = other.value("question", Ordered(Ordered::object()));
  constexpr std::pair<const char*, const char*> kDifferences[] = {
      {"model", "it is about another model"},
      {"machine", "it is about another machine"},
      {"gpus", "it was asked with other --gpus"},
      {"fixed", "it was asked with another --fix"},
      {"all_schedules", "one of them was asked with --all-schedules"},
      {"settings", "it was asked with another --global-batch, --layout or --fix"},
      {"memory_bytes", "it was asked with another --memory-limit"}};
  for (const auto& [key, difference] : kDifferences) {
    if (question.is_object() && question.value(key, Ordered()) != ours["question"][key])
      return difference;
  }
  return "it was asked with another --calibrate";
}

Ordered bound_json(const LayoutBound& bound) {
  if (!bound.is_served) return {};
  if (!bound.fits) return Ordered::array({bound.reserved});
  const PriceParts& parts = bound.parts;
  return Ordered::array({bound.reserved, bound.us, parts.bubble, parts.network, parts.kernels});
}

std::string block_line(std::size_t block, const std::vector<LayoutBound>& bounds) {
  Ordered line = {{"point", block}, {"bounds", Ordered::array()}};
  for (const LayoutBound& bound : bounds) line["bounds"].push_back(bound_json(bound));
  line["sum"] = hash_digits(json_line(line));
  return line_of(line);
}

LayoutBound read_bound(const Ordered& json) {
  LayoutBound bound;
  bound.is_served = !json.is_null();
  if (!bound.is_served) return bound;
  if (!json.is_array() || !json.at(0).is_number_integer()) throw Error("is not a bound");
  bound.reserved = json.at(0).get<std::int64_t>();
  bound.fits = json.size() > 1;
  if (!bound.fits) return bound;
  bound.us = json.at(1), bound.parts = {json.at(2), json.at(3), json.at(4)};
  return bound;
}

std::vector<LayoutBound> read_block(std::uint64_t block, std::size_t layouts,
                                    std::string_view line) {
  try {
    auto json = try_parse_json<Ordered>(line);
    const Ordered sum = json.at("sum");
    json.erase("sum");
    // A digit of a bound that a disk changed would still be a number.
    if (sum != hash_digits(json_line(json))) throw Error("is damaged: its sum does not match");
    std::vector<LayoutBound> bounds;
    if (json.at("point") != block) throw Error("is another block");
    for (const Ordered& bound : json.at("bounds")) bounds.push_back(read_bound(bound));
    if (bounds.size() != layouts) throw Error("has other layouts");
    return bounds;
  } catch (const nlohmann::json::exception&) {
    throw Error("is not a block of bounds");
  }
}

/// Like plan_layouts(), but keeps its bounds in a file; see resumable_plan().
std::optional<PlanOutcome> resumable_search(const PlanQuestion& question, const PlanSpace& space,
                                            const StepCalibration& calibration,
                                            const PlanFileOptions& file_options,
                                            const PlanEvents& events,
                                            const std::atomic<bool>& stop) {
  const Shard& shard = file_options.shard;
  PlanSearch search(space, calibration);
  if (search.blocks() < shard.count)
    throw Error(fmt::format(
        "--shard: must be one of at most {}, because there are no more blocks of layouts",
        search.blocks()));
  const std::string header = header_line(question_json(question, space), search.blocks(), shard);
  AnswerFile file(
      path_of_shard(file_options.path, shard),
      {.kind = kPlanAnswers,
       .header = header,
       .difference = [&](const std::string& line) { return difference_of_plans(header, line); },
       .on_known_line =
           [&](std::uint64_t block, std::string_view line) {
             search.set(block, read_block(block, search.layouts(block), line));
           },
       .option = "--keep"},
      file_options.fresh);
  const auto [first, end] = file.points();
  events.begin(file.next() - first, end - file.next());
  search.find(
      file.next(), end,
      [&](std::size_t block, const std::vector<LayoutBound>& bounds) {
        file.add(block_line(block, bounds));
        file.flush();
        events.take();
      },
      stop);
  if (stop || shard.count > 1) return std::nullopt;
  return search.outcome();
}

constexpr double kPricedSteps = 1000;  ///< Steps that a reported price is for.

/// The settings that a text names, except those that are never searched.
std::set<std::string> named_settings(const std::string& text) {
  if (text.empty()) return {};
  Layout layout;
  std::set<std::string> names;
  const nlohmann::json settings = read_assignments(text, layout);
  for (const auto& [name, value] : settings.items()) names.insert(name);
  for (const char* common :
       {"precision", "fused_attention", "attention_kernel", "pointwise", "dispatcher",
        "overlap_dispatch", "fused_loss", "lora", "host_checkpoints", "host_optimizer", "overlap",
        "global_batch", "embedding_is_layer", "blocking_launches", "cuda_graphs"})
    names.erase(common);
  return names;
}

PlanStrategy plan_strategy(const Strategy& strategy, const StrategyPlan& plan,
                           const LayerCosts& layers) {
  PlanStrategy answer{.name = std::string(strategy.name), .time = from_microseconds(plan.us)};
  answer.micro_batch = plan.micro_batch, answer.schedule = plan.schedule;
  answer.recomputes = plan.recomputes;
  for (const StrategyStage& stage : plan.stages) {
    PlanStages added{.first = layers[stage.begin].name,
                     .last = layers[stage.end - 1].name,
                     .layers = stage.end - stage.begin,
                     .gpus = stage.replicas,
                     .time = from_microseconds(stage.us)};
    PlanStages* const previous = answer.stages.empty() ? nullptr : &answer.stages.back();
    if (previous != nullptr && previous->layers == added.layers && previous->gpus == added.gpus &&
        previous->time == added.time)
      previous->last = added.last, ++previous->stages;
    else
      answer.stages.push_back(std::move(added));
  }
  return answer;
}

class Planner {
 public:
  explicit Planner(const PlanQuestion& question) : question_(question) {
    if (!question_.config.empty()) read_config_file();
    space_.step.name = question_.model;
    space_.step.workload = find_workload(question_.model);
    space_.step.platform = find_platform(question.machine);
    space_.all_schedules = question.all_schedules;
    space_.memory = question.memory, space_.shown = question.top;
    question.training.is_asked();
    read_layouts();
    if (!question.training.prices.empty()) {
      const GpuPrice price = price_of(question.training.prices, space_.step.platform.device.name);
      space_.gpu_hour = price.per_hour, report_.currency = price.currency;
    }
  }

  std::string calibration_options() const {
    if (question_.calibrate.empty()) return "";
    std::string options = " --calibrate " + question_.calibrate;
    if (question_.calibrate_rows >= 0)
      options += fmt::format(" --calibrate-rows {}", question_.calibrate_rows);
    for (const std::string& rows : question_.only) options += " --only " + rows;
    return options;
  }

  /// Returns nullopt if the search has no outcome.
  using Search = std::function<std::optional<PlanOutcome>(const PlanSpace& space,
                                                          const StepCalibration& calibration)>;
  std::optional<PlanReport> run(const Search& search) {
    GenerateQuestion steps{.model = question_.model, .machine = question_.machine};
    steps.layout = question_.layout, steps.only = question_.only;
    steps.calibrate = question_.calibrate, steps.calibrate_rows = question_.calibrate_rows;
    const StepCalibration calibration = calibrate_steps(steps, report_.assumptions).calibration;
    if (!question_.measured.empty()) {
      steps.against = question_.measured;
      report_.measured = generate_step(steps);
    }
    const std::optional<PlanOutcome> result = outcome_by_strategy(calibration, search);
    if (!result) return std::nullopt;
    const PlanOutcome& outcome = *result;
    report_.model = question_.model, report_.machine = question_.machine;
    report_.global_batch = space_.step.layout.global_batch;
    report_.limit = space_.limit();
    report_.layouts = outcome.candidates, report_.replayed = outcome.replayed;
    for (const PlannedLayout& planned : outcome.best) report_.ranked.push_back(row_of(planned));
    if (report_.strategy && report_.strategy->is_ranked)
      report_.ranked.front().role = report_.strategy->name;
    for (const PlannedLayout& planned : outcome.plain)
      add_with_role(row_of(planned), "plain data parallelism", report_.ranked);
    if (user_layout_ && !outcome.best.empty())
      add_with_role(
          row_of(planned_layout(space_, *user_layout_, calibration, outcome.best.front())), "yours",
          report_.ranked);
    if (!report_.ranked.empty() && report_.ranked.front().fits)
      report_.command =
          fmt::format("foretrace generate {} --machine {} --layout {}{}", question_.model,
                      question_.machine, report_.ranked.front().layout, calibration_options());
    for (const PlannedLayout& planned : outcome.front) report_.front.push_back(row_of(planned));
    for (const auto& [loss, count] : outcome.losses)
      report_.losses.emplace_back(to_string(loss), count);
    for (std::size_t i = 0; i < outcome.launched.size(); ++i)
      report_.launches.push_back(launch_of(*space_.programs[i], outcome.launched[i]));
    add_training();
    report_.assumptions.emplace_back(
        "settings of programs are those of their sources of 2026 (torchtitan: 0.2.2); "
        "micro-batches "
        "are powers of two");
    return std::move(report_);
  }

 private:
  /// Takes from the configuration file what the question does not say.
  void read_config_file() {
    file_ = read_launch_file(question_.config);
    const bool counts = question_.gpus.size() == 1 || !file_->settings.gpus;
    const std::int64_t gpus = counts && !question_.gpus.empty() ? question_.gpus.front() : 0;
    question_.layout = launch_layout(*file_, question_.layout, gpus);
    question_.model = launch_model(*file_, question_.model);
    space_.programs = {file_->program};
    report_.assumptions = file_->settings.notes;
  }

  PlanReport::Launch launch_of(const LaunchProgram& program,
                               const std::optional<PlannedLayout>& planned) const {
    PlanReport::Launch launch{.program = std::string(program.name), .row = {}, .flags = {}};
    if (!planned) return launch;
    launch.row = row_of(*planned);
    if (program.has_flags) launch.flags = flags_of(program, planned->layout);
    if (!file_) return launch;
    try {
      launch.file = within(file_->path, [&] {
        return changed_text(file_->config, program.changes(planned->layout));
      });
    } catch (const Error& error) {
      launch.no_file = error.what();
    }
    return launch;
  }

  /// Adds the whole run with the fastest layout.
  void add_training() {
    if (report_.ranked.empty()) return;
    const PlanRow& row = report_.ranked.front();
    const double tokens = static_cast<double>(report_.global_batch) *
                          static_cast<double>(space_.step.workload->tokens());
    report_.training = run_of(question_.training, {.time = row.time,
                                                   .lower = row.lower,
                                                   .upper = row.upper,
                                                   .gpus = row.gpus,
                                                   .device = space_.step.platform.device.name,
                                                   .tokens = tokens});
  }

  /// Reads the settings that all layouts share: those of the user's own layout, overridden by the
  /// fixed ones.
  void read_layouts() {
    Layout& base = space_.step.layout;
    base.precision = space_.step.platform.device.usual_precision();
    if (!question_.layout.empty()) {
      within("--layout", [&] { read_assigned(question_.layout, base); });
      if (question_.global_batch > 0) base.global_batch = question_.global_batch;
      within("--layout", [&] { base.check(); });
      user_layout_ = base;
    }
    if (question_.global_batch > 0) base.global_batch = question_.global_batch;
    if (!question_.fix.empty()) within("--fix", [&] { read_assigned(question_.fix, base); });
    space_.fixed = named_settings(question_.fix);
    if (base.global_batch == 1 && question_.global_batch != 1)
      throw Error("--global-batch: must be given, the samples of a step on all GPUs together");
    space_.gpus = question_.gpus;
    if (space_.gpus.empty() && user_layout_) space_.gpus = {user_layout_->devices()};
    if (space_.gpus.empty()) throw Error("--gpus: must be given, such as 64 or 8..1024");
  }

  std::optional<PlanOutcome> outcome_by_strategy(const StepCalibration& calibration,
                                                 const Search& search) {
    const Strategy& strategy = within(
        "--strategy", [&]() -> const Strategy& { return find_strategy(question_.strategy); });
    if (strategy.plan == nullptr) return search(space_, calibration);
    StrategyOutcome planned = plan_by(strategy, space_, calibration);
    report_.strategy = plan_strategy(strategy, planned.plan, planned.layers);
    report_.strategy->is_ranked = planned.is_layout;
    report_.assumptions.push_back(fmt::format(
        "{} plans by its own model, with layers as `generate` prices them{}", question_.strategy,
        planned.is_layout ? ""
                          : "; its stages do not form a layout that can be priced, so "
                            "only plain data parallelism is ranked"));
    return std::move(planned.outcome);
  }

  PlanRow row_of(const PlannedLayout& planned) const {
    const PriceParts parts = parts_of(planned.price);
    PlanRow row;
    row.layout = layout_text(planned.layout), row.gpus = planned.layout.devices();
    row.time = from_microseconds(planned.price.us);
    row.lower = from_microseconds(planned.price.lower_us);
    row.upper = from_microseconds(planned.price.upper_us);
    row.bubble = from_microseconds(parts.bubble);
    row.network = from_microseconds(parts.network);
    row.kernels = row.time - row.bubble - row.network;
    row.reserved = planned.price.memory.reserved, row.fits = planned.fits;
    row.utilization = utilization_of(planned.price, planned.layout, space_.step.platform);
    row.tokens_per_second = static_cast<double>(planned.layout.global_batch) *
                            static_cast<double>(space_.step.workload->tokens()) /
                            (planned.price.us * 1e-6);
    row.is_covered = planned.price.is_covered, row.loss = to_string(planned.loss);
    if (space_.gpu_hour > 0) row.cost = planned.cost * kPricedSteps;
    return row;
  }

  PlanQuestion question_;
  std::optional<LaunchFile> file_;  ///< Of --config.
  PlanSpace space_;
  std::optional<Layout> user_layout_;
  PlanReport report_;
};

}  // namespace

void add_with_role(PlanRow row, const std::string& role, std::vector<PlanRow>& ranked) {
  const auto same = std::ranges::find_if(ranked, [&](const PlanRow& other) {
    return other.layout == row.layout && other.role.empty();
  });
  row.role = role;
  if (same == ranked.end())
    ranked.push_back(std::move(row));
  else
    same->role = role;
}

namespace {

void check(const PlanQuestion& question) {
  if (!question.config.empty() && names_trace(question.model))
    throw Error(
        fmt::format("--config: is for described models, and {} is a trace", question.model));
  if (question.model.empty() && question.config.empty())
    throw Error("plan: which MODEL? See `foretrace list models`");
  if (question.machine.empty())
    throw Error("--machine: must be given; see `foretrace list machines`");
}

}  // namespace

PlanReport plan(const PlanQuestion& question) {
  check(question);
  if (names_trace(question.model)) return plan_recorded(question);
  return Planner(question).run(plan_layouts).value();
}

std::optional<PlanReport> resumable_plan(const PlanQuestion& question,
                                         const PlanFileOptions& file_options,
                                         const PlanEvents& events, const std::atomic<bool>& stop) {
  check(question);
  if (names_trace(question.model))
    throw Error(fmt::format("--keep: is for described models, and {} is a trace", question.model));
  if (question.strategy != strategies().front().name)
    throw Error(
        fmt::format("--keep: is for the exhaustive search, got --strategy {}", question.strategy));
  return Planner(question).run([&](const PlanSpace& space, const StepCalibration& calibration) {
    return resumable_search(question, space, calibration, file_options, events, stop);
  });
}

void merge_plans(const std::vector<std::string>& files, const std::string& output) {
  merge_answers(files, output, kPlanAnswers, false);
}

}  // namespace foretrace
