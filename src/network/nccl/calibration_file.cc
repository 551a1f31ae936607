#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "network/nccl/calibration.h"

namespace foretrace {
namespace {

constexpr const char* kSchema = "foretrace.calibration/2";

constexpr std::size_t kMaxShown = 60;  ///< Bytes of a value in an error.

/// The name of a number in the file, and the variable that receives it.
using NamedNumber = std::pair<const char*, double*>;

const nlohmann::json& member(const nlohmann::json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end())
    throw Error(fmt::format("must be an object with \"{}\", got {}", key,
                            shortened(json_line(json), kMaxShown)));
  return *found;
}

const nlohmann::json& list_in(const nlohmann::json& json, const char* key) {
  const nlohmann::json& list = member(json, key);
  if (!list.is_array() || list.empty())
    throw Error(fmt::format("{}: must be a list that is not empty, got {}", key,
                            shortened(json_line(list), kMaxShown)));
  return list;
}

void read_numbers(const nlohmann::json& json, std::initializer_list<NamedNumber> numbers) {
  for (const auto& [name, value] : numbers) {
    const nlohmann::json& found = member(json, name);
    if (!found.is_number() || !(found.get<double>() > 0))
      throw Error(fmt::format("{}: must be a number greater than 0, got {}", name,
                              shortened(json_line(found), kMaxShown)));
    *value = found.get<double>();
  }
}

/// Reads a number of rows, nodes or ranks.
std::uint32_t read_count(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = member(json, key);
  return within(key, [&] {
    const std::int64_t count = whole_number(value);
    if (count < 0 || count > UINT32_MAX)
      throw Error(fmt::format("must be from 0 to {}, got {}", UINT32_MAX, count));
    return static_cast<std::uint32_t>(count);
  });
}

/// Reads a size and the error at that size.
std::pair<double, double> read_residual(const nlohmann::json& json) {
  const bool is_pair =
      json.is_array() && json.size() == 2 && json[0].is_number() && json[1].is_number();
  if (!is_pair)
    throw Error("residuals: must be pairs of numbers, got " +
                shortened(json_line(json), kMaxShown));
  return {json[0].get<double>(), json[1].get<double>()};
}

}  // namespace

std::vector<std::string> Calibration::summary() const {
  std::vector<std::string> lines;
  for (const auto& [operation, fit] : fits_) {
    const CollectiveModel& model = fit.model;
    const auto text = [](double value) { return to_fixed(value, value < 10 ? 2 : 1); };
    lines.push_back(fmt::format(
        "{}: 6 numbers and {} from {}: base {} us, hop {} us within and {} us across nodes, {} "
        "GB/s within and {} GB/s a NIC, mixed {}",
        to_string(operation), counted(fit.residuals.size(), "shape"), counted(fit.rows, "row"),
        text(model.base), text(model.within_hop), text(model.across_hop), text(model.within),
        text(model.across), text(model.mixed)));
  }
  return lines;
}

nlohmann::json Calibration::json() const {
  nlohmann::json fits = nlohmann::json::object();
  for (const auto& [operation, fit] : fits_) {
    nlohmann::json shapes = nlohmann::json::array();
    for (const auto& [shape, points] : fit.residuals) {
      nlohmann::json residuals = nlohmann::json::array();
      for (const auto& [size, error] : points) residuals.push_back({size, error});
      shapes.push_back(
          {{"nodes", shape.nodes}, {"ranks_per_node", shape.per_node}, {"residuals", residuals}});
    }
    fits[std::string(to_string(operation))] = {{"rows", fit.rows},
                                               {"base_us", fit.model.base},
                                               {"within_hop_us", fit.model.within_hop},
                                               {"across_hop_us", fit.model.across_hop},
                                               {"within_gbps", fit.model.within},
                                               {"across_gbps", fit.model.across},
                                               {"mixed", fit.model.mixed},
                                               {"shapes", shapes}};
  }
  return {{"schema", kSchema},
          {"rows", rows_},
          {"spread_of_sizes", spreads_.sizes},
          {"spread_of_shapes", spreads_.shapes},
          {"spread_of_kinds", spreads_.kinds},
          {"operations", fits}};
}

Calibration::Calibration(const nlohmann::json& json) {
  if (!json.is_object() || json.value("schema", nlohmann::json()) != kSchema)
    throw Error(fmt::format("must be a calibration file (schema \"{}\")", kSchema));
  rows_ = read_count(json, "rows");
  read_numbers(json, {{"spread_of_sizes", &spreads_.sizes},
                      {"spread_of_shapes", &spreads_.shapes},
                      {"spread_of_kinds", &spreads_.kinds}});
  for (const auto& operation : member(json, "operations").items()) {
    const nlohmann::json& entry = operation.value();
    Fit& fit = fits_[read_operation(operation.key())];
    within(operation.key(), [&] {
      fit.rows = read_count(entry, "rows");
      CollectiveModel& model = fit.model;
      read_numbers(entry, {{"base_us", &model.base},
                           {"within_hop_us", &model.within_hop},
                           {"across_hop_us", &model.across_hop},
                           {"within_gbps", &model.within},
                           {"across_gbps", &model.across},
                           {"mixed", &model.mixed}});
      for (const nlohmann::json& shape : list_in(entry, "shapes")) {
        auto& points =
            fit.residuals[{read_count(shape, "nodes"), read_count(shape, "ranks_per_node")}];
        for (const nlohmann::json& point : list_in(shape, "residuals"))
          points.push_back(read_residual(point));
        std::sort(points.begin(), points.end());
      }
    });
  }
}

}  // namespace foretrace
