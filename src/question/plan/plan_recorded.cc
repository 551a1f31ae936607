#include "question/plan/plan_recorded.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/doubt/ledger.h"
#include "analysis/doubt/trust.h"
#include "base/threads.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/question/plan.h"
#include "import/holds_trace.h"
#include "job/job.h"
#include "plan/plan.h"
#include "question/advise/advised_job.h"
#include "question/predict/baseline.h"

namespace foretrace {
namespace {

// The layouts on several GPUs that a job recorded on one GPU can have.

struct RecordedLayout {
  std::int64_t stages = 1, copies = 1;
  std::int64_t micro_batches = 1;  ///< Micro-batches of each copy; each is a recorded batch.
  std::string schedule = "1f1b";
  std::int64_t zero = 0;
  bool recomputes = false;

  std::string text() const;  ///< "pp=4,dp=2,micro_batches=8,schedule=gpipe"
  /// The steps for `predict --with`.
  std::vector<std::string> steps(const PlanQuestion& question) const;
};

std::string RecordedLayout::text() const {
  std::string text = fmt::format("pp={},dp={}", stages, copies);
  if (micro_batches > 1) text += fmt::format(",micro_batches={}", micro_batches);
  if (stages > 1) text += ",schedule=" + schedule;
  if (zero > 0) text += fmt::format(",zero={}", zero);
  if (recomputes) text += ",recompute=full";
  return text;
}

std::vector<std::string> RecordedLayout::steps(const PlanQuestion& question) const {
  const std::string network = fmt::format(",machine=\"{}\"", question.machine);
  const auto size = [](const char* name, Bytes bytes) {
    return bytes > Bytes{} ? fmt::format(",{}={}", name, to_exact_text(bytes)) : std::string();
  };
  const std::string gradients = size("gradient_bytes", question.gradients);
  std::vector<std::string> steps;
  if (stages > 1) {
    std::string step = fmt::format("pipeline:stages={},micro_batches={},schedule=\"{}\"", stages,
                                   micro_batches, schedule);
    if (copies > 1) step += fmt::format(",replicas={}{}", copies, gradients);
    if (recomputes) step += ",recompute=true";
    if (copies > 1 || question.output > Bytes{}) step += network;
    return {step + size("output_bytes", question.output)};
  }
  if (recomputes) steps.emplace_back("recompute:policy=every");
  if (micro_batches > 1) {  // Accumulation alone would divide the recorded batch.
    steps.push_back(fmt::format("batch_size:factor={}", micro_batches));
    steps.push_back(fmt::format("gradient_accumulation:micro_batches={}", micro_batches));
  }
  if (copies > 1 && zero == 0)
    steps.push_back(fmt::format("data_parallel:gpus={}{}{}", copies, network, gradients));
  if (copies > 1 && zero > 0)
    steps.push_back(fmt::format("zero:stage={},workers={}{}{}", zero, copies, network, gradients));
  return steps;
}

/// Number of recorded batches in a step: as asked for, or one for each GPU of the largest count.
std::int64_t recorded_batches(const PlanQuestion& question) {
  return question.global_batch > 0 ? question.global_batch : std::ranges::max(question.gpus);
}

/// Returns all layouts, with plain data parallelism first. Throws Error if no layout divides the
/// batch.
std::vector<RecordedLayout> recorded_layouts(const PlanQuestion& question, std::int64_t gpus) {
  const std::int64_t batch = recorded_batches(question);
  const std::vector<std::string_view> schedules = planned_schedules(question.all_schedules);
  std::vector<RecordedLayout> layouts;
  for (std::int64_t stages = 1; stages <= gpus; ++stages) {
    const std::int64_t copies = gpus / stages;
    if (gpus % stages != 0 || batch % copies != 0) continue;
    RecordedLayout layout{.stages = stages, .copies = copies, .micro_batches = batch / copies};
    for (layout.recomputes = false;; layout.recomputes = true) {
      if (stages == 1) {
        for (layout.zero = 0; layout.zero <= (copies > 1 ? 3 : 0); ++layout.zero)
          layouts.push_back(layout);
        layout.zero = 0;
      } else {
        for (const std::string_view schedule : schedules) {
          layout.schedule = schedule;
          layouts.push_back(layout);
        }
      }
      if (layout.recomputes) break;
    }
  }
  if (layouts.empty())
    throw Error(
        fmt::format("--global-batch: must be a multiple of the copies of some layout on {} GPUs, "
                    "counted in recorded batches, got {}",
                    gpus, batch));
  return layouts;
}

constexpr std::size_t kLongestReason = 200;  ///< In characters.

struct RecordedCase {
  RecordedLayout layout;
  PlanRow row{};
  std::vector<std::string> assumptions{};
  std::string refused{};
};

class RecordedPlanner {
 public:
  explicit RecordedPlanner(const PlanQuestion& question)
      : question_(question), platform_(find_platform(question.machine)) {
    check();
    job_ = read_job(question.model, {.reading = question.reading});
    only_rank(job_);
    report_.limit = question.memory.value_or(platform_.device.memory);
    report_.model = report_.trace = question.model, report_.machine = question.machine;
    baseline_ = baseline_of(inference());
    baseline_.grades_each_answer = false;
    report_.notes = inference().notes;
    find_device_change();
    question.training.is_asked();
    if (question.training.prices.empty()) return;
    const GpuPrice price = price_of(question.training.prices, platform_.device.name);
    gpu_hour_ = price.per_hour, report_.currency = price.currency;
  }

