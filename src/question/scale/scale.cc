#include "foretrace/question/scale.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/doubt/ledger.h"
#include "analysis/doubt/step_variation.h"
#include "base/numbers/range.h"
#include "base/numbers/scaling.h"
#include "base/parse_number.h"
#include "base/threads.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/infer.h"
#include "foretrace/ledger.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "job/apply.h"
#include "job/job.h"
#include "question/predict/baseline.h"
#include "question/predict/rates.h"

namespace foretrace {
namespace {

// A job without a trace, of which only the length of a step is known.

/// Number of steps, enough for a median, and of pieces of a backward pass, so that buckets can
/// begin anywhere.
constexpr int kSteps = 4, kPieces = 400;

/// Assumed share of the update, which reads and writes weights, gradients and the optimizer's
/// state: a few percent in the steps that were examined. Chosen.
constexpr double kUpdate = 0.02;

/// Makes steps of this length on one device. Each ends with an update; a third of the time before
/// it is the forward pass, and two thirds are the backward pass (which has twice as many products),
/// in pieces. `device` is a name for find_device(). Throws Error unless the step is longer than 0
/// and than the update.
Inference assumed_job(Nanoseconds step_time, std::optional<Nanoseconds> update_time,
                      const std::string& device) {
  if (step_time <= 0ns)
    throw Error(fmt::format("--step-time: must be above 0, got {}", to_text(step_time)));
  if (update_time && (*update_time < 0ns || *update_time >= step_time))
    throw Error(fmt::format("--update-time: must be less than the step, which takes {}, got {}",
                            to_text(step_time), to_text(*update_time)));
  Inference job;
  Graph& graph = job.graph;
  const LaneId stream = graph.add_lane({.name = "stream", .kind = LaneKind::stream, .device = 0});
  graph.device_names() = {device.empty() ? std::string() : find_device(device).name};
  const Nanoseconds update = update_time.value_or(scaled(step_time, kUpdate));
  const Nanoseconds passes = step_time - update;
  const auto add = [&](std::string_view name, Phase phase, int step, Nanoseconds time) {
    graph.append(stream, {.duration = time,
                          .name = graph.names().intern(name),
                          .step = step,
                          .kind = TaskKind::kernel,
                          .phase = phase});
  };
  for (int step = 0; step < kSteps; ++step) {
    graph.steps().push_back({"step " + std::to_string(step)});
    add("forward", Phase::forward, step, passes / 3);
    Nanoseconds remaining = passes - passes / 3;
    for (int piece = kPieces; piece > 0; --piece) {
      const Nanoseconds time = remaining / piece;
      add("backward", Phase::backward, step, time);
      remaining -= time;
    }
    add("update", Phase::update, step, update);
  }
  graph.step_rule().source = StepSource::markers;
  job.recorded = simulate(graph);
  graph.unexplained().window = job.recorded.length;
  set_step_rule(graph, job.recorded);
  job.assumptions = {fmt::format(
      "no trace was given: the update takes {}{}, the forward pass a third of the rest, "
      "the backward pass two thirds, and gradients become ready evenly over it",
      to_text(update), update_time ? "" : " (2 % of the step, a guess; --update-time states it)")};
  return job;
}

constexpr std::int64_t kMaxGpus = 1'000'000;
constexpr std::size_t kMaxCounts = 1000;

/// Below this efficiency a scheme counts as limited. Chosen.
constexpr double kPoorEfficiency = 0.9;

std::int64_t count_in(std::string_view text) {
  const auto count = parse_number<std::int64_t>(text);
  if (!count || *count < 1 || *count > kMaxGpus)
    throw Error(fmt::format(
        "must be counts such as 1..1024, 8..64/+8 or 1,8,16, each from 1 to {}, got \"{}\"",
        kMaxGpus, text));
  return *count;
}

std::vector<std::int64_t> counts_in(const RangeText& range, std::string_view text) {
  const std::int64_t first = count_in(range.first), last = count_in(range.last);
  if (first > last) throw Error(fmt::format("must go up, got \"{}\"", text));
  if (range.step == RangeStep::parts)
    throw Error(fmt::format("must be {0}/+{1} to add {1}, or {0}/x2 to double, got \"{2}\"",
                            text.substr(0, text.rfind('/')), range.amount, text));
  const bool adds = range.step == RangeStep::add;
  const std::int64_t amount = range.step == RangeStep::usual ? 2 : count_in(range.amount);
  if (!adds && amount < 2) throw Error(fmt::format("must go up, got \"{}\"", text));
  std::vector<std::int64_t> counts;
  for (std::int64_t count = first; count <= last; count = adds ? count + amount : amount * count) {
    counts.push_back(count);
    if (counts.size() > kMaxCounts)
      throw Error(fmt::format("must be at most {} counts", kMaxCounts));
  }
  return counts;
}

/// The name of the setting for the count in a scheme: workers or gpus. A scheme with neither is
/// reported when the step is read.
std::string count_setting(const std::string& scheme) {
  const std::string_view name = std::string_view(scheme).substr(0, scheme.find(':'));
  const auto entry = std::ranges::find(transforms(), name, &TransformEntry::name);
  const bool has_workers =
      entry != transforms().end() && write_json(*entry->make()).contains("workers");
  return has_workers ? "workers" : "gpus";
}

/// The scheme as a step, with count and machine; a network that it already names stays.
std::string step_of(const std::string& scheme, std::int64_t gpus, const std::string& machine) {
  std::string text = scheme;
  const auto set = [&](const std::string& setting) {
    text += (text.find(':') == std::string::npos ? ":" : ",") + setting;
  };
  set(fmt::format("{}={}", count_setting(scheme), gpus));
  const bool has_network = scheme.find("machine=") != std::string::npos ||
                           scheme.find("bandwidth=") != std::string::npos;
  if (!machine.empty() && !has_network) set(fmt::format("machine=\"{}\"", machine));
  return text;
}

/// One question: a scheme and a count.
struct ScaleCase {
  ScalePoint point;
  std::optional<Prediction> prediction;
};

class Scaler {
 public:
  explicit Scaler(const ScaleQuestion& question) : question_(question), donors_(question.reading) {
    if (question.training.is_asked()) runs_.emplace(question.training);
    if (question.trace.empty())
      assumed_ = assumed_job(question.step_time, question.update_time, device_of(question.machine));
    else
      read(question);
    donors_.read(question.scenario);
    for (const auto& transform : question.scenario.transforms)
      gpus_per_worker_ *= transform->job_change().ranks;
    baseline_ = baseline_of(inference());
    baseline_.variation = variation_of(inference());
    baseline_.user_outcomes = read_user_outcomes(question.ledger_path);
  }

