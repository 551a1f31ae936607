#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/ftrace_layout.h"

namespace foretrace::ftrace {

/// Returns a zstd frame of the raw bytes, or the raw bytes themselves if the frame is not shorter.
std::string pack(std::string_view raw);

/// Undoes pack(). REQUIRES: `raw_size` is within the limits of the file. Throws TraceError if the
/// bytes are damaged.
std::string unpack(std::string_view stored, std::uint64_t raw_size, std::uint64_t hash);

/// XXH64 with seed 0 (xxhash.com, "XXH64 algorithm description"). It detects accidental damage, not
/// tampering.
std::uint64_t xxh64(std::string_view bytes);

}  // namespace foretrace::ftrace
