#include "serve/measured.h"

#include <fmt/core.h>
#include <fstream>

#include "base/files/csv_rows.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "workload/workload.h"

namespace foretrace::serve {
namespace {

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

class MeasuredReader {
 public:
  explicit MeasuredReader(std::vector<std::string> heading) : heading_(std::move(heading)) {}

  void add(const std::string& line, MeasuredDeployments& into) {
    cells_ = csv_cells(line);
    if (cells_.size() != heading_.size())
      throw Error(fmt::format("must have {} cells, got {}", heading_.size(), cells_.size()));
    if (cell("mode") != "agg") return void(++into.apart);
    MeasuredDeployment row{.id = cell("id"),
                           .model = preset_of(cell("model")),
                           .system = machine_of(cell("system")),
                           .scheduler = cell("backend"),
                           .version = cell("version"),
                           .weights = cell("weights"),
                           .flags = cell("flags")};
    if (row.weights.empty()) row.weights = "bf16";
    if (row.weights == "fp8" && cell("moe") == "fp8_block") row.weights = "fp8_block";
    if (row.model.empty() || cell("concurrency").empty() || cell("tp").empty())
      return void(++into.unknown);
    row.placement = {.tensor = whole("tp"), .data = whole("dp")};
    if (find_workload(row.model)->traits().back() > 0) row.placement.expert = whole("moe_ep");
    if (row.scheduler == "sglang" && cell("measured").empty()) row.range = 1;
    row.input = whole("isl"), row.output = whole("osl"), row.concurrency = whole("concurrency");
    row.first_ms = number("ttft_ms"), row.gap_ms = number("tpot_ms");
    into.rows.push_back(std::move(row));
  }

 private:
  const std::string& cell(const std::string& name) const {
    return cells_[column_of(heading_, name)];
  }
  /// An empty cell is 1.
  std::int64_t whole(const std::string& name) const {
    if (cell(name).empty()) return 1;
    const auto value = parse_number<double>(cell(name));
    if (!value || !(*value >= 1) || *value > 1e9)
      throw Error(fmt::format("{}: must be from 1 to 1e9, got \"{}\"", name, cell(name)));
    return static_cast<std::int64_t>(*value);
  }
  double number(const std::string& name) const {
    const auto value = parse_number<double>(cell(name));
    if (!value || !(*value > 0) || *value > 1e9)
      throw Error(fmt::format("{}: must be above 0, got \"{}\"", name, cell(name)));
    return *value;
  }

  std::vector<std::string> heading_, cells_;
};

}  // namespace

MeasuredDeployments read_measured(const std::string& path) {
  return within(path, [&] {
    std::ifstream in(path);
    std::string line;
    if (!in || !std::getline(in, line))
      throw Error("must have a heading: model,system,backend,...");
    if (line.ends_with('\r')) line.pop_back();
    MeasuredReader reader(csv_cells(line));
    MeasuredDeployments measured;
    for (int number = 2; std::getline(in, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      within("line " + std::to_string(number), [&] { reader.add(line, measured); });
    }
    if (measured.rows.empty()) throw Error("must have at least one row of a known model");
    return measured;
  });
}

}  // namespace foretrace::serve
