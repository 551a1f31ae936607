#include "question/sweep/questions.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include "analysis/doubt/ledger.h"
#include "analysis/doubt/trust.h"
#include "base/json_text.h"
#include "base/threads.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/question/predict.h"
#include "question/sweep/structure.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// The scenario with all defaults, and with its sweep as written.
std::string scenario_text(const Json& scenario, const SweepPlan& plan) {
  Json text = plan.base();
  for (const char* key : {"sweep", "matrix"}) {
    if (scenario.contains(key)) text[key] = scenario[key];
  }
  return json_line(text);
}

void add_machine_files(const SweepAxis& axis, std::set<std::string>& files) {
  if (axis.name() != "machine") return;
  for (std::size_t i = 0; i < axis.count(); ++i) {
    const auto machine = axis.at(i).change.get<std::string>();
    if (is_path(machine)) files.insert(machine);
  }
}

}  // namespace

SweptJob swept_job(const JobRanks& job, const SweepOptions& options) {
  SweptJob swept{.job = job, .baselines = {}, .slowest = {}};
  const std::vector<KnownOutcome> user_outcomes = read_user_outcomes(options.ledger_path);
  for (const Rank& rank : job.ranks) {
    Baseline& baseline = swept.baselines.emplace_back(baseline_of(rank.inference));
    baseline.grades_each_answer = options.grades_each_answer;
    baseline.user_outcomes = user_outcomes;
    if (options.intervals && !job.has_snapshots())
      baseline.variation = variation_of(rank.inference);
    swept.slowest.consider(swept.baselines.size() - 1, baseline.prediction.baseline.step_time);
  }
  return swept;
}

SweepQuestions::SweepQuestions(const Json& scenario, const std::string& sweep_folder,
                               const SweepOptions& sweep_options)
    : SweepQuestions(SweepPlan(scenario, sweep_folder), {}, sweep_options) {
  header.scenario_json = scenario_text(scenario, plan);
}

SweepQuestions::SweepQuestions(SweepPlan planned, std::string scenario,
                               const SweepOptions& sweep_options)
    : plan(std::move(planned)), options(sweep_options) {
  threads = options.jobs > 0 ? options.jobs : core_count();
  header.scenario_json = std::move(scenario);
  header.settings = plan.settings();
  header.points = plan.size();
  header.intervals = options.intervals;
  header.memory = options.memory;
  for (const SweepCombination& combination : plan.combinations()) add_combination(combination);
}

void SweepQuestions::add_combination(const SweepCombination& combination) {
  const Json first = plan.scenario(combination.first, first_values(combination));
  const Scenario parsed = parse_scenario(first);
  for (const std::string& text : parsed.asserts) {
    check_is_computed(text);
    if (std::find(header.asserts.begin(), header.asserts.end(), text) == header.asserts.end())
      header.asserts.push_back(text);
  }
  SharedShape& shape = shapes.emplace_back();
  shape.tail = retiming_tail(parsed);
  for (const SweepAxis& axis : combination.axes) {
    const auto& setting = axis.setting();
    const bool retimes =
        setting && !setting->is_of_memory() && setting->step() >= shape.tail &&
        parsed.transforms[setting->step()]->retimes()->only_retimes(setting->name());
    shape.retimes.push_back(retimes ? 1 : 0);
    shape.any_retimes = shape.any_retimes || retimes;
  }
  if (options.intervals || !options.share_structures) shape.any_retimes = false;
}

std::vector<SweepValue> SweepQuestions::first_values(const SweepCombination& combination) {
  std::vector<SweepValue> values;
  for (const SweepAxis& axis : combination.axes) values.push_back(axis.at(0));
  return values;
}

void SweepQuestions::check_is_computed(const std::string& text) const {
  const std::string name = text.substr(0, text.find_first_of(" <>"));
  if (!options.intervals && (name == "lower" || name == "upper"))
    throw Error(fmt::format("assert: \"{}\": needs --intervals", text));
  const bool of_memory =
      name == "peak_memory" || name == "peak_reserved" || name == "out_of_memory";
  if (!options.memory && of_memory)
    throw Error(fmt::format("assert: \"{}\": is not known with --no-memory", text));
}

std::set<std::string> SweepQuestions::trace_paths() const {
  std::set<std::string> paths;
  for (const SweepCombination& combination : plan.combinations()) {
    bool is_axis = false;
    for (const SweepAxis& axis : combination.axes) {
      if (axis.name() != "trace") continue;
      is_axis = true;
      for (std::size_t i = 0; i < axis.count(); ++i)
        paths.insert(axis.at(i).change.get<std::string>());
    }
    if (!is_axis) paths.insert(combination.scenario.value("trace", ""));
  }
  if (options.trace.empty()) return paths;
  if (paths.size() > 1)
    throw Error("--trace: must be left out, because the scenario asks about several traces");
  return {options.trace};
}

void SweepQuestions::read_traces() {
  for (const std::string& path : trace_paths()) {
    if (path.empty()) throw Error("sweep: which TRACE? Give it with --trace, or in the scenario");
    const JobRanks& job = jobs_.emplace_back(
        read_job(path, {.reading = options.reading, .joining = Joining::required}));
    for (InputFile& input : job.inputs()) header.inputs.push_back(std::move(input));
    within(path, [&] { add_job(path, job); });
  }
  read_other_files();
  describe_recorded();
}

void SweepQuestions::read_other_files() {
  std::set<std::string> others;
  for (const SweepCombination& combination : plan.combinations()) {
    const Scenario parsed = parse_scenario(combination.scenario);
    for (const auto& transform : parsed.transforms) others.insert(transform->donor());
    if (is_path(parsed.machine)) others.insert(parsed.machine);
    for (const SweepAxis& axis : combination.axes) add_machine_files(axis, others);
  }
  for (const std::string& path : others) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored))
      header.inputs.push_back({path, "", sha256_of_file(path)});
  }
}

void SweepQuestions::describe_recorded() {
  if (jobs_by_path.size() != 1) return;
  const SweptJob& job = jobs_by_path.begin()->second;
  header.baseline_step_time = job.recorded().baseline.step_time;
  header.has_steps = job.recorded().has_steps;
  header.has_times = !job.job.has_snapshots();
  header.trust = trust_of_recording(job.recorded(), AnswerAbout::changes);
  if (!options.memory) return;
  for (const Baseline& baseline : job.baselines) {
    const auto grow = [](std::optional<Bytes>& level, std::optional<Bytes> other) {
      if (other) level = std::max(level.value_or(*other), *other);
    };
    grow(header.baseline_allocated, greatest_allocated(baseline.prediction.baseline_memory));
    grow(header.baseline_reserved, greatest_reserved(baseline.prediction.baseline_memory));
  }
}

const SweptJob& SweepQuestions::job_of(const Json& scenario) const {
  if (jobs_by_path.size() == 1) return jobs_by_path.begin()->second;
  return jobs_by_path.at(scenario.value("trace", ""));
}

std::span<const AppliedStep> SweepQuestions::reported_of(std::span<const AppliedStep> steps) const {
  if (!reported) return steps;
  return *reported == 0 || *reported > steps.size() ? steps.first(0)
                                                    : steps.last(*reported).first(1);
}

void SweepQuestions::add_job(const std::string& path, const JobRanks& job) {
  jobs_by_path.emplace(path, swept_job(job, options));
}

void SweepQuestions::ask_about(const JobRanks& job) {
  add_job("", job);
  describe_recorded();
}

}  // namespace foretrace
