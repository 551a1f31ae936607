#include "studies/allocate/allocate.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/numbers/expression.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "plan/plan.h"
#include "studies/allocate/assign.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxJobs = 1'000'000;

/// A job as its file describes it.
class JobSettings final : public Described {
 public:
  void describe(Fields& fields) override {
    fields.text("name", name, "Name of the job in the answer");
    fields.integer("count", count, "Number of identical jobs", 1, kMaxJobs);
    fields.time("arrival", arrival, "Earliest start of the first, from the beginning of the log",
                0ns);
    fields.time("every", every, "Time between two of these jobs", 0ns);
    fields.integer("nodes", nodes, "Nodes that it has now", 0);
    fields.integer("least", least, "Fewest nodes that it runs on", 1);
    fields.integer("most", most, "Most nodes that it runs on", 1);
    fields.time("up", up, "How long it stops when it gets nodes", 0ns);
    fields.time("down", down, "How long it stops when it loses nodes", 0ns);
    fields.number("samples", samples, "Samples to process; 0: no end", 0);
    fields.number("value", value, "Value of a sample, for the objective price", 0);
    fields.time("deadline", deadline, "Deadline, from the beginning of the log; 0: none", 0ns);
    fields.name_or_path("model", model, "A described model to predict from, instead of rates");
    fields.name_or_path("machine", machine, "Machine that the nodes belong to; with a model");
    fields.integer("global_batch", global_batch, "Samples in a step; with a model", 0);
  }
  void check() const override {
    if (most < least)
      throw Error(fmt::format("most: must not be below least, {}, got {}", least, most));
  }

  std::string name = "job", model, machine;
  std::int64_t count = 1, nodes = 0, least = 1, most = 64, global_batch = 0;
  Nanoseconds arrival{0}, every{0}, up{0}, down{0}, deadline{0};
  double samples = 0, value = 0;
};

enum Speed : std::uint8_t { point, slow, fast };

/// Rate curves of the prediction and of both ends of its interval.
struct RateCurves {
  RateCurve curves[3];
};

/// Predicts a job on 1, 2, 4, ... nodes, each with its fastest layout; counts on which no layout
/// fits get no point. Throws Error if none fits.
RateCurves predicted_rates(const JobSettings& job) {
  PlanSpace space;
  space.step.name = job.model;
  space.step.workload = find_workload(job.model);
  space.step.platform = find_platform(job.machine);
  space.step.layout.global_batch = job.global_batch;
  space.step.layout.precision = space.step.platform.device.usual_precision();
  space.shown = 1;
  RateCurves rates;
  std::string refused;
  for (std::int64_t nodes = 1;; nodes = std::min(2 * nodes, job.most)) {
    space.gpus = {nodes * space.step.platform.per_node};
    try {
      const CalibratedPrice price = plan_layouts(space, {}).best.front().price;
      const double samples = static_cast<double>(job.global_batch) * 1e6;
      const double us[] = {price.us, price.upper_us, price.lower_us};
      for (const Speed speed : {point, slow, fast})
        rates.curves[speed].points.emplace_back(static_cast<double>(nodes), samples / us[speed]);
    } catch (const Error& error) {
      refused = error.what();
    }
    if (nodes == job.most) break;
  }
  if (rates.curves[point].points.empty()) throw Error("model: " + refused);
  return rates;
}

RateCurves read_rates(const nlohmann::json& json, std::int64_t& most, bool has_most) {
  RateCurves rates;
  if (!json.is_object() || json.empty())
    throw Error("must be samples per second by number of nodes, such as {\"1\": 100, \"2\": 190}");
  for (const auto& [text, rate] : json.items()) {
    const double nodes = std::strtod(text.c_str(), nullptr);
    if (!(nodes >= 1) || !rate.is_number() || rate.get<double>() < 0)
      throw Error(fmt::format("must be samples per second by number of nodes, got \"{}\": {}", text,
                              json_line(rate)));
    rates.curves[point].points.emplace_back(nodes, rate.get<double>());
  }
  std::ranges::sort(rates.curves[point].points);
  if (!has_most) most = std::llround(rates.curves[point].points.back().first);
  return rates;
}

struct JobList {
  std::vector<ElasticJob> jobs;
  /// The ends of the interval; equal to the rates that are not predicted.
  std::vector<RateCurve> slow, fast;
  std::vector<std::int64_t> nodes;
  bool is_predicted = false;
};

