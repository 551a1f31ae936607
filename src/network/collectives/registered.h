#pragma once

// Declares make_<name>_algorithm() for every line of collectives.def: -Wmissing-declarations then
// rejects an algorithm without a line, and the linker a line without an algorithm. Also declares
// the helpers that the algorithms share.

#include "network/collective.h"

namespace foretrace {

#define COLLECTIVE(name, summary) std::unique_ptr<Algorithm> make_##name##_algorithm();
#include "network/collectives/collectives.def"
#undef COLLECTIVE

/// Returns the least k with 2^k >= value. REQUIRES: value > 0.
std::uint32_t ceil_log2(std::uint32_t value);

/// Returns the bytes of part `i` if `whole` is cut into `parts` that differ by at most one byte.
inline Bytes part_of(Bytes whole, std::uint32_t parts, std::uint32_t i) {
  const std::int64_t size = whole.count / parts, rest = whole.count % parts;
  return Bytes{size + (static_cast<std::int64_t>(i) < rest ? 1 : 0)};
}
/// Returns the bytes of parts 0 to i - 1.
inline Bytes parts_before(Bytes whole, std::uint32_t parts, std::uint32_t i) {
  const std::int64_t size = whole.count / parts, rest = whole.count % parts;
  return Bytes{size * i + (static_cast<std::int64_t>(i) < rest ? i : rest)};
}

const LinkCost& cost_at(LinkCosts costs, std::size_t level);

/// messages alpha + bytes beta + reduced gamma, on one level. `bytes` may be fractional.
Nanoseconds hockney(double messages, double bytes, double reduced, const LinkCost& cost);

/// "serves all_reduce and all_gather, not broadcast"; empty if `operation` is among `served`.
std::string unsupported_operation(Operation operation, std::initializer_list<Operation> served);
/// "needs a power of two of ranks, got 6"; empty if `ranks` is a power of two.
std::string not_power_of_two(std::uint32_t ranks);

}  // namespace foretrace