  ScaleReport run() {
    ScaleReport report;
    if (!assumed_) report.inputs = job_.inputs();
    report.machine = question_.machine;
    report.gpus_per_worker = gpus_per_worker_;
    for (const auto& use : question_.scenario.uses) report.changes.push_back(use);
    check_ranks(question_.scenario, inference().graph);
    report.recorded =
        predict_on(baseline_, inference(), question_.scenario, &donors_).predicted.step_time;
    std::vector<ScaleCase> cases = all_cases();
    on_all_cores(cases.size(), [&](std::size_t i) { answer(report.recorded, cases[i]); });
    report.assumptions = assumed_device();
    collect(cases, report);
    return report;
  }

 private:
  void read(const ScaleQuestion& question) {
    if (question.step_time != 0ns || question.update_time)
      throw Error(fmt::format("{}: must not be given together with a trace, which has its own",
                              question.update_time ? "--update-time" : "--step-time"));
    job_ = read_job(question.trace, {.reading = question.reading});
    only_rank(job_, "; ask predict what their communication would take elsewhere");
    name_device(question.machine);
  }

  /// Takes the device of the machine for that of a trace that does not name one.
  void name_device(const std::string& machine) {
    Inference& recorded = job_.ranks.front().inference;
    const auto is_known = [](const std::string& name) { return device_recorded_as(name); };
    const std::string device = device_of(machine);
    if (device.empty() || std::ranges::any_of(recorded.graph.device_names(), is_known)) return;
    recorded.graph.device_names() = {find_device(device).name};
    recorded.assumptions.push_back(fmt::format(
        "the trace does not name its device; it is taken for {}, that of --machine", device));
  }

  const Inference& inference() const { return assumed_ ? *assumed_ : job_.ranks.front().inference; }

  static std::string device_of(const std::string& machine) {
    return machine.empty() ? std::string() : find_cluster(machine, 1).device;
  }

