#include "plan/plan.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "ask/generate/calibrated.h"
#include "base/fields/assignments.h"
#include "base/files/json_file.h"
#include "base/wording.h"
#include "foretrace/ask/plan.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kSteps = 1000;  ///< That a price is of.

struct GpuPrice {
  double per_hour = 0;
  std::string currency;
};

/// "2.5 USD/h"
GpuPrice read_price(const std::string& text) {
  GpuPrice price;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, price.per_hour);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || price.per_hour <= 0 || unit.size() < 3 || !unit.ends_with("/h"))
    throw Error("must be the price of a GPU for an hour, such as \"2.5 USD/h\", got \"" + text +
                "\"");
  price.currency = unit.substr(0, unit.size() - 2);
  return price;
}

GpuPrice price_of(const std::string& path, const std::string& device) {
  const nlohmann::json json = read_json_file(path);
  return within(path, [&] {
    const auto prices = json.find("prices");
    if (!json.is_object() || prices == json.end() || !prices->is_object())
      throw Error("must be {\"prices\": {\"" + device + "\": \"2.5 USD/h\", ...}}");
    // The longest name that the device's begins with: "h100" of h100-sxm5-80gb.
    std::vector<std::string> known;
    std::string found;
    for (const auto& [name, value] : prices->items()) {
      known.push_back(name);
      if (letters_and_digits(device).starts_with(letters_and_digits(name)) &&
          name.size() > found.size())
        found = name;
    }
    if (!found.empty()) {
      return within("prices: " + found, [&] {
        const nlohmann::json& text = (*prices)[found];
        if (!text.is_string()) throw Error("must be a text with its unit, such as \"2.5 USD/h\"");
        return read_price(text.get<std::string>());
      });
    }
    throw Error("prices: must have one of " + device + ", got " +
                (known.empty() ? "none" : joined(known)));
  });
}

/// The settings that a text names, apart from what is not searched.
std::set<std::string> named_settings(const std::string& text) {
  if (text.empty()) return {};
  Layout layout;
  std::set<std::string> names;
  const nlohmann::json settings = read_assignments(text, layout);
  for (const auto& [name, value] : settings.items()) names.insert(name);
  for (const char* common : {"precision", "fused_attention", "lora", "host_checkpoints",
                             "host_optimizer", "overlap", "global_batch", "embedding_is_layer"})
    names.erase(common);
  return names;
}

class Planner {
 public:
  explicit Planner(const PlanQuestion& question) : question_(question) {
    if (question.model.empty()) throw Error("plan: which MODEL? See `foretrace list models`");
    if (question.machine.empty())
      throw Error("--machine: must be given; see `foretrace list machines`");
    space_.step.name = question.model;
    space_.step.workload = find_workload(question.model);
    space_.step.platform = find_platform(question.machine);
    space_.memory = question.memory, space_.shown = question.top;
    read_layouts();
    if (!question.prices.empty()) {
      const GpuPrice price = price_of(question.prices, space_.step.platform.device.name);
      space_.gpu_hour = price.per_hour, report_.currency = price.currency;
    }
  }

  PlanReport run() {
    GenerateQuestion steps{.model = question_.model, .machine = question_.machine};
    steps.layout = question_.layout, steps.only = question_.only;
    steps.calibrate = question_.calibrate, steps.calibrate_rows = question_.calibrate_rows;
    const StepCalibration calibration = calibrated(steps, report_.assumptions).calibration;
    if (!question_.measured.empty()) {
      steps.against = question_.measured;
      report_.measured = generate_step(steps);
    }
    const PlanOutcome outcome = plan_layouts(space_, calibration);
    report_.model = question_.model, report_.machine = question_.machine;
    report_.global_batch = space_.step.layout.global_batch;
    report_.limit = space_.memory ? *space_.memory : space_.step.platform.device.memory;
    report_.layouts = outcome.candidates, report_.replayed = outcome.replayed;
    for (const PlannedLayout& one : outcome.best) report_.ranked.push_back(row_of(one));
    for (const PlannedLayout& one : outcome.plain) add(one, "plain data parallelism");
    if (own_) add(planned_layout(space_, *own_, calibration, outcome.best.front()), "yours");
    for (const PlannedLayout& one : outcome.front) report_.front.push_back(row_of(one));
    for (const auto& [loss, count] : outcome.losses)
      report_.losses.emplace_back(to_string(loss), count);
    for (std::size_t i = 0; i < launch_programs().size(); ++i) {
      auto& launch = report_.launches.emplace_back();
      launch.program = launch_programs()[i].name;
      if (const auto& one = outcome.launched[i])
        launch.row = row_of(*one), launch.flags = launch_programs()[i].flags(one->layout);
    }
    report_.assumptions.emplace_back(
        "flags of programs are recalled from their releases of 2025; micro-batches are powers of "
        "two; schedules with two copies of the weights are left out");
    return std::move(report_);
  }

 private:
  /// Settings that all layouts share are those of the user's own layout, then the fixed ones.
  void read_layouts() {
    Layout& base = space_.step.layout;
    const DeviceModel& device = space_.step.platform.device;
    if (device.bf16.flops_per_second <= 0) base.precision = "fp16";
    if (!question_.layout.empty()) {
      within("--layout", [&] { read_assigned(question_.layout, base); });
      if (question_.global_batch > 0) base.global_batch = question_.global_batch;
      within("--layout", [&] { base.check(); });
      own_ = base;
    }
    if (question_.global_batch > 0) base.global_batch = question_.global_batch;
    if (!question_.fix.empty()) within("--fix", [&] { read_assigned(question_.fix, base); });
    space_.fixed = named_settings(question_.fix);
    if (base.global_batch == 1 && question_.global_batch != 1)
      throw Error("--global-batch: must be given, the samples of a step on all GPUs together");
    space_.gpus = question_.gpus;
    if (space_.gpus.empty() && own_) space_.gpus = {own_->devices()};
    if (space_.gpus.empty()) throw Error("--gpus: must be given, such as 64 or 8..1024");
  }

  /// A layout that is ranked already is marked there.
  void add(const PlannedLayout& layout, const std::string& role) {
    PlanRow row = row_of(layout);
    const auto same = std::ranges::find_if(report_.ranked, [&](const PlanRow& other) {
      return other.layout == row.layout && other.role.empty();
    });
    row.role = role;
    if (same == report_.ranked.end())
      report_.ranked.push_back(std::move(row));
    else
      same->role = role;
  }

  PlanRow row_of(const PlannedLayout& one) const {
    const StepPrice& price = one.price.price;
    const double factor = one.price.us / price.step;
    PlanRow row;
    row.layout = layout_text(one.layout), row.gpus = one.layout.devices();
    row.time = from_microseconds(one.price.us);
    row.lower = from_microseconds(one.price.lower_us);
    row.upper = from_microseconds(one.price.upper_us);
    row.bubble = from_microseconds(price.bubble * factor);
    row.network = from_microseconds((price.tensor + price.sends + price.gradients) * factor);
    row.kernels = row.time - row.bubble - row.network;
    row.reserved = one.price.memory.reserved, row.fits = one.fits;
    row.is_covered = one.price.is_covered, row.loss = to_string(one.loss);
    if (space_.gpu_hour > 0) row.cost = one.cost * kSteps;
    return row;
  }

  const PlanQuestion& question_;
  PlanSpace space_;
  std::optional<Layout> own_;
  PlanReport report_;
};

}  // namespace

PlanReport plan(const PlanQuestion& question) { return Planner(question).run(); }

}  // namespace foretrace
