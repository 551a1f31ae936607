#include "import/inspector/inspector_text.h"

#include <algorithm>
#include <cmath>

#include "base/contains.h"
#include "base/parse_number.h"

namespace foretrace {
namespace {

constexpr std::string_view kPrefix = "nccl_";
/// Times above are impossible.
constexpr double kMaxLoggedMicroseconds = 1e12;
/// Bandwidths above are impossible.
constexpr double kMaxLoggedGigabytes = 1e9;

/// The value of a label, or nothing: `labels` is `gpu="GPU0",nranks="4"`. No value that is read has
/// a quote in it.
std::string_view label(std::string_view labels, std::string_view name) {
  for (std::size_t at = 0; at < labels.size();) {
    const std::size_t equals = labels.find("=\"", at);
    if (equals == labels.npos) break;
    const std::size_t end = labels.find('"', equals + 2);
    if (end == labels.npos) break;
    if (labels.substr(at, equals - at) == name) return labels.substr(equals + 2, end - equals - 2);
    at = end + 1;
    if (at < labels.size() && labels[at] == ',') ++at;
  }
  return {};
}

/// The value of the label that one of two versions has.
std::string_view label(std::string_view labels, std::string_view name, std::string_view other) {
  const std::string_view found = label(labels, name);
  return found.empty() ? label(labels, other) : found;
}

std::uint32_t count(std::string_view text) { return parse_number<std::uint32_t>(text).value_or(0); }

}  // namespace

bool InspectorText::begins(std::string_view head) {
  return (head.starts_with(kPrefix) || head.starts_with('#')) &&
         contains_any(head, {"nccl_bus_bandwidth_gbs{", "nccl_collective_exec_time_microseconds{",
                             "nccl_p2p_bus_bandwidth_gbs{", "nccl_p2p_exec_time_microseconds{"});
}

bool InspectorText::read(std::string_view line) {
  const std::size_t open = line.find('{'), close = line.rfind('}');
  if (!line.starts_with(kPrefix) || open == line.npos || close == line.npos || close < open)
    return false;
  const std::string_view metric = line.substr(0, open);
  std::string_view rest = line.substr(close + 1);
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  const auto value = parse_number<double>(rest.substr(0, rest.find(' ')));
  if (!value || !(*value >= 0) || !std::isfinite(*value)) return false;
  const auto found = figures_.try_emplace(std::string(line.substr(open + 1, close - open - 1)));
  if (metric.ends_with("_exec_time_microseconds"))
    found.first->second.microseconds = *value;
  else if (metric.ends_with("_bus_bandwidth_gbs"))
    found.first->second.bus_gigabytes = *value;
  return true;
}

void InspectorText::each(const std::function<void(const InspectedOperation&)>& visit) const {
  for (const auto& [labels, figures] : figures_) {
    const std::string_view message = label(labels, "p2p_operation");
    InspectedOperation found{.operation = std::string(label(labels, "collective", "p2p_operation")),
                             .is_point_to_point = !message.empty(),
                             .communicator = std::string(label(labels, "comm_id", "comm_name")),
                             .name = std::string(label(labels, "comm_name")),
                             .rank = count(label(labels, "rank")),
                             .ranks = count(label(labels, "nranks", "n_ranks")),
                             .nodes = count(label(labels, "n_nodes")),
                             .number = {},
                             .bytes = {},
                             .bus_bandwidth = figures.bus_gigabytes * 1e9};
    if (figures.microseconds <= 0 || figures.microseconds > kMaxLoggedMicroseconds ||
        figures.bus_gigabytes > kMaxLoggedGigabytes || found.operation.empty() ||
        found.rank >= found.ranks || found.nodes == 0 || found.nodes > found.ranks)
      continue;
    found.time = from_microseconds(figures.microseconds);
    visit(found);
  }
}

}  // namespace foretrace