  /// The device whose kernels a step has, after the changes; empty if unknown.
  std::string computing_device() const {
    const StepRates recorded{.peak_of = known_device(inference().graph)};
    return changed_rates(recorded, question_.scenario).peak_of;
  }

  /// Says that kernels are not those of the machine's device, if it is of another model.
  std::vector<std::string> assumed_device() const {
    const std::string computing = computing_device(), other = device_of(question_.machine);
    const auto model = [](const std::string& name) { return name.substr(0, name.find('-')); };
    if (computing.empty() || other.empty() || model(computing) == model(other)) return {};
    return {
        fmt::format("kernels take as long as on {}, not as on the {} of --machine; --with "
                    "faster_device:to={} predicts them there",
                    computing, other, other)};
  }

  std::vector<ScaleCase> all_cases() const {
    std::vector<std::string> schemes = question_.schemes;
    if (schemes.empty()) schemes.emplace_back("data_parallel");
    std::vector<ScaleCase> cases;
    for (const std::string& scheme : schemes) {
      for (const std::int64_t gpus : question_.gpus) {
        ScalePoint& point = cases.emplace_back().point;
        point.scheme = scheme, point.gpus = gpus;
      }
    }
    return cases;
  }

  /// Number of workers that a scheme distributes, each on the GPUs that the earlier changes gave
  /// it.
  std::int64_t workers_of(std::int64_t gpus) const {
    if (gpus % gpus_per_worker_ == 0) return gpus / gpus_per_worker_;
    throw Error(fmt::format(
        "--gpus: must be whole groups of the {} GPUs that --with puts one worker on, got {}",
        gpus_per_worker_, gpus));
  }

  void answer(Nanoseconds worker_time, ScaleCase& scale_case) {
    ScalePoint& point = scale_case.point;
    std::string step = point.scheme;
    try {
      step = step_of(point.scheme, workers_of(point.gpus), question_.machine);
      Scenario scenario = parse_scenario(write_scenario(question_.scenario));
      const std::size_t changes = scenario.transforms.size();
      add_steps(step, scenario);
      Edited edited = edited_by(inference().graph, scenario, {}, &donors_);
      Prediction prediction = predict_edited(baseline_, inference(), scenario, edited, {});
      point.step_time = prediction.predicted.step_time;
      point.lower = prediction.lower, point.upper = prediction.upper;
      double samples = 1;
      for (std::size_t i = changes; i < scenario.transforms.size(); ++i)
        samples *= scenario.transforms[i]->job_change().samples;
      point.throughput = ratio(worker_time, point.step_time) * samples;
      point.efficiency = point.throughput * static_cast<double>(gpus_per_worker_) /
                         static_cast<double>(point.gpus);
      point.transfer = total_time(prediction.steps, "transfer_per_step");
      point.late = total_time(prediction.steps, "lateness_per_step");
      point.exposed =
          scaled(point.step_time,
                 exposed_communication(breakdown(edited.graph, edited.timeline), point.step_time));
      for (const MemoryPeak& peak : prediction.predicted_memory)
        point.peak = std::max(point.peak.value_or(Bytes{}), peak.peak_allocated);
      StepRates recorded;
      recorded.samples = question_.scenario.samples_per_step;
      if (const double step_samples = changed_rates(recorded, scenario).samples; step_samples > 0)
        point.rate = step_samples * 1e9 / static_cast<double>(point.step_time.count());
      if (runs_) point.training = runs_->of(repeated(point, worker_time));
      point.trust = prediction.trust.grade();
      scale_case.prediction = std::move(prediction);
    } catch (const Error& error) {
      // The count is left out, so that equal reasons are reported once.
      point.refused = error.what();
      if (point.refused.starts_with(step)) point.refused.replace(0, step.size(), point.scheme);
    }
  }

  static void add_new(const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& one : from) {
      if (std::ranges::find(to, one) == to.end()) to.push_back(one);
    }
  }

  /// A step of one worker, as long as its samples take on all GPUs.
  RepeatedStep repeated(const ScalePoint& point, Nanoseconds worker_time) const {
    const auto of_worker = [&](Nanoseconds time) {
      return scaled(worker_time, ratio(time, point.step_time) / point.throughput);
    };
    return {
        .time = of_worker(point.step_time),
        .lower = of_worker(point.lower),
        .upper = of_worker(point.upper),
        .gpus = point.gpus,
        .device = question_.machine.empty() ? computing_device() : device_of(question_.machine)};
  }

