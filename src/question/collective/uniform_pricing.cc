#include <algorithm>

#include "base/fields/assignments.h"
#include "foretrace/error.h"
#include "network/collectives/interleaved.h"
#include "network/flow/wires.h"
#include "question/collective/pricing.h"

namespace foretrace {
namespace {

Call call_of(const CollectiveQuestion& question, Operation operation, Bytes bytes) {
  return {.operation = operation,
          .ranks = static_cast<std::uint32_t>(question.ranks / question.groups),
          .bytes = bytes,
          .levels = question.levels,
          .servers = static_cast<std::uint32_t>(question.servers)};
}

std::string basis_of(const CollectiveQuestion& question) {
  if (question.fidelity == "packet") return "packets";
  return question.fidelity == "flow" ? "flow" : "closed form";
}

bool needs_servers(std::string_view name) {
  return name == "parameter_server" || name == "colocated" || name == "byteps" ||
         name == "in_network";
}

}  // namespace

CollectiveRow row_of(Operation operation, std::uint32_t ranks, std::uint32_t nodes, Bytes bytes) {
  CollectiveRow row;
  row.operation = to_string(operation);
  row.ranks = ranks;
  row.nodes = nodes;
  row.bytes = bytes;
  return row;
}

void finish_row(CollectiveRow& row, Operation operation, Nanoseconds time) {
  row.time = row.lower = row.upper = time;
  if (time.count() <= 0) return;
  row.algorithm_bandwidth =
      static_cast<double>(row.bytes.count) * 1e9 / static_cast<double>(time.count());
  row.bus_bandwidth = row.algorithm_bandwidth * bus_factor(operation, row.ranks);
}

UniformPricing::UniformPricing(const CollectiveQuestion& question) : question_(question) {
  if (question.ranks < 1)
    throw Error("ranks: must be given, at least 1; or name a machine with --machine");
  if (!question.bandwidth || !question.latency)
    throw Error(
        "needs --machine, or for a uniform network both --latency and --bandwidth (5us, 25GB/s)");
  cost_ = {*question.latency, *question.bandwidth, 0};
}

std::optional<PacketSettings> packets_of(const CollectiveQuestion& question) {
  if (question.fidelity != "packet") return std::nullopt;
  PacketOptions options;
  within("--packets", [&] { read_assigned(question.packets, options); });
  options.settings.seed = question.seed;
  return options.settings;
}

PacketFigures figures_of(const PacketSettings& settings, const PacketRun& run) {
  return {.transport = settings.transport,
          .mean = run.mean,
          .median = run.median,
          .p99 = run.p99,
          .dropped_important = run.counts.dropped_important,
          .dropped_unimportant = run.counts.dropped_unimportant,
          .sent_again = run.counts.sent_again,
          .missing = run.counts.missing_important + run.counts.missing_unimportant,
          .deepest_queue = run.counts.deepest_queue,
          .timeouts = run.counts.timeouts};
}

Nanoseconds UniformPricing::time_of(const Algorithm& algorithm, const Call& call,
                                    CollectiveRow& row) const {
  const LinkCosts costs(&cost_, 1);
  if (const auto settings = packets_of(question_)) {
    const PacketRun run = simulate_packets(cost_, *settings, algorithm, call);
    row.packets = figures_of(*settings, run);
    return run.expansion.time;
  }
  if (question_.fidelity != "flow") return algorithm.closed_form(call, costs);
  const Plan plan = algorithm.plan(call, costs);
  return simulate_flows(uniform_wires(plan.endpoints, cost_, plan.switches_from), algorithm, call,
                        costs)
      .time;
}

CollectiveRow UniformPricing::price(const RequestedCollective& requested, Bytes bytes) const {
  const Call call = call_of(question_, requested.operation, bytes);
  std::string name = requested.algorithm;
  if (name == "auto") {
    Nanoseconds least = Nanoseconds::max();
    for (const AlgorithmEntry& entry : algorithms()) {
      const auto algorithm = entry.make();
      if (needs_servers(entry.name) || !algorithm->refusal(call).empty()) continue;
      const Nanoseconds time = algorithm->closed_form(call, {&cost_, 1});
      if (time < least) least = time, name = entry.name;
    }
  }
  const auto algorithm = find_algorithm(name);
  check_call(name, *algorithm, call, {&cost_, 1});
  if (question_.fidelity != "closed" && name == "byteps")
    throw Error(
        "byteps has only a closed form, because the schedule of its servers is not published; use "
        "--fidelity closed");
  CollectiveRow row = row_of(requested.operation, call.ranks, 1, bytes);
  row.algorithm = name;
  row.basis = basis_of(question_);
  finish_row(row, requested.operation, time_of(*algorithm, call, row));
  return row;
}

}  // namespace foretrace
