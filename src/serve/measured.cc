#include "serve/measured.h"

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

}  // namespace

MeasuredDeployments read_measured(const std::string& path) {
  MeasuredDeployments measured;
  each_csv_row(path, [&](const CsvRow& row) { add_row(row, measured); });
  if (measured.rows.empty()) throw Error(path + ": must have at least one row of a known model");
  return measured;
}

}  // namespace foretrace::serve
