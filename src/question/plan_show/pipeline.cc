#include "foretrace/question/pipeline.h"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/fields/assignments.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/simulate.h"
#include "generate/generate.h"

namespace foretrace {
namespace {

// The settings of a pipeline beside its schedule: the cost of its passes.

/// Times and bytes are those of a rank with an equal share of the model, for one micro-batch. They
/// are divided among its chunks equally, or by their layers.
class PipelineTimes : public Described {
 public:
  void describe(Fields& fields) override;
  /// Throws Error, beginning with the setting. Adds the assumptions it made to `assumptions`.
  PipelineCosts costs_for(const Schedule& schedule, std::vector<std::string>& assumptions) const;

 private:
  /// Share of the model in each stage, 1 on average.
  std::vector<double> shares(const Schedule& schedule) const;
  void set_backward(StageCosts& rank, const Schedule& schedule,
                    std::vector<std::string>& assumptions) const;

  Nanoseconds forward_ = 1ms;
  std::optional<Nanoseconds> backward_, weight_;
  Nanoseconds recompute_{0}, communication_{0}, all_reduce_{0}, update_{0};
  double overlap_ = 0;
  Bytes activations_{}, activations_for_weight_{}, parameters_{};
  std::optional<std::int64_t> layers_;
  std::string layers_of_stages_;
};

/// Reads the numbers of "7+7+6+6". Throws Error unless all are whole and at least 1.
std::vector<double> read_layers(const std::string& text) {
  std::vector<double> layers;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, '+');) {
    const bool is_whole = !number.empty() && number.size() < 7 &&
                          number.find_first_not_of("0123456789") == std::string::npos;
    layers.push_back(is_whole ? std::stod(number) : 0);
    if (layers.back() < 1)
      throw Error(fmt::format(
          "layers_per_stage: must be whole numbers of at least 1, as in 7+7+6+6, got '{}'", text));
  }
  return layers;
}

void PipelineTimes::describe(Fields& fields) {
  fields.time("forward", forward_, "Forward pass of a micro-batch on a rank", 0ns);
  fields.optional_time("backward", backward_,
                       "Backward pass; if weight is given, only the input gradient. By default "
                       "twice forward, or as long as forward if weight is given",
                       0ns);
  fields.optional_time("weight", weight_,
                       "Weight gradient, which unsplit schedules run with the input gradient; by "
                       "default part of backward, half of it if the schedule splits it",
                       0ns);
  fields.time("communication", communication_, "A send to the next or previous stage", 0ns);
  fields.time("recompute", recompute_, "Repeated forward pass before a backward pass", 0ns);
  fields.time("all_reduce", all_reduce_, "All-reduce of the gradients of a rank", 0ns);
  fields.time("update", update_, "Update of the weights of a rank", 0ns);
  fields.number("overlap", overlap_,
                "Share of time that overlapped forward and backward passes save", 0, 0.99);
  fields.bytes("activations", activations_,
               "Activations kept for a micro-batch until its input gradient");
  fields.bytes("activations_for_weight", activations_for_weight_,
               "Part of the activations kept until its weight gradient");
  fields.bytes("parameters", parameters_, "One version of the weights of a rank");
  fields.optional_integer("layers", layers_,
                          "Layers of the model, to check that all stages get the same number", 1);
  fields.text("layers_per_stage", layers_of_stages_,
              "Layers of each stage, if stages are uneven: 7+7+6+6");
}

std::vector<double> PipelineTimes::shares(const Schedule& schedule) const {
  const auto stages = static_cast<std::size_t>(schedule.stages);
  if (layers_of_stages_.empty()) {
    if (layers_ && *layers_ % schedule.stages != 0)
      throw Error(
          fmt::format("layers: must be a multiple of the {} stages of the model, got {}; "
                      "layers_per_stage=7+7+6+6 makes uneven stages",
                      schedule.stages, *layers_));
    return std::vector<double>(stages, 1);
  }
  std::vector<double> shares = read_layers(layers_of_stages_);
  if (shares.size() != stages)
    throw Error(
        fmt::format("layers_per_stage: must have {} numbers, got {}", stages, shares.size()));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (layers_ && static_cast<double>(*layers_) != sum)
    throw Error(fmt::format("layers_per_stage: must have {} layers in all, got {}", *layers_,
                            to_text(sum)));
  for (double& share : shares) share *= static_cast<double>(stages) / sum;
  return shares;
}

