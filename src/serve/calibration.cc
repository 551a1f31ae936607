#include "serve/calibration.h"

#include <algorithm>
#include <cmath>

#include "foretrace/error.h"
#include "serve/csv_table.h"
#include "workload/workload.h"

namespace foretrace::serve {
namespace {

constexpr std::int64_t kMax = 1 << 24;

/// "h100_sxm" is the GPU of a dgx-h100, "gb200" of racks.
std::string machine_of(const std::string& system) {
  const std::size_t sxm = system.find("_sxm");
  if (sxm != std::string::npos) return "dgx-" + system.substr(0, sxm);
  return system == "gb200" || system == "gb300" ? system + "-nvl72" : system;
}

/// Checkpoints of one model differ in what stands behind its name.
std::string preset_of(std::string model) {
  if (model.starts_with("DeepSeek-R1") || model.starts_with("DeepSeek-V3")) return "deepseek-v3";
  for (const char* end : {"-FP8", "-NVFP4", "-Instruct"}) {
    if (model.ends_with(end)) model = model.substr(0, model.rfind(end));
  }
  const auto presets = presets_recorded_as(model);
  return presets.empty() ? "" : std::string(presets.front());
}

/// An empty cell is 1.
std::int64_t ranks_in(const CsvRow& row, const char* name) {
  return row.cell(name).empty() ? 1 : row.whole(name, 1 << 20);
}

void add_row(const CsvRow& row, MeasuredDeployments& into) {
  if (row.cell("mode") != "agg") return void(++into.apart);
  MeasuredDeployment made{.id = row.cell("id"),
                          .model = preset_of(row.cell("model")),
                          .system = machine_of(row.cell("system")),
                          .scheduler = row.cell("backend"),
                          .version = row.cell("version"),
                          .weights = row.cell("weights"),
                          .flags = row.cell("flags")};
  if (made.weights.empty()) made.weights = "bf16";
  if (made.weights == "fp8" && row.cell("moe") == "fp8_block") made.weights = "fp8_block";
  if (made.model.empty() || row.cell("concurrency").empty() || row.cell("tp").empty())
    return void(++into.unknown);
  made.placement = {.tensor = ranks_in(row, "tp"), .data = ranks_in(row, "dp")};
  if (find_model(made.model).experts > 0) made.placement.expert = ranks_in(row, "moe_ep");
  made.input = row.whole("isl", kMax), made.output = row.whole("osl", kMax);
  made.concurrency = row.whole("concurrency", kMax);
  made.first_ms = row.number("ttft_ms", 1e-6, 1e9);
  made.gap_ms = row.number("tpot_ms", 1e-6, 1e9);
  into.rows.push_back(std::move(made));
}

/// Weights of rows that differ in one respect. Chosen.
constexpr double kOtherModel = .15, kOtherMachine = .4, kOtherEngine = .1, kOtherWeights = .3;
constexpr double kOtherVersion = .6;
/// Differences of logarithms after which a weight is e^-1/2: of lengths and load, of ranks.
constexpr double kLengths = 1.5, kRanks = 1;
/// Share of an error that measurements of the same deployment leave: two of them differ. Chosen so
/// that intervals hold four of five deployments with a fifth of the others given.
constexpr double kRepeats = .6;

/// Half of the 80 % interval of a normal distribution, in standard deviations.
constexpr double kHalfInterval = 1.28;

/// Weighted residuals, with one of 0 and weight 1 among them, which shrinks the mean.
class Residuals {
 public:
  void add(double residual, double weight) {
    weights_ += weight, sum_ += weight * residual, squares_ += weight * residual * residual;
  }
  double mean() const { return sum_ / weights_; }
  /// Half of the interval that holds 80 % of such residuals.
  double scatter() const {
    return kHalfInterval * std::sqrt(std::max(0., squares_ / weights_ - mean() * mean()));
  }

 private:
  double weights_ = 1, sum_ = 0, squares_ = 0;
};

double likeness(const MeasuredDeployment& a, const MeasuredDeployment& b) {
  double weight = 1;
  if (a.model != b.model) weight *= kOtherModel;
  if (a.system != b.system) weight *= kOtherMachine;
  if (a.scheduler != b.scheduler) weight *= kOtherEngine;
  if (a.weights != b.weights) weight *= kOtherWeights;
  if (!a.version.empty() && !b.version.empty() && a.version != b.version) weight *= kOtherVersion;
  double squares = 0;
  const auto add = [&](std::int64_t x, std::int64_t y, double scale) {
    const double d = std::log(static_cast<double>(x) / static_cast<double>(y)) / scale;
    squares += d * d;
  };
  add(a.input, b.input, kLengths), add(a.output, b.output, kLengths);
  add(a.concurrency, b.concurrency, kLengths);
  add(a.placement.tensor, b.placement.tensor, kRanks);
  add(a.placement.data, b.placement.data, kRanks);
  add(a.placement.expert, b.placement.expert, kRanks);
  return weight * std::exp(-squares / 2);
}

}  // namespace

MeasuredDeployments read_measured(const std::string& path) {
  MeasuredDeployments measured;
  each_csv_row(path, [&](const CsvRow& row) { add_row(row, measured); });
  if (measured.rows.empty()) throw Error(path + ": must have at least one row of a known model");
  return measured;
}

Correction prior_of(std::string_view scheduler) {
#define SERVE_ERROR(name, first, per_token) \
  if (scheduler == #name) return {.first_error = first, .per_token_error = per_token};
#include "serve/errors.def"
#undef SERVE_ERROR
  return {};
}

Correction ServeCalibration::of(const MeasuredDeployment& deployment) const {
  Correction correction = prior_of(deployment.scheduler);
  Residuals first, per_token;
  for (const Row& row : rows_) {
    const double weight = likeness(row.deployment, deployment);
    correction.weight += weight, correction.nearest = std::max(correction.nearest, weight);
    first.add(row.first, weight), per_token.add(row.per_token, weight);
  }
  const double left = kRepeats + (1 - kRepeats) / std::sqrt(1 + correction.weight);
  correction.first = first.mean(), correction.per_token = per_token.mean();
  correction.first_error = std::max(correction.first_error * left, first.scatter());
  correction.per_token_error = std::max(correction.per_token_error * left, per_token.scatter());
  return correction;
}

}  // namespace foretrace::serve
