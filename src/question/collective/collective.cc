// Answers a question about collectives: places the ranks, reads measured rows, and prices a row for
// each size.

#include "foretrace/question/collective.h"

#include <algorithm>
#include <fmt/core.h>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/json_file.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "base/statistics.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "network/nccl/measured.h"
#include "question/collective/pricing.h"
#include "question/collective/recorded.h"

namespace foretrace {
namespace {

/// Reads the rows of a table or of a recording.
std::vector<MeasuredCollective> rows_of(const CollectiveQuestion& question, const std::string& path,
                                        Operation operation) {
  if (!is_recording(path)) return read_measured_file(path, operation, question.only);
  return measured_in(path, recorded_in(question, path).rows);
}

/// Identity of measured rows: operation, nodes, ranks, bytes.
using Key = std::tuple<Operation, std::uint32_t, std::uint32_t, std::int64_t>;
using MeasuredTimes = std::map<Key, std::vector<double>>;

struct ComparedRows {
  MeasuredTimes rows;
  Recording recording;  ///< Empty unless one is compared with.
  bool has(const Key& key) const { return rows.contains(key); }
};

Key key_of(const MeasuredCollective& row) {
  return {row.operation, row.nodes, row.ranks, row.bytes.count};
}

bool calibrates(const CollectiveQuestion& question, const MeasuredCollective& row) {
  const auto& nodes = question.calibrate_nodes;
  return nodes.empty() || std::find(nodes.begin(), nodes.end(), row.nodes) != nodes.end();
}

RankPlaces places_for(const CollectiveQuestion& question,
                      const std::vector<MeasuredCollective>& rows) {
  const auto most = std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(a.nodes, a.ranks) < std::pair(b.nodes, b.ranks);
  });
  // A second node is included even if none was measured, because the machine describes its network.
  const std::uint32_t per_node = std::max(1U, most->ranks / most->nodes);
  return MachinePricing(question, std::max(2U, most->nodes) * per_node, per_node, nullptr).places();
}

std::optional<Calibration> calibration_of(const CollectiveQuestion& question, Operation operation) {
  if (question.calibrate.empty()) return std::nullopt;
  if (question.machine.empty()) throw Error("--calibrate needs --machine");
  if (question.calibrate.ends_with(".json")) {
    return within(question.calibrate, [&] {
      return std::optional(Calibration(parse_json_text(read_text_file(question.calibrate))));
    });
  }
  std::vector<MeasuredCollective> rows = rows_of(question, question.calibrate, operation);
  std::erase_if(rows, [&](const auto& row) { return !calibrates(question, row); });
  if (rows.empty()) throw Error(question.calibrate + ": has no rows with these numbers of nodes");
  return Calibration(rows, places_for(question, rows));
}

/// Whether the question names an operation or an algorithm, so that only that is priced.
bool names_operation(const CollectiveQuestion& question) {
  return question.name != "auto" || !question.operation.empty() || question.algorithm != "auto";
}

