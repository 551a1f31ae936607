#pragma once

// Finds which items of two nearly equal sequences correspond: a longest common subsequence, in time
// proportional to length x differences (Myers, "An O(ND) difference algorithm and its variations",
// 1986).

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace foretrace {

/// Returns pairs of positions in order, or nullopt if more than `most_differences` items would have
/// to be dropped from the two.
std::optional<std::vector<std::pair<std::uint32_t, std::uint32_t>>> align(
    std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
    std::size_t most_differences);

}  // namespace foretrace
