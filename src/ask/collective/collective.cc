// Answers a question about collectives: places the ranks, reads measured rows, and prices a row for
// each size.

#include "foretrace/ask/collective.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/collective/pricing.h"
#include "ask/job/job.h"
#include "base/files/json_file.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "base/statistics.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "network/nccl/measured.h"

namespace foretrace {
namespace {

/// Bytes of the recorded collectives of a rank, by task.
using Sizes = std::map<TaskId, Bytes>;

Sizes sizes_of(const Graph& graph) {
  Sizes sizes;
  for (const RecordedCollective& collective : graph.collectives())
    sizes[collective.task] = collective.bytes;
  return sizes;
}

/// Whether a path is a trace or a folder of traces, judged by its ending.
bool is_recording(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return true;
  return path.ends_with(".gz") || path.ends_with(".ftrace") || path.ends_with(".zst");
}

/// Measures the collectives of a job with joined ranks: the part of their time that was transfer,
/// not waiting for ranks that entered later, as the median over the members. `per_node` is the
/// number of ranks on a node. Throws TraceError if the ranks cannot be joined, and Error if no
/// collective has its size.
std::vector<MeasuredCollective> recorded_rows(const std::string& path, std::uint32_t per_node) {
  const JobRanks job = read_job(path, {.joining = Joining::required});
  std::vector<Sizes> sizes;
  for (const Rank& rank : job.ranks) sizes.push_back(sizes_of(rank.inference.graph));
  std::vector<MeasuredCollective> rows;
  for (const MatchedCollective& collective : job.join.collectives) {
    const std::optional<Operation> operation = operation_recorded_as(collective.operation);
    if (!operation || collective.members.empty()) continue;
    const CollectiveMember& first = collective.members.front();
    MeasuredCollective row{.operation = *operation,
                           .ranks = static_cast<std::uint32_t>(collective.members.size())};
    row.nodes = std::max(1U, (row.ranks + per_node - 1) / per_node);
    row.bytes = sizes[job.world[first.rank].recorded][first.task];
    std::vector<double> transfers;
    for (const CollectiveMember& member : collective.members) {
      if (!member.left_early)
        transfers.push_back(static_cast<double>((member.recorded - member.skew).count()) / 1e3);
    }
    row.us = median(transfers);
    if (row.bytes > Bytes{} && row.us > 0) rows.push_back(row);
  }
  if (rows.empty())
    throw Error(path +
                ": has no collective of several ranks with its size; record all ranks with "
                "PyTorch's record_shapes=True");
  return rows;
}

/// Reads the rows of a table or of a recording; the ranks of a recording are placed as many to a
/// node as the machine has.
std::vector<MeasuredCollective> rows_of(const CollectiveQuestion& question, const std::string& path,
                                        Operation operation) {
  if (!is_recording(path)) return read_measured_file(path, operation, question.only);
  const Cluster cluster = find_cluster(question.machine, 1);
  const std::int32_t per_node =
      std::max(cluster.facts.devices_per_host, cluster.facts.devices_per_nvlink_domain);
  return recorded_rows(path, static_cast<std::uint32_t>(std::max(1, per_node)));
}

/// Identity of measured rows: operation, nodes, ranks, bytes.
using Key = std::tuple<Operation, std::uint32_t, std::uint32_t, std::int64_t>;
using MeasuredTimes = std::map<Key, std::vector<double>>;

struct ComparedRows {
  MeasuredTimes rows;
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

/// The rows to compare with, except those that the calibration used.
ComparedRows compared_rows(const CollectiveQuestion& question,
                           const RequestedCollective& requested) {
  ComparedRows compared;
  if (question.against.empty()) return compared;
  const bool same = question.against == question.calibrate;
  if (question.machine.empty() && is_recording(question.against))
    throw Error("--against: a recording needs --machine, which gives the ranks on a node");
  for (const MeasuredCollective& row : rows_of(question, question.against, requested.operation)) {
    if (row.operation != requested.operation || (same && calibrates(question, row))) continue;
    compared.rows[key_of(row)].push_back(row.us);
  }
  if (compared.rows.empty())
    throw Error(fmt::format("{}: has no {}{}", question.against, to_string(requested.operation),
                            same ? " that the calibration did not see" : ""));
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
  row.measured = Nanoseconds(static_cast<std::int64_t>(median(found->second) * 1e3));
}

CollectiveError error_of(const std::string& shape, std::vector<double> errors) {
  const double highest = *std::max_element(errors.begin(), errors.end());
  return {shape, errors.size(), median(errors), highest};
}

constexpr std::int64_t kLarge = 1 << 20;  ///< Bytes from which bandwidth counts more than latency.

void add_errors(CollectiveReport& report) {
  std::map<std::string, std::vector<double>> by_shape;
  std::vector<double> all, large;
  for (const CollectiveRow& row : report.rows) {
    const std::optional<double> error = row.error();
    if (!error) continue;
    const double size = std::abs(*error);
    all.push_back(size);
    if (row.bytes.count >= kLarge) large.push_back(size);
    by_shape[fmt::format("{}, {}", counted(row.nodes, "node"), counted(row.ranks, "rank"))]
        .push_back(size);
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
  if (settings.loss > kMostTolerated || settings.pull_loss > kMostTolerated)
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
  if (nccl)
    report.assumptions.push_back(
        "times are the estimates by which NCCL 2.30.7 chooses, plus the cost of copies and of "
        "short "
        "pipelines "
        "of rings; --calibrate FILE uses measured times");
}

}  // namespace

CollectiveReport price_collective(const CollectiveQuestion& question) {
  check(question);
  const RequestedCollective requested = requested_collective(question);
  const std::optional<Calibration> calibration = calibration_of(question, requested.operation);
  save(question, calibration);
  const ComparedRows compared = compared_rows(question, requested);
  CollectiveReport report;
  report.fidelity = question.fidelity;
  report.groups = static_cast<std::uint32_t>(question.groups);
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
  } else {
    for (const auto& [ranks, per_node] : shapes_of(question, compared)) {
      const MachinePricing pricing(question, ranks, per_node,
                                   calibration ? &*calibration : nullptr);
      check_groups(pricing.places().ranks, report.groups);
      report.machine = source_of(pricing.cluster());
      for (const std::string& sentence : pricing.assumed()) {
        if (std::find(report.assumptions.begin(), report.assumptions.end(), sentence) ==
            report.assumptions.end())
          report.assumptions.push_back(sentence);
      }
      add(pricing, row_of(requested.operation, pricing.places().ranks, pricing.places().nodes, {}));
    }
  }
  add_assumptions(report, question, calibration);
  add_errors(report);
  return report;
}

}  // namespace foretrace