void add_jobs(nlohmann::json json, JobList& jobs) {
  if (!json.is_object()) throw Error("must be an object");
  const nlohmann::json rates_json = json.value("rates", nlohmann::json());
  const bool has_most = json.contains("most");
  json.erase("rates");
  JobSettings settings;
  read_json(json, settings);
  if (settings.model.empty() == rates_json.is_null())
    throw Error("must have either rates or a model with machine and global_batch, not both");
  if (!settings.model.empty() && (settings.machine.empty() || settings.global_batch < 1))
    throw Error("must have machine and global_batch beside its model");
  const RateCurves rates =
      settings.model.empty()
          ? within("rates", [&] { return read_rates(rates_json, settings.most, has_most); })
          : predicted_rates(settings);
  for (std::int64_t i = 0; i < settings.count; ++i) {
    ElasticJob& job = jobs.jobs.emplace_back();
    job.name = settings.count > 1 ? fmt::format("{} {}", settings.name, i + 1) : settings.name;
    job.least = settings.least, job.most = settings.most;
    job.up = in_seconds(settings.up), job.down = in_seconds(settings.down);
    job.rates = rates.curves[point];
    job.samples = settings.samples, job.value = settings.value;
    job.arrival = settings.arrival + i * settings.every, job.deadline = settings.deadline;
    const bool is_predicted = !rates.curves[slow].points.empty();
    jobs.slow.push_back(rates.curves[is_predicted ? slow : point]);
    jobs.fast.push_back(rates.curves[is_predicted ? fast : point]);
    jobs.nodes.push_back(settings.nodes);
    jobs.is_predicted = jobs.is_predicted || is_predicted;
  }
}

JobList read_jobs(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  JobList jobs;
  within(path, [&] {
    const auto list = json.is_object() ? json.find("jobs") : json.end();
    if (!json.is_object() || list == json.end() || !list->is_array() || list->empty())
      throw Error("must be {\"jobs\": [...]}");
    for (std::size_t i = 0; i < list->size(); ++i)
      within(fmt::format("jobs[{}]", i), [&] { add_jobs((*list)[i], jobs); });
  });
  return jobs;
}

Allocate solver_named(const std::string& name) {
  if (name == "knapsack") return allocate_by_knapsack;
  if (name == "milp") return allocate_by_milp;
  if (name == "equal") return allocate_equally;
  throw Error("--solver: must be knapsack, milp or equal, got " + name);
}

NodeLog log_of(const AllocateQuestion& question) {
  if (!question.events.empty()) return read_node_events(question.events);
  return question.sacct.empty() ? read_swf(question.swf) : read_sacct(question.sacct);
}

void decide_once(const AllocateQuestion& question, const JobList& jobs, AllocationReport& report) {
  AllocationProblem problem;
  problem.nodes = *question.nodes, problem.horizon = in_seconds(question.ahead);
  std::int64_t used_nodes = 0;
  for (std::size_t j = 0; j < jobs.jobs.size(); ++j) {
    problem.jobs.push_back({&jobs.jobs[j], jobs.nodes[j]});
    used_nodes += jobs.nodes[j];
    problem.curves.push_back(objective_curve(problem.jobs[j], question.objective, 0ns));
  }
  if (used_nodes > problem.nodes)
    throw Error(fmt::format("--nodes: must be at least what the jobs have now, {}, got {}",
                            used_nodes, problem.nodes));
  const NodeShares answer = solver_named(question.solver)(problem);
  report.value = answer.value, report.nodes = problem.nodes;
  for (std::size_t j = 0; j < jobs.jobs.size(); ++j) {
    const auto nodes = static_cast<double>(answer.nodes[j]);
    report.jobs.push_back(
        {jobs.jobs[j].name, jobs.nodes[j], answer.nodes[j], jobs.jobs[j].rates.at(nodes)});
  }
}

}  // namespace

AllocationReport allocate(const AllocateQuestion& question) {
  if (question.jobs.empty())
    throw Error("plan allocate: which JOBS? Give a file that describes them");
  if (std::ranges::find(kObjectives, question.objective) == std::end(kObjectives)) {
    if (is_variable(question.objective) &&
        std::ranges::find(kObjectiveNames, question.objective) == kObjectiveNames.end())
      throw Error(fmt::format("--objective: must be one of {}, or a formula, got {}",
                              joined(kObjectives), question.objective));
    within("--objective", [&] { Expression(question.objective, kObjectiveNames); });
  }
  const int logs = !question.events.empty() + !question.sacct.empty() + !question.swf.empty();
  if (logs + question.nodes.has_value() != 1)
    throw Error("plan allocate: must have --nodes, or one log: --events, --sacct or --swf");
  JobList jobs = read_jobs(question.jobs);
  AllocationReport report{
      .objective = question.objective, .solver = question.solver, .ahead = question.ahead};
  if (question.nodes) {
    decide_once(question, jobs, report);
  } else {
    const NodeLog log = log_of(question);
    report.nodes = log.nodes;
    const AllocationPolicy policy{solver_named(question.solver), question.objective,
                                  in_seconds(question.ahead), question.at_once};
    report.replay = replay_allocation(jobs.jobs, log, policy);
    if (jobs.is_predicted) {
      const auto with = [&](const std::vector<RateCurve>& curves) {
        for (std::size_t j = 0; j < curves.size(); ++j) jobs.jobs[j].rates = curves[j];
        return replay_allocation(jobs.jobs, log, policy);
      };
      report.slow = with(jobs.slow), report.fast = with(jobs.fast);
    }
    report.assumptions.emplace_back(
        "efficiency is relative to a fixed allocation: as many jobs as ran on average share the "
        "mean number of idle nodes equally");
  }
  if (jobs.is_predicted)
    report.assumptions.emplace_back(
        "rates of described models are those of their fastest layouts, on 1, 2, 4, ... nodes");
  return report;
}

}  // namespace foretrace
