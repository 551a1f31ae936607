#include "transform/parallel/communicator.h"

#include <cmath>

#include "foretrace/error.h"
#include "network/flow/wires.h"
#include "network/nccl/nccl.h"
#include "network/nccl/sends.h"

namespace foretrace {
namespace {

/// Only decides into how many pieces pipelines cut the data: NCCL's hop over NVLink.
constexpr Nanoseconds kHop = 3400ns;

/// The cheapest on a uniform network, without servers of its own.
constexpr const char* kUniform = "ring";

}  // namespace

void NetworkSettings::describe(Fields& fields) {
  fields.name_or_path("machine", machine,
                      "The machine that they are part of: a name from `foretrace list machines`, "
                      "or a file");
  fields.bandwidth("bandwidth", bandwidth,
                   "Instead of a machine: a uniform network, and what each GPU can send and "
                   "receive on it");
  fields.optional_time("latency", latency, "Instead of a machine: that of a message", 0ns);
  fields.text("algorithm", algorithm,
              "How collectives are run: \"auto\" is NCCL's choice, ring on a uniform network; or "
              "a name from `foretrace list collectives`");
  fields.integer("servers", servers, "Hosts that only serve, for parameter_server", 0, 65'536);
}

Communicator::Communicator(const NetworkSettings& settings, std::int64_t workers)
    : settings_(settings), workers_(static_cast<std::uint32_t>(workers)) {
  const bool is_uniform = settings.bandwidth.bytes_per_second > 0 || settings.latency;
  if (!settings.machine.empty() && is_uniform)
    throw Error("machine: must not be given together with bandwidth and latency");
  if (settings.machine.empty() && (settings.bandwidth.bytes_per_second <= 0 || !settings.latency))
    throw Error(
        "machine: must be given (\"dgx-a100\"; see `foretrace list machines`), or for a uniform "
        "network both bandwidth and latency");
  described_ = std::to_string(workers) + (workers == 1 ? " GPU" : " GPUs");
  if (!settings.machine.empty()) {
    network_ = std::make_unique<Network>(
        within("machine", [&] { return find_cluster(settings.machine, workers); }));
    places_ = places_of(*network_);
    system_ = system_of(*network_, places_, assumed_);
    described_ += " of " + settings.machine.substr(0, settings.machine.find(':'));
    if (places_.nodes > 1) described_ += ", " + std::to_string(places_.nodes) + " nodes";
  } else {
    described_ += " over " + to_text(settings.bandwidth);
  }
}

Nanoseconds Communicator::time(Operation operation, Bytes bytes) {
  if (workers_ == 1 || bytes <= Bytes{}) return 0ns;
  const auto [found, is_new] = known_.try_emplace({operation, bytes.count});
  if (is_new) found->second = priced(operation, bytes);
  return found->second;
}

Nanoseconds Communicator::priced(Operation operation, Bytes bytes) const {
  if (!network_) return on_uniform(operation, bytes);
  if (settings_.algorithm != "auto") return on_links(operation, bytes);
  const bool is_sent = operation == Operation::send_receive || operation == Operation::all_to_all;
  const double us =
      is_sent ? sends_us(operation, places_, bytes)
              : expected_us(choose_path(operation, system_, bytes), system_, operation, bytes);
  return Nanoseconds(std::llround(us * 1e3));
}

Nanoseconds Communicator::on_links(Operation operation, Bytes bytes) const {
  const auto algorithm = find_algorithm(settings_.algorithm);
  Call call{.operation = operation, .ranks = workers_, .bytes = bytes};
  if (settings_.algorithm == "hierarchical") call.levels = {places_.per_node, places_.nodes};
  const double rate = places_.nodes > 1 ? places_.inter / places_.per_node : places_.intra;
  const LinkCost cost{kHop, Bandwidth{std::max(rate, 1e-3) * 1e9}, 0};
  check_call(settings_.algorithm, *algorithm, call, {&cost, 1});
  if (algorithm->plan(call, {&cost, 1}).endpoints > workers_)
    throw Error("algorithm: " + settings_.algorithm +
                " needs servers or switches of its own, which the machine does not have; give "
                "bandwidth and latency instead");
  return closed_on(wires_of(*network_, 0), *algorithm, call, {&cost, 1});
}

Nanoseconds Communicator::on_uniform(Operation operation, Bytes bytes) const {
  std::string name = settings_.algorithm;
  if (name == "auto") name = kUniform;
  if (operation == Operation::send_receive) name = "send_receive";
  const auto algorithm = find_algorithm(name);
  const Call call{.operation = operation,
                  .ranks = workers_,
                  .bytes = bytes,
                  .servers = static_cast<std::uint32_t>(settings_.servers)};
  const LinkCost cost{*settings_.latency, settings_.bandwidth, 0};
  check_call(name, *algorithm, call, {&cost, 1});
  return algorithm->closed(call, {&cost, 1});
}

}  // namespace foretrace
