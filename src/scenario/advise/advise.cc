// Advice: a baseline, what bounds it, what would help alone and together, and how fast its parts
// would have to be.

#include "foretrace/advise.h"

#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/machine.h"
#include "foretrace/peak.h"
#include "foretrace/simulate.h"
#include "scenario/advise/advised_job.h"
#include "scenario/advise/bounds.h"
#include "scenario/advise/joint_advice.h"
#include "scenario/advise/suggestions.h"
#include "scenario/advise/target.h"
#include "scenario/inputs.h"
#include "scenario/interval/ledger.h"

namespace foretrace {
namespace {

/// What is asked about one setting of a transform: its values are tried by replaying.
struct SettingQuestion {
  Vary vary;
  Scenario scenario;
};

bool is_setting(std::string_view name) { return name.find('=') != name.npos; }

/// A transform's setting without values gets a hint of its own.
void refuse_bare_setting(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('.'));
  const bool known = std::any_of(transforms().begin(), transforms().end(),
                                 [&](const TransformEntry& one) { return one.name == first; });
  if (known && first.size() < name.size())
    throw Error("say which values to try: " + std::string(name) + "=1..32");
}

SettingQuestion setting_question(const AdviceQuestion& asked, const AdviceTarget& target) {
  const std::size_t equals = asked.vary.find('=');
  SettingQuestion question;
  question.vary = {.setting = asked.vary.substr(0, equals),
                   .values = asked.vary.substr(equals + 1),
                   .until = "step_time <= " + to_exact_text(target.step_time)};
  question.scenario =
      scenario_with({question.vary.setting.substr(0, question.vary.setting.find('.'))});
  return question;
}

void check_question(const AdviceQuestion& question) {
  if (!question.vary.empty() && question.until.empty())
    throw Error("--vary: needs --until, which says what is to be reached");
  if (!question.until.empty())
    within("--until", [&] { return read_target(question.until, question.samples); });
  if (!question.vary.empty() && !is_setting(question.vary))
    within("--vary", [&] { refuse_bare_setting(question.vary); });
  if (is_setting(question.vary)) {
    within("--vary",
           [&] { scenario_with({question.vary.substr(0, question.vary.find_first_of(".="))}); });
  }
}

/// The job as it would run on another device: what is recorded then is the replay.
Inference moved(const Inference& inference, const std::string& machine, Notes& notes) {
  Inference other{.graph = inference.graph.clone(),
                  .recorded = {},
                  .notes = inference.notes,
                  .assumptions = inference.assumptions};
  Scenario scenario;
  scenario.machine = machine;
  const Applied applied = apply(scenario, other.graph);
  notes.merge(applied.notes);
  for (const std::string& assumption : applied.assumptions) other.assumptions.push_back(assumption);
  other.recorded = simulate(other.graph, {.reasons = false, .memory = true});
  const std::string name = find_device(machine).name;
  for (std::string& device : other.graph.device_names()) {
    if (!device.empty()) device = name;
  }
  return other;
}

void describe(const AdvisedJob& job, Advice& advice) {
  const Prediction& now = job.baseline.prediction;
  advice.has_steps = now.has_steps;
  advice.measured = now.measured.step_time;
  advice.step_time = job.now();
  advice.replay_error = now.replay_error;
  advice.unexplained = job.unexplained();
  advice.noise = job.noise;
  advice.spread = job.spread;
  advice.breakdown = now.baseline_breakdown;
  advice.path = job.path;
  advice.allocated = greatest_allocated(now.baseline_memory);
  advice.reserved = greatest_reserved(now.baseline_memory);
  for (const std::string& name : job.inference.graph.device_names()) {
    const DeviceModel* device = name.empty() ? nullptr : device_recorded_as(name);
    if (device != nullptr) advice.memory = device->memory;
  }
  advice.notes.merge(now.notes);
}

void answer_setting(const AdviceQuestion& question, const std::vector<Inference>& ranks,
                    Advice& advice) {
  const SettingQuestion asked = setting_question(question, *advice.target);
  advice.curve = vary(ranks, asked.scenario, asked.vary, {});
}

std::vector<Lever> asked_levers(const Graph& graph, const std::string& name) {
  if (name.empty()) return speed_levers(graph);
  std::vector<Lever> one;
  one.push_back(within("--vary", [&] { return lever_named(graph, name); }));
  if (one.front().there) return one;
  throw Error("--vary: the trace has no " + one.front().title + " to make faster");
}

Advice advise_on(const Inference& inference, const AdviceQuestion& question,
                 const std::vector<KnownOutcome>& own, Advice advice) {
  AdvisedJob job = advised_job(inference, own);
  describe(job, advice);
  advice.top = question.top;
  std::optional<Nanoseconds> target;
  if (!question.until.empty()) {
    advice.target =
        within("--until", [&] { return read_target(question.until, question.samples); });
    advice.target->holds_now = job.now() <= advice.target->step_time;
    target = advice.target->step_time;
  }
  if (is_setting(question.vary)) return advice;
  const std::vector<Lever> levers = asked_levers(inference.graph, question.vary);
  advice.speed_ups = speed_ups_of(inference.graph, levers, job.now(), target);
  if (!question.vary.empty()) return advice;
  advice.ladder = ladder_of(inference.graph, job.now());
  Suggestions suggestions = suggestions_for(job, question.only, question.skip);
  sharpen_intervals(job, suggestions.made, question.top);
  advice.suggestions = std::move(suggestions.made);
  advice.not_applicable = std::move(suggestions.not_applicable);
  advice.no_advice = std::move(suggestions.no_advice);
  advice.joint = joint_advice(job, advice.suggestions);
  return advice;
}

Advice advise_machine(Inference inference, const AdviceQuestion& question,
                      const PredictOptions& options) {
  const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
  Advice advice;
  if (!question.machine.empty()) {
    inference = within("--machine", [&] {
      find_device(question.machine);  // Says best what is wrong with a name.
      return moved(inference, question.machine, advice.notes);
    });
    advice.machine = question.machine;
  }
  Advice answer = advise_on(inference, question, own, std::move(advice));
  if (!is_setting(question.vary)) return answer;
  std::vector<Inference> ranks;
  ranks.push_back(std::move(inference));
  answer_setting(question, ranks, answer);
  return answer;
}

/// Of the ranks of a job the one with the longest step: that is what the others wait for.
std::size_t slowest_of(const std::vector<Inference>& ranks, const std::vector<Trace>& traces,
                       Notes& notes) {
  std::size_t slowest = 0;
  Nanoseconds longest{-1};
  std::string all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Nanoseconds step = step_times(ranks[i].graph, ranks[i].recorded).step_time;
    if (step > longest) longest = step, slowest = i;
    all +=
        (all.empty() ? "rank " : ", rank ") + std::to_string(traces[i].rank) + ": " + to_text(step);
  }
  if (ranks.size() > 1) {
    notes.add(Severity::info,
              "the advice is for the slowest rank, " + std::to_string(traces[slowest].rank) +
                  ", alone; others may come to bound the job",
              all);
  }
  return slowest;
}

