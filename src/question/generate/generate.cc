#include "foretrace/question/generate.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fields/assignments.h"
#include "base/statistics.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/launch.h"
#include "price/calibration.h"
#include "question/generate/measured_rows.h"

namespace foretrace {
namespace {

/// Default number of rows to fit to: this many, or this share of the table if it is more.
constexpr std::size_t kMinFitted = 5;
constexpr double kFittedShare = .05;

std::string largest_parts(const StepMemory& memory) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : memory.parts) {
    if (parts.size() < kNamed) parts.push_back(fmt::format("{} {}", name, to_text(bytes)));
  }
  return joined(parts);
}

/// Adds the parts of the step time. They are scaled to sum to it, so that time added by the process
/// is spread over all parts.
void add_breakdown(const CalibratedPrice& priced, GeneratedStep& step) {
  const StepPrice& price = priced.price;
  const double factor = priced.us / price.step;
  Nanoseconds left = step.time;
  const auto add = [&](const char* name, double us) {
    if (us <= 0) return;
    step.breakdown.emplace_back(name, from_microseconds(us * factor));
    left -= step.breakdown.back().second;
  };
  add("tensor and expert communication", price.tensor);
  add("pipeline bubble", price.bubble);
  add("sends between stages", price.sends);
  add("gradients", price.gradients);
  add("optimizer", price.optimizer);
  add("waiting for the slowest host", price.late);
  add("other", price.other);
  step.breakdown.insert(step.breakdown.begin(), {"compute", left});
}

void add_layers(const MeasuredStep& asked, GeneratedStep& step) {
  for (const LayerRow& row : asked.workload->layers(slice_of(asked.layout))) {
    const Bytes kept{std::llround(kept_of(row, asked.layout))};
    const double parameters = row.parameters + row.expert_parameters;
    const auto same = std::ranges::find_if(step.layers, [&](const auto& other) {
      return other.name == row.name && other.parameters == parameters;
    });
    if (same != step.layers.end()) {
      same->count += row.count;
      continue;
    }
    step.layers.push_back({row.name, row.count, parameters, row.operations, kept, row.output});
  }
}

GeneratedStep generated_step(const MeasuredStep& asked, const CalibratedPrice& priced) {
  GeneratedStep step{.model = asked.name,
                     .machine = asked.platform.name,
                     .layout = layout_text(asked.layout),
                     .parameters = asked.workload->parameters(),
                     .devices = asked.layout.devices()};
  step.time = from_microseconds(priced.us);
  step.lower = from_microseconds(priced.lower_us), step.upper = from_microseconds(priced.upper_us);
  add_breakdown(priced, step);
  add_layers(asked, step);
  step.memory = priced.memory.parts;
  step.allocated = priced.memory.allocated, step.reserved = priced.memory.reserved;
  step.device_memory = asked.platform.device.memory;
  step.out_of_memory = out_of_memory(priced.memory, asked.platform);
  step.is_covered = priced.is_covered;
  const double seconds = priced.us * 1e-6;
  step.samples_per_second = static_cast<double>(asked.layout.global_batch) / seconds;
  step.tokens_per_second = step.samples_per_second * static_cast<double>(asked.workload->tokens());
  step.utilization = utilization_of(priced, asked.layout, asked.platform);
  return step;
}

RowDefaults defaults_of(const GenerateQuestion& question) {
  RowDefaults defaults{
      .workload = question.model, .machine = question.machine, .only = question.only};
  defaults.stated = question.layout;
  within("--layout", [&] { read_assigned(question.layout, defaults.layout); });
  return defaults;
}

/// The rows to fit to, chosen for the shapes that are known least; rows that ran out of memory are
/// left out.
std::vector<MeasuredRow> fitted_rows(const GenerateQuestion& question) {
  Notes notes;
  const std::vector<MeasuredRow> rows =
      read_measured_rows(question.calibrate, defaults_of(question), notes);
  const std::int64_t wanted = question.calibrate_rows;
  std::vector<MeasuredRow> timed;
  std::vector<std::vector<double>> shapes;
  for (const MeasuredRow& row : rows) {
    if (row.out_of_memory || row.is_guessed) continue;
    timed.push_back(row);
    shapes.push_back(shape_of(row.step));
  }
  if (wanted == 0) return timed;
  const std::size_t all = rows.size() + static_cast<std::size_t>(notes.count(kLeftOut));
  const auto share = static_cast<std::size_t>(static_cast<double>(all) * kFittedShare);
  const std::size_t count =
      wanted < 0 ? std::max(kMinFitted, share) : static_cast<std::size_t>(wanted);
  std::vector<MeasuredRow> chosen;
  for (const std::size_t place : chosen_shapes(shapes, count)) chosen.push_back(timed[place]);
  return chosen;
}

