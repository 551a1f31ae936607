#pragma once

// 128-bit integers, for products of two 64-bit quantities that must not lose a digit.

#include <cstdint>

namespace foretrace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

}  // namespace foretrace