  static void collect(std::vector<ScaleCase>& cases, ScaleReport& report) {
    const ScaleCase* previous = nullptr;
    for (ScaleCase& answered : cases) {
      if (previous != nullptr && previous->point.scheme != answered.point.scheme)
        report.limits.push_back(limit_of(report.points, previous->point.scheme));
      report.points.push_back(answered.point);
      previous = &answered;
      if (!answered.prediction) continue;
      const Prediction& prediction = *answered.prediction;
      if (answered.point.training)
        add_new(answered.point.training->assumptions, report.assumptions);
      if (report.trust.reasons.empty() || prediction.trust.grade() > report.trust.grade())
        report.trust = prediction.trust;
      add_new(prediction.assumptions, report.assumptions);
    }
    if (previous != nullptr)
      report.limits.push_back(limit_of(report.points, previous->point.scheme));
    const auto is_refused = [](const ScalePoint& point) { return !point.refused.empty(); };
    if (std::ranges::all_of(report.points, is_refused)) throw Error(report.points.front().refused);
  }

  /// Says in a sentence what stops the scaling of a scheme.
  static std::string limit_of(const std::vector<ScalePoint>& points, const std::string& scheme) {
    // The first point with poor efficiency, otherwise the last.
    const ScalePoint* decisive = nullptr;
    for (const ScalePoint& point : points) {
      if (point.scheme != scheme || !point.refused.empty()) continue;
      decisive = &point;
      if (point.efficiency < kPoorEfficiency) break;
    }
    if (decisive == nullptr) return scheme + " has no answer";
    if (decisive->gpus == 1) return scheme + ": there is no answer for more than one GPU";
    const std::string gpus =
        fmt::format("{} {}", decisive->gpus, decisive->gpus == 1 ? "GPU" : "GPUs");
    if (decisive->efficiency >= kPoorEfficiency)
      return fmt::format(
          "{}: nothing limits it up to {}, where each GPU still reaches {} of what one alone does",
          scheme, gpus, to_share(decisive->efficiency));
    const Nanoseconds lost = scaled(decisive->step_time, 1 - decisive->efficiency);
    const Nanoseconds slowdown = lost - decisive->exposed - decisive->late;
    if (decisive->exposed >= std::max(decisive->late, slowdown))
      return fmt::format(
          "{}: from {} on, communication limits it: it takes {} of a step, of which computation "
          "hides only {}",
          scheme, gpus, to_text(decisive->transfer),
          to_text(std::max(0ns, decisive->transfer - decisive->exposed)));
    if (decisive->late >= slowdown)
      return fmt::format(
          "{}: from {} on, waiting for the slowest worker limits it, {} of a step, judged by "
          "published runs; communication that nothing hides takes {}",
          scheme, gpus, to_text(decisive->late), to_text(decisive->exposed));
    return fmt::format(
        "{}: from {} on, slower kernels beside communication and copies into buckets limit it: {} "
        "of a step",
        scheme, gpus, to_text(slowdown));
  }

  const ScaleQuestion& question_;
  JobRanks job_;  ///< Empty if there is no trace.
  std::optional<Inference> assumed_;
  std::int64_t gpus_per_worker_ = 1;  ///< GPUs on which the changes put the recorded worker.
  Donors donors_;
  Baseline baseline_;
  std::optional<TrainingRuns> runs_;  ///< If the question asks for a whole training.
};

}  // namespace

std::vector<std::int64_t> read_counts(const std::string& text) {
  std::vector<std::int64_t> counts;
  std::string_view remaining = text;
  while (true) {
    const std::size_t comma = remaining.find(',');
    const std::string_view count_text = remaining.substr(0, comma);
    if (const auto text_of_range = split_range(count_text)) {
      const std::vector<std::int64_t> range = counts_in(*text_of_range, count_text);
      counts.insert(counts.end(), range.begin(), range.end());
    } else {
      counts.push_back(count_in(count_text));
    }
    if (comma == std::string_view::npos) break;
    remaining.remove_prefix(comma + 1);
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

ScaleReport scale(const ScaleQuestion& question) { return Scaler(question).run(); }

}  // namespace foretrace
