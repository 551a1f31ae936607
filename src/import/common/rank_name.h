#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace foretrace {

/// The rank in the name of a file, such as "rank-3.pt.trace.json", "host_rank3_0.json" or
/// "worker3.169.pt.trace.json". Returns nullopt if there is none.
std::optional<std::int32_t> rank_in_name(std::string_view path);

/// Like rank_in_name(), but also accepts a number at the end of the name, which execution traces
/// have: "dlrm_eg_3.json", "final.3.et". A year is not a rank.
std::optional<std::int32_t> rank_of_execution_trace(std::string_view path);

}  // namespace foretrace
