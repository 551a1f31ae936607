#include <algorithm>

#include "ask/collective/pricing.h"
#include "foretrace/error.h"
#include "network/collectives/interleaved.h"
#include "network/flow/wires.h"

namespace foretrace {
namespace {

Call call_of(const CollectiveQuestion& question, Operation operation, Bytes bytes) {
  return {.operation = operation,
          .ranks = static_cast<std::uint32_t>(question.ranks / question.groups),
          .bytes = bytes,
          .levels = question.levels,
          .servers = static_cast<std::uint32_t>(question.servers)};
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

Nanoseconds UniformPricing::time_of(const Algorithm& algorithm, const Call& call) const {
  const LinkCosts costs(&cost_, 1);
  if (question_.fidelity != "flow") return algorithm.closed(call, costs);
  const Plan plan = algorithm.plan(call, costs);
  return flow_on(uniform_wires(plan.endpoints, cost_, plan.switches_from), algorithm, call, costs)
      .time;
}

CollectiveRow UniformPricing::price(const AskedCollective& asked, Bytes bytes) const {
  const Call call = call_of(question_, asked.operation, bytes);
  std::string name = asked.algorithm;
  if (name == "auto") {
    Nanoseconds least = Nanoseconds::max();
    for (const AlgorithmEntry& entry : algorithms()) {
      const auto algorithm = entry.make();
      if (needs_servers(entry.name) || !algorithm->refusal(call).empty()) continue;
      const Nanoseconds time = algorithm->closed(call, {&cost_, 1});
      if (time < least) least = time, name = entry.name;
    }
  }
  const auto algorithm = find_algorithm(name);
  check_call(name, *algorithm, call, {&cost_, 1});
  if (question_.fidelity == "flow" && name == "byteps")
    throw Error("byteps has no flows, as what each server does when is not published; ask closed");
  CollectiveRow row = row_of(asked.operation, call.ranks, 1, bytes);
  row.algorithm = name;
  row.basis = question_.fidelity == "flow" ? "flow" : "closed form";
  finish_row(row, asked.operation, time_of(*algorithm, call));
  return row;
}

}  // namespace foretrace