void PipelineTimes::set_backward(StageCosts& rank, const Schedule& schedule,
                                 std::vector<std::string>& assumptions) const {
  if (weight_) {
    rank.weight_gradient = *weight_;
    rank.input_gradient = backward_.value_or(forward_);
    if (!backward_) assumptions.push_back("an input gradient takes as long as a forward pass");
    return;
  }
  const Nanoseconds backward = backward_.value_or(2 * forward_);
  if (!backward_) assumptions.push_back("a backward pass takes twice as long as a forward pass");
  if (schedule.splits_backward) {
    rank.weight_gradient = backward / 2;
    assumptions.push_back(
        "half of a backward pass is its weight gradient; weight=TIME changes that");
  }
  rank.input_gradient = backward - rank.weight_gradient;
}

PipelineCosts PipelineTimes::costs_for(const Schedule& schedule,
                                       std::vector<std::string>& assumptions) const {
  if (activations_for_weight_ > activations_)
    throw Error(
        fmt::format("activations_for_weight: must not be more than activations, got {} of {}",
                    to_text(activations_for_weight_), to_text(activations_)));
  StageCosts rank{.forward = forward_, .recompute = recompute_};
  set_backward(rank, schedule, assumptions);
  PipelineCosts costs{.stages = {}, .overlap = overlap_};
  for (const double relative : shares(schedule)) {
    const double share = relative / schedule.chunks;
    costs.stages.push_back({.forward = scaled(rank.forward, share),
                            .input_gradient = scaled(rank.input_gradient, share),
                            .weight_gradient = scaled(rank.weight_gradient, share),
                            .recompute = scaled(rank.recompute, share),
                            .send_forward = communication_,
                            .send_backward = communication_,
                            .all_reduce = scaled(all_reduce_, share),
                            .update = scaled(update_, share),
                            .activations = scaled(activations_, share),
                            .activations_for_weight = scaled(activations_for_weight_, share),
                            .parameters = scaled(parameters_, share)});
  }
  if (communication_ > 0ns) {
    assumptions.push_back("sends do not occupy their ranks");
    if (sends_queue(schedule, costs))
      assumptions.push_back("sends from one rank to another run one after the other");
  }
  return costs;
}

/// Most passes of a pipeline: more than a page or terminal shows, and some hundred MB of tasks.
constexpr std::int64_t kMaxPasses = 500'000;

/// Settings of a schedule's rule, then those of the times.
class ScheduleSettings : public Described {
 public:
  explicit ScheduleSettings(ScheduleRule* rule) : rule_(rule) {}
  void describe(Fields& fields) override {
    if (rule_) rule_->describe(fields);
    times.describe(fields);
  }
  PipelineTimes times;

 private:
  ScheduleRule* rule_;
};

struct ConfiguredSchedule {
  std::unique_ptr<ScheduleRule> rule;
  std::unique_ptr<ScheduleSettings> settings;
  Schedule schedule;
};

Schedule read_schedule(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(fmt::format("cannot open '{}'", file));
  std::ostringstream text;
  text << in.rdbuf();
  return within(file, [&] { return schedule_from_csv(text.str()); });
}

