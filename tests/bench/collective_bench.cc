// Collectives: every message of large groups, on an idle network and as flows.
//
//     collective_bench [ranks]      1024 by default; prints one line for each

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "../support/expand.h"
#include "arguments.h"
#include "network/flow/wires.h"

namespace foretrace {
namespace {

struct Case {
  const char* algorithm;
  Operation operation;
  std::uint32_t scale;  ///< Ranks per requested rank.
  std::int64_t bytes;
  const char* how;  ///< Flows on a uniform network, or on a machine.
};

constexpr Case kCases[] = {
    {"pairwise", Operation::all_to_all, 1, 4 << 20, "dgx-h100"},
    {"ring", Operation::all_reduce, 1, 64 << 20, "messages"},
    {"recursive_doubling", Operation::all_reduce, 64, 4096, "messages"},
    {"pairwise", Operation::all_to_all, 1, 4 << 20, "closed"},
    {"pairwise", Operation::all_to_all, 1, 4 << 20, "flow"},
    {"ring", Operation::all_reduce, 1, 64 << 20, "flow"},
};

Expansion run_case(const Case& one, const Call& call, LinkCosts costs) {
  const auto algorithm = find_algorithm(one.algorithm);
  const std::string how = one.how;
  if (how == "messages") return expand(*algorithm, call, costs);
  if (how == "dgx-h100") {
    const Network network(find_cluster("dgx-h100", call.ranks));
    return simulate_flows(wires_of(network, 0), *algorithm, call, costs);
  }
  const Wires wires = uniform_wires(call.ranks, costs[0]);
  if (how == "flow") return simulate_flows(wires, *algorithm, call, costs);
  return {.time = closed_form_time(wires, *algorithm, call, costs)};
}

void run(std::uint32_t ranks) {
  const LinkCost cost{5us, Bandwidth{50e9}, 0};
  for (const Case& one : kCases) {
    const Call call{.operation = one.operation, .ranks = ranks * one.scale, .bytes = {one.bytes}};
    const auto begin = std::chrono::steady_clock::now();
    const Expansion done = run_case(one, call, {&cost, 1});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const auto messages = static_cast<double>(std::max<std::uint64_t>(done.messages, 1));
    std::printf(
        "%-20s %-9s %6u ranks  %8.0f messages  %7.3f s  %6.2f bytes of state and %5.2f rates a "
        "message\n",
        one.algorithm, one.how, call.ranks, messages, took.count(),
        static_cast<double>(done.state.count) / messages,
        static_cast<double>(done.computed_rates) / messages);
  }
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[ranks]");
  foretrace::run(arguments.number<std::uint32_t>(1, 1024));
  return 0;
}