GeneratedRow compared(const MeasuredRow& row, const CalibratedPrice& priced) {
  GeneratedRow compared{.number = row.number, .name = row.step.name};
  compared.time = from_microseconds(priced.us);
  compared.lower = from_microseconds(priced.lower_us),
  compared.upper = from_microseconds(priced.upper_us);
  if (!row.out_of_memory) compared.measured = from_microseconds(row.step.us);
  compared.allocated = priced.memory.allocated;
  compared.measured_memory = {std::llround(row.memory_bytes)};
  compared.is_covered = priced.is_covered;
  compared.out_of_memory = out_of_memory(priced.memory, row.step.platform);
  compared.runs_out = row.cannot_run || runs_out(priced.memory, row.step.platform);
  if (row.cannot_run) compared.out_of_memory = 1;
  compared.ran_out = row.out_of_memory;
  compared.is_guessed = row.is_guessed;
  return compared;
}

/// How rows that do not say their precision, or what replicas share, agree with each way to read
/// them: the first by times, the second by memory.
class Readings {
 public:
  void add(const MeasuredRow& row, const CalibratedPrice& priced, StepCalibration& calibration) {
    if (row.is_guessed || row.out_of_memory || row.cannot_run) return;
    if (!row.states_sharding && row.memory_bytes > 0) {
      MeasuredStep shared = row.step;
      shared.layout.zero = 1;
      whole_.push_back(memory_error(row, priced.memory));
      shared_.push_back(memory_error(row, calibration.memory(shared)));
    }
    if (row.states_precision) return;
    MeasuredStep other = row.step;
    other.layout.precision = is_narrow(row) ? row.step.platform.device.usual_precision() : "fp8";
    const double us = calibration.price(other).us;
    (is_narrow(row) ? narrow_ : usual_).push_back(std::abs(priced.us / row.step.us - 1));
    (is_narrow(row) ? usual_ : narrow_).push_back(std::abs(us / row.step.us - 1));
  }
  void tell(Notes& notes) const {
    if (!whole_.empty())
      notes.add(Severity::info,
                fmt::format("rows do not say what replicas share: their memory is off by {:.1f} % "
                            "(median) if nothing, and by {:.1f} % if the optimizer's state "
                            "(zero=1 in --layout)",
                            100 * median(whole_), 100 * median(shared_)));
    if (narrow_.empty()) return;
    notes.add(Severity::info,
              fmt::format("rows without a precision are off by {:.1f} % (median) if they ran in "
                          "FP8, and by {:.1f} % if in half precision",
                          100 * median(narrow_), 100 * median(usual_)));
  }

 private:
  static bool is_narrow(const MeasuredRow& row) {
    return row.step.layout.precision.starts_with("fp8") || row.step.layout.precision == "fp4";
  }

  static double memory_error(const MeasuredRow& row, const StepMemory& memory) {
    return std::abs(static_cast<double>(memory.allocated.count) / row.memory_bytes - 1);
  }

  std::vector<double> narrow_, usual_, whole_, shared_;
};

void compare(const GenerateQuestion& question, const std::set<std::size_t>& fitted,
             StepCalibration& calibration, GenerationReport& report) {
  const std::vector<MeasuredRow> rows =
      read_measured_rows(question.against, defaults_of(question), report.notes);
  std::vector<std::pair<std::string, double>> groups;
  Readings readings;
  for (const MeasuredRow& row : rows) {
    const CalibratedPrice priced = row.cannot_run ? CalibratedPrice{} : calibration.price(row.step);
    readings.add(row, priced, calibration);
    report.rows.push_back(compared(row, priced));
    report.rows.back().was_fitted =
        question.against == question.calibrate && fitted.contains(row.number);
    groups.emplace_back(row.group, static_cast<double>(row.step.layout.global_batch));
  }
  readings.tell(report.notes);
  report.score = score_of(report.rows, groups);
}

/// Says which kernels were assumed, where they decide and nothing was fitted.
void assume_kernels(const MeasuredStep& asked, const StepPrice& price,
                    std::vector<std::string>& assumptions) {
  constexpr double kLongAttention = .25;
  const double share = price.attention / price.step;
  if (share >= kLongAttention && asked.layout.attention_kernel == "usual")
    assumptions.push_back(
        fmt::format("attention takes {:.0f} % of the step with the kernel that {} usually has; "
                    "attention_kernel in --layout says another",
                    100 * share, asked.layout.framework));
  if (asked.layout.pointwise == "usual" && slice_of(asked.layout).eager)
    assumptions.push_back(
        fmt::format("norms, rotary embedding and gates are an operator after the other, as in "
                    "models of Hugging Face with {}; with torch.compile or Liger, say "
                    "pointwise=fused",
                    asked.layout.framework));
}

