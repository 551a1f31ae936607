#pragma once

// What our own export to the tables of Nsight Systems says besides what those have a place for, in
// places where other readers look over it. src/import/nsys/nsys_words.h has the same, as the two
// modules see nothing of each other.

#include <string_view>

namespace foretrace::nsys_words {

/// Categories of NVTX ranges.
inline constexpr std::string_view kOpCategory = "PyTorch op";
inline constexpr std::string_view kPythonCategory = "Python frame";
inline constexpr std::string_view kAnnotationCategory = "annotation";
/// Of the JSON payload of a range: {"foretrace": {...}}.
inline constexpr std::string_view kPayloadStart = "{\"foretrace\":";
/// Names in META_DATA_EXPORT.
inline constexpr std::string_view kRank = "FORETRACE_RANK";
inline constexpr std::string_view kWorldSize = "FORETRACE_WORLD_SIZE";
inline constexpr std::string_view kTick = "FORETRACE_TICK_NS";

}  // namespace foretrace::nsys_words
