#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "network/collectives/registered.h"

namespace foretrace {

const std::vector<AlgorithmEntry>& algorithms() {
  static const std::vector<AlgorithmEntry> entries = {
#define COLLECTIVE(name, summary) {#name, summary, make_##name##_algorithm},
#include "network/collectives/collectives.def"
#undef COLLECTIVE
  };
  return entries;
}

std::unique_ptr<Algorithm> find_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const AlgorithmEntry& entry : algorithms()) {
    if (entry.name == name) return entry.make();
    names.push_back(entry.name);
  }
  throw Error(fmt::format("there is no algorithm '{}'{}; must be one of auto, {}", name,
                          did_you_mean(name, names), joined(names)));
}

void check_call(std::string_view name, const Algorithm& algorithm, const Call& call,
                LinkCosts costs) {
  if (call.ranks < 1) throw Error("ranks: must be at least 1, got 0");
  if (call.bytes.count < 0) throw Error("bytes: must be at least 0");
  for (const LinkCost& cost : costs) {
    if (cost.latency < Nanoseconds(0))
      throw Error("latency: must be at least 0, got " + to_text(cost.latency));
    if (!(cost.bandwidth.bytes_per_second > 0))
      throw Error("bandwidth: must be greater than 0, got " + to_text(cost.bandwidth));
  }
  const std::string refusal = algorithm.refusal(call);
  if (!refusal.empty()) throw Error(fmt::format("{} {}", name, refusal));
  if (algorithm.closed_form(call, costs) >= kLongestTime)
    throw Error(fmt::format("bytes: must take less than 1000 hours, but {} take longer at {}",
                            to_text(call.bytes), to_text(costs[0].bandwidth)));
}

std::uint32_t ceil_log2(std::uint32_t value) {
  return static_cast<std::uint32_t>(std::bit_width(value - 1));
}

const LinkCost& cost_at(LinkCosts costs, std::size_t level) {
  return costs[std::min(level, costs.size() - 1)];
}

Nanoseconds hockney(double messages, double bytes, double reduced, const LinkCost& cost) {
  const double nanoseconds = messages * static_cast<double>(cost.latency.count()) +
                             bytes * 1e9 / cost.bandwidth.bytes_per_second +
                             reduced * cost.reduce_ns_per_byte;
  return from_nanoseconds(nanoseconds);
}

std::string unsupported_operation(Operation operation, std::initializer_list<Operation> served) {
  std::vector<std::string_view> names;
  for (const Operation other : served) {
    if (other == operation) return {};
    names.push_back(to_string(other));
  }
  return fmt::format("serves {}, not {}", joined(names), to_string(operation));
}

std::string not_power_of_two(std::uint32_t ranks) {
  if (std::has_single_bit(ranks)) return {};
  return fmt::format("needs a power of two of ranks, got {}", ranks);
}

}  // namespace foretrace