  PlanReport run() {
    std::vector<RecordedCase> cases = chosen_cases();
    on_all_cores(cases.size(), [&](std::size_t i) { answer(cases[i]); });
    rank(cases);
    describe();
    return std::move(report_);
  }

 private:
  const Inference& inference() const { return job_.ranks.front().inference; }

  void check() const {
    if (question_.gpus.empty()) throw Error("--gpus: must be given, such as 64 or 8..1024");
    const std::pair<const char*, bool> unsupported[] = {
        {"--layout", !question_.layout.empty()},
        {"--fix", !question_.fix.empty()},
        {"--measured", !question_.measured.empty()},
        {"--calibrate", !question_.calibrate.empty()},
        {"--strategy", question_.strategy != "exhaustive"}};
    for (const auto& [option, is_given] : unsupported) {
      if (is_given)
        throw Error(
            fmt::format("{}: is for described models, and {} is a trace", option, question_.model));
    }
  }

  /// Moves the recorded work to the device of the machine, if that is another one.
  void find_device_change() {
    for (const std::string& name : inference().graph.device_names()) {
      const DeviceModel* const recorded = name.empty() ? nullptr : device_recorded_as(name);
      if (recorded != nullptr && recorded->name != platform_.device.name)
        device_ = platform_.device.name;
      if (recorded != nullptr) return;
    }
    report_.assumptions.push_back(fmt::format(
        "the recorded device is assumed to be that of {}, as the trace names no known one",
        question_.machine));
  }

  std::vector<RecordedCase> chosen_cases() {
    std::vector<RecordedCase> cases;
    for (const std::int64_t gpus : question_.gpus) {
      for (RecordedLayout& layout : recorded_layouts(question_, gpus))
        cases.push_back({.layout = std::move(layout)});
    }
    return cases;
  }

  Scenario scenario_of(const std::vector<std::string>& steps) const {
    Scenario scenario;
    scenario.machine = device_;
    for (const std::string& step : steps) add_steps(step, scenario);
    scenario.allocator.limit = report_.limit;
    return scenario;
  }

  void answer(RecordedCase& planned) const {
    PlanRow& row = planned.row;
    const RecordedLayout& layout = planned.layout;
    row.layout = layout.text(), row.gpus = layout.stages * layout.copies;
    const std::vector<std::string> steps = layout.steps(question_);
    try {
      const Scenario scenario = scenario_of(steps);
      Edited edited = edited_by(inference().graph, scenario, {});
      const Prediction prediction =
          predict_edited(baseline_, inference(), scenario, edited, {.trust = false});
      row.time = prediction.predicted.step_time;
      row.lower = prediction.lower, row.upper = prediction.upper;
      if (gpu_hour_ > 0) row.cost = price_of_steps(row);
      const Breakdown parts = breakdown(edited.graph, edited.timeline);
      row.bubble = parts.idle, row.network = parts.communication;
      row.kernels = row.time - row.bubble - row.network;
      for (const MemoryPeak& peak : prediction.predicted_memory) {
        if (peak.device < 0) continue;
        row.reserved = std::max(row.reserved, peak.peak_reserved.value_or(peak.peak_allocated));
        row.fits = row.fits && !peak.out_of_memory && row.reserved <= report_.limit;
      }
      row.is_covered = std::ranges::all_of(
          steps, [](const std::string& step) { return ledger_entry(step) != nullptr; });
      planned.assumptions = prediction.assumptions;
    } catch (const Error& error) {
      planned.refused = error.what();
      for (const std::string& step : steps) planned.refused = without_place(planned.refused, step);
    }
  }

  /// The price of 1,000 steps.
  double price_of_steps(const PlanRow& row) const {
    constexpr double kSteps = 1000, kHour = 3600e9;  // In nanoseconds.
    return kSteps * static_cast<double>(row.time.count()) / kHour * static_cast<double>(row.gpus) *
           gpu_hour_;
  }