/// Reads the schedule and the times of a question. If there is a file, the name may be left out,
/// which shows in a '=' before any ':'.
ConfiguredSchedule configure(const PipelineQuestion& question) {
  ConfiguredSchedule configured;
  const std::size_t colon = question.plan.find(':');
  const bool has_no_name = !question.file.empty() && question.plan.find('=') < colon;
  const std::string name = has_no_name ? "" : question.plan.substr(0, colon);
  std::string settings = has_no_name ? question.plan : "";
  if (!has_no_name && colon != std::string::npos) settings = question.plan.substr(colon + 1);
  if (question.file.empty()) configured.rule = find_schedule(name);
  configured.settings = std::make_unique<ScheduleSettings>(configured.rule.get());
  within(name.empty() ? "times" : name, [&] {
    read_assigned(settings, *configured.settings);
    if (!configured.rule) return;
    if (configured.rule->stages * configured.rule->micro_batches > kMaxPasses)
      throw Error(fmt::format(
          "micro_batches: must be fewer, as stages times micro-batches may be at most {}",
          kMaxPasses));
    configured.schedule = configured.rule->make();
  });
  if (!configured.rule) configured.schedule = read_schedule(question.file);
  return configured;
}

char letter_of(ActionKind kind) {
  constexpr char kLetters[] = {'F', 'B', 'I', 'W', 'R', 'U'};
  return kLetters[static_cast<std::size_t>(kind)];
}

std::vector<PipelineAction> actions_of(const Schedule& schedule, std::size_t rank,
                                       const std::vector<TaskId>& tasks, const Timeline& timeline) {
  std::vector<PipelineAction> actions;
  for (std::size_t slot = 0; slot < tasks.size(); ++slot) {
    const Action& action = schedule.orders[rank][slot];
    if (tasks[slot] == kNoTask || action.kind == ActionKind::reduce) continue;
    const Nanoseconds start = timeline.start[index(tasks[slot])];
    const Nanoseconds finish = timeline.finish[index(tasks[slot])];
    if (action.kind == ActionKind::update && start == finish) continue;
    actions.push_back({.name = to_string(action),
                       .letter = letter_of(action.kind),
                       .alternate = (action.pipeline + action.stage / schedule.ranks) % 2 == 1,
                       .stage = action.stage,
                       .micro_batch = action.micro_batch,
                       .version = action.version,
                       .pipeline = action.pipeline,
                       .start = start,
                       .finish = finish});
  }
  return actions;
}

}  // namespace

PipelineReport show_pipeline(const PipelineQuestion& question) {
  const ConfiguredSchedule configured = configure(question);
  const Schedule& schedule = configured.schedule;
  PipelineReport report;
  report.schedule = schedule.name;
  report.settings_json = json_line(write_json(*configured.settings));
  report.stages = schedule.stages;
  report.chunks = schedule.chunks;
  report.micro_batches = schedule.micro_batches;
  const PipelineCosts costs = within(schedule.name, [&] {
    return configured.settings->times.costs_for(schedule, report.assumptions);
  });
  const PipelineRun run = run_pipeline(schedule, costs);
  const PipelineGraph built = build_pipeline(schedule, costs);
  const Timeline timeline = simulate(built.graph, {.reasons = false, .memory = false});
  CHECK(timeline.length == run.makespan);
  report.makespan = run.makespan;
  report.bubble_rate = run.bubble_rate();
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const RankRun& rank_run = run.ranks[rank];
    report.ranks.push_back({.actions = actions_of(schedule, rank, built.tasks[rank], timeline),
                            .busy = rank_run.busy,
                            .span = rank_run.span(),
                            .peak_in_flight = rank_run.peak_in_flight,
                            .versions = rank_run.versions,
                            .peak_activations = rank_run.peak_activations,
                            .parameters = rank_run.parameters});
  }
  return report;
}

std::string pipeline_csv(const PipelineQuestion& question) {
  return schedule_to_csv(configure(question).schedule);
}

bool write_schedule_help(const std::string& name, std::ostream& out) {
  for (const ScheduleEntry& entry : schedules()) {
    if (entry.name != name) continue;
    const auto rule = entry.make();
    ScheduleSettings settings(rule.get());
    out << entry.name << "\n  " << entry.summary << ".\n\n";
    write_help(settings, out);
    return true;
  }
  return false;
}

}  // namespace foretrace
