#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace foretrace {

/// The rank in the name of a file: "rank-3.pt.trace.json", "host_rank3_0.json",
/// "worker3.169.pt.trace.json".
std::optional<std::int32_t> rank_in_name(std::string_view path);

}  // namespace foretrace