void answer_question(const GenerateQuestion& question, StepCalibration& calibration,
                     GenerationReport& report) {
  if (question.machine.empty())
    throw Error("--machine: must be given; see `foretrace list machines`");
  MeasuredStep asked{.name = question.model};
  asked.workload = find_workload(question.model);
  asked.layout = defaults_of(question).layout;
  within("--layout", [&] { asked.layout.check(); });
  asked.platform = find_platform(question.machine);
  if (question.memory_limit) asked.platform.device.memory = *question.memory_limit;
  // Recomputation that is not stated may be chosen: the least that fits.
  std::string chosen;
  if (question.layout.find("recompute=") == std::string::npos) {
    asked.layout = calibration.fitting(asked);
    const double share = asked.layout.recompute_share;
    if (asked.layout.recompute != "none")
      chosen = "recompute=" + asked.layout.recompute +
               (share < 1 ? ",recompute_share=" + to_text(share) : "");
  }
  const CalibratedPrice priced = calibration.price(asked);
  const bool fits = !runs_out(priced.memory, asked.platform);
  if (!chosen.empty() && fits)
    report.assumptions.push_back(
        fmt::format("the layout fits only with {}, which was not stated", chosen));
  if (!fits)
    report.assumptions.push_back(fmt::format(
        "memory does not fit{}: a device has {}, the step needs {}, most of it {}",
        chosen.empty() ? "" : ", even with " + chosen, to_text(asked.platform.device.memory),
        to_text(priced.memory.reserved), largest_parts(priced.memory)));
  if (question.calibrate.empty()) assume_kernels(asked, priced.price, report.assumptions);
  report.step = generated_step(asked, priced);
  report.training =
      run_of(question.training, {.time = report.step->time,
                                 .lower = report.step->lower,
                                 .upper = report.step->upper,
                                 .gpus = report.step->devices,
                                 .device = asked.platform.device.name,
                                 .tokens = static_cast<double>(asked.layout.global_batch) *
                                           static_cast<double>(asked.workload->tokens())});
}

}  // namespace

CalibratedSteps calibrate_steps(const GenerateQuestion& question,
                                std::vector<std::string>& assumptions) {
  CalibratedSteps found;
  if (question.calibrate.empty()) {
    assumptions.emplace_back(
        "constants are those of published steps of Megatron-LM on A100; fit them to a few measured "
        "steps of yours with --calibrate");
    return found;
  }
  std::vector<MeasuredStep> steps;
  for (const MeasuredRow& row : fitted_rows(question))
    steps.push_back(row.step), found.rows.insert(row.number);
  found.calibration = StepCalibration(steps);
  return found;
}

namespace {

/// The question with what its configuration file says.
GenerateQuestion with_config(GenerateQuestion question, std::vector<std::string>& assumptions) {
  if (question.config.empty()) {
    if (question.gpus)
      throw Error("--gpus: is for --config; with --layout, say dp=N, the data parallel ranks");
    return question;
  }
  if (!question.against.empty())
    throw Error("--config: must not be given together with --against, whose rows have layouts");
  const LaunchFile file = read_launch_file(question.config);
  question.layout = launch_layout(file, question.layout, question.gpus.value_or(0));
  question.model = launch_model(file, question.model);
  assumptions.insert(assumptions.end(), file.settings.notes.begin(), file.settings.notes.end());
  return question;
}

}  // namespace

GenerationReport generate_step(const GenerateQuestion& asked) {
  GenerationReport report{.calibration = asked.calibrate};
  const GenerateQuestion question = with_config(asked, report.assumptions);
  if (question.model.empty() && question.against.empty())
    throw Error("MODEL: must be given, or --against a table that names models");
  if (question.training.is_asked() && !question.against.empty())
    throw Error(
        "--tokens, --total-steps, --prices and --power: must not be given together with --against");
  auto [calibration, fitted] = calibrate_steps(question, report.assumptions);
  if (!question.calibrate.empty()) {
    for (const ConstantEntry& constant : constants())
      report.constants.emplace_back(constant.name, calibration.fitted().*constant.value,
                                    constant.unit);
  }
  if (!question.against.empty())
    compare(question, fitted, calibration, report);
  else
    answer_question(question, calibration, report);
  return report;
}

}  // namespace foretrace