/// The operations of rows, each once: "all_gather, all_reduce".
std::string operations_of(const std::vector<MeasuredCollective>& rows) {
  std::set<std::string_view> names;
  for (const MeasuredCollective& row : rows) names.insert(to_string(row.operation));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The rows to compare with, except those that the calibration used.
ComparedRows compared_rows(const CollectiveQuestion& question,
                           const RequestedCollective& requested) {
  ComparedRows compared;
  if (question.against.empty()) return compared;
  const bool same = question.against == question.calibrate;
  std::vector<MeasuredCollective> rows;
  if (is_recording(question.against)) {
    compared.recording = recorded_in(question, question.against);
    if (!names_operation(question)) return compared;
    if (question.machine.empty())
      throw Error(
          "--against: a recording needs --machine to price one operation; name auto to "
          "see what was recorded");
    rows = measured_in(question.against, compared.recording.rows);
  } else {
    rows = read_measured_file(question.against, requested.operation, question.only);
  }
  for (const MeasuredCollective& row : rows) {
    if (row.operation != requested.operation || (same && calibrates(question, row))) continue;
    compared.rows[key_of(row)].push_back(row.us);
  }
  if (compared.rows.empty())
    throw Error(fmt::format("{}: has no {}{}; it has {}", question.against,
                            to_string(requested.operation),
                            same ? " that the calibration did not see" : "", operations_of(rows)));
  return compared;
}

/// Shapes to price, as ranks and ranks per node: the shape in the question, or all measured ones.
std::vector<std::pair<std::int64_t, std::int64_t>> shapes_of(const CollectiveQuestion& question,
                                                             const ComparedRows& compared) {
  if (question.ranks > 0 || compared.rows.empty())
    return {{question.ranks, question.ranks_per_node}};
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const auto& [key, times] : compared.rows) {
    const auto [operation, nodes, ranks, bytes] = key;
    const std::pair<std::int64_t, std::int64_t> shape{ranks, (ranks + nodes - 1) / nodes};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

std::vector<Bytes> sizes_of(const CollectiveQuestion& question, const CollectiveRow& shape,
                            const ComparedRows& compared, Operation operation) {
  if (!question.sizes.empty()) return question.sizes;
  std::vector<Bytes> sizes;
  for (const auto& [key, times] : compared.rows) {
    const auto [row_operation, nodes, ranks, bytes] = key;
    if (row_operation == operation && nodes == shape.nodes && ranks == shape.ranks)
      sizes.push_back({bytes});
  }
  return sizes.empty() ? read_sizes("8..8GB/x2") : sizes;
}

void set_measured(CollectiveRow& row, Operation operation, const ComparedRows& compared) {
  const auto found = compared.rows.find({operation, row.nodes, row.ranks, row.bytes.count});
  if (found == compared.rows.end()) return;
  row.measured = from_microseconds(lower_median(found->second));
}

CollectiveError error_of(const std::string& shape, std::vector<double> errors) {
  const double highest = *std::max_element(errors.begin(), errors.end());
  return {shape, errors.size(), median(errors), highest};
}

constexpr std::int64_t kLarge = 1 << 20;  ///< Bytes from which bandwidth counts more than latency.

void add_errors(CollectiveReport& report) {
  std::map<std::string, std::vector<double>> by_shape;
  std::vector<double> all, large;
  const auto take = [&](const auto& row) {
    const std::optional<double> error = row.error();
    if (!error) return;
    const double size = std::abs(*error);
    all.push_back(size);
    if (row.bytes.count >= kLarge) large.push_back(size);
    by_shape[fmt::format("{}, {}", counted(row.nodes, "node"), counted(row.ranks, "rank"))]
        .push_back(size);
  };
  for (const CollectiveRow& row : report.rows) take(row);
  if (report.rows.empty()) {
    for (const RecordedCollectives& row : report.recorded) take(row);
  }
  for (auto& [shape, errors] : by_shape)
    report.errors.push_back(error_of(shape, std::move(errors)));
  if (!large.empty()) report.errors.push_back(error_of("1 MiB and more", std::move(large)));
  if (!all.empty()) report.errors.push_back(error_of("all", std::move(all)));
}

/// Throws Error unless groups of one size hold all ranks, if their number is known (not 0).
void check_groups(std::int64_t ranks, std::int64_t groups) {
  if (groups < 1 || (ranks > 0 && ranks % groups != 0))
    throw Error(fmt::format("--groups: must divide the {} ranks, got {}", ranks, groups));
}

void check(const CollectiveQuestion& question) {
  if (question.fidelity != "closed" && question.fidelity != "flow" && question.fidelity != "packet")
    throw Error(
        fmt::format("--fidelity: must be closed, flow or packet, got '{}'", question.fidelity));
  if (!question.packets.empty() && question.fidelity != "packet")
    throw Error("--packets needs --fidelity packet");
  check_groups(question.ranks, question.groups);
  if (question.ranks < 0 || question.servers < 0 || question.ranks_per_node < 0)
    throw Error("--ranks, --servers and --ranks-per-node must not be negative");
  if (!question.machine.empty() && (question.latency || question.bandwidth))
    throw Error("--latency and --bandwidth are for a uniform network, not for --machine");
}

void save(const CollectiveQuestion& question, const std::optional<Calibration>& calibration) {
  if (question.save_calibration.empty()) return;
  if (!calibration) throw Error("--save-calibration needs --calibrate");
  write_new_file(question.save_calibration,
                 [&](std::ostream& out) { out << calibration->json().dump(1) << '\n'; });
}

std::string source_of(const Cluster& cluster) {
  return cluster.source.empty() ? cluster.name
                                : fmt::format("{} ({})", cluster.name, cluster.source);
}

void add_packet_assumptions(CollectiveReport& report, const CollectiveQuestion& question) {
  const PacketSettings settings = *packets_of(question);
  report.assumptions.push_back(
      "connections are open and begin with a full window; acknowledgements take latency, no "
      "bandwidth, and are not lost; packets wait in switches, and in hosts, which lose none");
  if (settings.transport == "bounded")
    report.assumptions.push_back(fmt::format(
        "the share of packets that matter least, {}, is assumed, because the magnitudes of "
        "gradients are not known",
        to_share(settings.unimportant)));
  if (settings.loss > kMaxTolerated || settings.pull_loss > kMaxTolerated)
    report.assumptions.push_back(
        "models have tolerated 0.6 to 3.5 % of loss without more epochs "
        "(DLCP, MLT); beyond that training takes longer");
}

void add_assumptions(CollectiveReport& report, const CollectiveQuestion& question,
                     const std::optional<Calibration>& calibration) {
  if (calibration) {
    report.calibration = question.calibrate;
    for (const std::string& line : calibration->summary())
      report.assumptions.push_back("calibrated " + line);
  }
  if (report.groups > 1 && report.fidelity == "closed")
    report.assumptions.push_back(fmt::format(
        "closed forms do not know how {} groups share links: times reach from one group alone "
        "to all one after the other; --fidelity flow simulates the sharing",
        report.groups));
  if (report.fidelity == "packet") add_packet_assumptions(report, question);
  if (question.machine.empty()) return;
  const bool nccl = std::any_of(report.rows.begin(), report.rows.end(),
                                [](const auto& row) { return row.basis == "NCCL's model"; });
  if (nccl || (report.rows.empty() && !calibration))
    report.assumptions.push_back(
        "times are the estimates by which NCCL 2.30.7 chooses, with latencies within a host as "
        "measured on A100, H100 and GB200, plus the cost of copies and of short pipelines; "
        "--calibrate FILE uses measured times");
}

/// Prices the sizes of each shape that the question or the measured rows name.
void add_rows(const CollectiveQuestion& question, const RequestedCollective& requested,
              const Calibration* calibration, const ComparedRows& compared,
              CollectiveReport& report) {
  const auto add = [&](const auto& pricing, const CollectiveRow& shape) {
    for (const Bytes bytes : sizes_of(question, shape, compared, requested.operation)) {
      report.rows.push_back(pricing.price(requested, bytes));
      set_measured(report.rows.back(), requested.operation, compared);
    }
  };
  if (question.machine.empty()) {
    report.machine = "uniform network";
    add(UniformPricing(question),
        row_of(requested.operation, static_cast<std::uint32_t>(question.ranks), 1, {}));
    return;
  }
  for (const auto& [ranks, per_node] : shapes_of(question, compared)) {
    const MachinePricing pricing(question, ranks, per_node, calibration);
    check_groups(pricing.places().ranks, report.groups);
    report.machine = source_of(pricing.cluster());
    for (const std::string& sentence : pricing.assumed()) {
      if (std::ranges::count(report.assumptions, sentence) == 0)
        report.assumptions.push_back(sentence);
    }
    add(pricing, row_of(requested.operation, pricing.places().ranks, pricing.places().nodes, {}));
  }
}

}  // namespace

CollectiveReport price_collective(const CollectiveQuestion& question) {
  check(question);
  const RequestedCollective requested = requested_collective(question);
  const std::optional<Calibration> calibration = calibration_of(question, requested.operation);
  const Calibration* const measured = calibration ? &*calibration : nullptr;
  save(question, calibration);
  const ComparedRows compared = compared_rows(question, requested);
  CollectiveReport report;
  report.fidelity = question.fidelity;
  report.groups = static_cast<std::uint32_t>(question.groups);
  report.recorded = compared.recording.rows, report.notes = compared.recording.notes;
  price_recorded(question, measured, report.recorded);
  if (report.recorded.empty() || names_operation(question))
    add_rows(question, requested, measured, compared, report);
  else if (!question.machine.empty())
    report.machine = source_of(find_cluster(question.machine, 1));
  add_assumptions(report, question, calibration);
  for (const std::string& text : compared.recording.assumptions) report.assumptions.push_back(text);
  add_errors(report);
  return report;
}

}  // namespace foretrace
