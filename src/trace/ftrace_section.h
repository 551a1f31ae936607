#pragma once

#include <string>
#include <string_view>

#include "trace/ftrace_layout.h"

namespace foretrace::ftrace {

/// The raw bytes, or a zstd frame of them if that is shorter.
std::string pack(std::string_view raw);

/// Undoes pack(). `raw_size` must have been checked against the limits of the file. Throws
/// TraceError.
std::string unpack(std::string_view stored, std::uint64_t raw_size, std::uint64_t hash);

}  // namespace foretrace::ftrace
