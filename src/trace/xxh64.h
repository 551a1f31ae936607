#pragma once

#include <cstdint>
#include <string_view>

namespace foretrace {

/// XXH64 with seed 0 (xxhash.com, "XXH64 algorithm description"). It detects accidental damage, not
/// tampering.
std::uint64_t xxh64(std::string_view bytes);

}  // namespace foretrace