  /// Sorts the layouts that fit by time, before the others, and reports them.
  void rank(std::vector<RecordedCase>& cases) {
    std::ranges::stable_sort(cases, [](const RecordedCase& a, const RecordedCase& b) {
      return std::pair(!a.row.fits, a.row.time) < std::pair(!b.row.fits, b.row.time);
    });
    std::vector<RecordedCase> answered;
    std::map<std::string, std::size_t> losses;
    for (RecordedCase& planned : cases) {
      if (planned.refused.empty())
        answered.push_back(std::move(planned));
      else
        ++refused_[planned.refused];
    }
    if (question_.gradients == Bytes{} && std::ranges::any_of(refused_, [](const auto& refused) {
          return refused.first.starts_with("gradient_bytes: ");
        }))
      throw Error("--gradient-bytes: must be given, as the trace does not show its gradients");
    report_.layouts = report_.replayed = answered.size();
    if (answered.empty()) throw Error("no layout is left: " + cases.front().refused);
    if (!answered.front().row.fits)
      throw Error(
          fmt::format("no layout is left: memory took the last {} of them; {} needs {} of {}",
                      answered.size(), answered.front().row.layout,
                      to_text(answered.front().row.reserved), to_text(report_.limit)));
    best_ = answered.front();
    for (RecordedCase& planned : answered) planned.row.loss = loss_of(planned.row);
    for (std::size_t i = 0; i < answered.size(); ++i) {
      if (i < question_.top && answered[i].row.fits)
        report_.ranked.push_back(answered[i].row);
      else
        ++losses[answered[i].row.loss];
    }
    for (const RecordedCase& planned : answered) {
      if (planned.layout.stages == 1 && planned.layout.zero == 0 && !planned.layout.recomputes)
        add_with_role(planned.row, "plain data parallelism", report_.ranked);
      if (planned.row.fits && std::ranges::none_of(report_.front, [&](const PlanRow& other) {
            return other.reserved <= planned.row.reserved &&
                   other.cost.value_or(0) <= planned.row.cost.value_or(0);
          }))
        report_.front.push_back(planned.row);
    }
    report_.losses.assign(losses.begin(), losses.end());
  }

  static PriceParts parts_of(const PlanRow& row) {
    const auto us = [](Nanoseconds time) { return static_cast<double>(time.count()) * 1e-3; };
    return {us(row.bubble), us(row.network), us(row.kernels)};
  }

  std::string loss_of(const PlanRow& row) const {
    if (!row.fits) return std::string(to_string(Loss::memory));
    if (row.time <= best_.row.time) return "";
    return std::string(to_string(foretrace::loss_of(parts_of(row), parts_of(best_.row))));
  }

  void describe() {
    report_.global_batch = recorded_batches(question_);
    report_.training = run_of(question_.training, {.time = best_.row.time,
                                                   .lower = best_.row.lower,
                                                   .upper = best_.row.upper,
                                                   .gpus = best_.row.gpus,
                                                   .device = platform_.device.name});
    report_.command = "foretrace predict " + question_.model;
    if (!device_.empty()) report_.command += " --machine " + device_;
    for (const std::string& step : best_.layout.steps(question_))
      report_.command += fmt::format(" --with '{}'", step);
    const Trust trust = trust_of_recording(baseline_.prediction, AnswerAbout::changes);
    if (const std::string warning = trust_warning(trust); !warning.empty())
      report_.notes.add(Severity::warning, "trust in the recording is poor", warning);
    for (const std::string& assumption : best_.assumptions)
      report_.assumptions.push_back(assumption);
    report_.assumptions.emplace_back(
        "a micro-batch is the recorded batch; tp, cp and ep are 1, as a trace does not say how its "
        "layers could be divided");
    for (const auto& [reason, count] : refused_)
      report_.assumptions.push_back(fmt::format("{} left out: {}", counted(count, "layout"),
                                                shortened(reason, kLongestReason)));
  }

  const PlanQuestion& question_;
  Platform platform_;
  JobRanks job_;
  Baseline baseline_;
  double gpu_hour_ = 0;  ///< Price of one; 0 without prices.
  std::string device_;   ///< Device to move the work to; empty if it stays on the recorded one.
  PlanReport report_;
  RecordedCase best_;
  std::map<std::string, std::size_t> refused_;
};

/// Whether a file describes a model, which says with "use" what family it belongs to.
bool describes_model(const std::string& path) {
  constexpr std::streamsize kBeginning = 1 << 16;
  std::string head(static_cast<std::size_t>(kBeginning), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), kBeginning);
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head.find("\"use\"") != std::string::npos &&
         head.find("\"traceEvents\"") == std::string::npos;
}

}  // namespace

bool names_trace(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  if (std::filesystem::is_directory(path, error)) return true;
  return !describes_model(path) && holds_trace(path);
}

PlanReport plan_recorded(const PlanQuestion& question) { return RecordedPlanner(question).run(); }

}  // namespace foretrace