void refuse_snapshots(const std::vector<Trace>& traces, const std::string& path) {
  if (std::any_of(traces.begin(), traces.end(), [](const Trace& one) { return !is_snapshot(one); }))
    return;
  throw TraceError(path +
                   ": holds memory events and no times, so nothing can be said of step time; "
                   "record a trace with the profiler, or see `foretrace memory`");
}

}  // namespace

Advice advise(const Inference& inference, const AdviceQuestion& question,
              const PredictOptions& options) {
  check_question(question);
  return advise_machine({.graph = inference.graph.clone(),
                         .recorded = inference.recorded,
                         .notes = inference.notes,
                         .assumptions = inference.assumptions},
                        question, options);
}

Advice advise(const std::string& trace_path, const AdviceQuestion& question,
              const PredictOptions& options) {
  check_question(question);
  std::vector<Trace> traces = import_all(trace_path, options.reading);
  refuse_snapshots(traces, trace_path);
  const std::vector<InputFile> inputs = input_files(trace_path, traces);
  std::erase_if(traces, is_snapshot);
  std::vector<Inference> ranks = infer_all(traces, trace_path);
  Notes notes;
  const std::size_t slowest = slowest_of(ranks, traces, notes);
  Notes all = traces[slowest].notes;
  all.merge(notes);
  Advice advice = advise_machine(std::move(ranks[slowest]), question, options);
  all.merge(advice.notes);
  advice.notes = std::move(all);
  advice.inputs = inputs;
  return advice;
}

}  // namespace foretrace
