#include "foretrace/ask/pipeline.h"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "ask/pipeline/times.h"
#include "base/fields/assignments.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "generate/generate.h"

namespace foretrace {
namespace {

/// Most passes of a pipeline: more than a page or terminal shows, and some hundred MB of tasks.
constexpr std::int64_t kMostPasses = 500'000;

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
    if (configured.rule->stages * configured.rule->micro_batches > kMostPasses)
      throw Error(fmt::format(
          "micro_batches: must be fewer, as stages times micro-batches may be at most {}",
          kMostPasses));
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
