#pragma once

#include <cstdint>

namespace foretrace {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;

}  // namespace foretrace
