#pragma once

// Our exporter adds data to the tables of Nsight Systems, in places that other readers ignore. The
// exporter writes it under these names, and the importer reads it back.

#include <string_view>

namespace foretrace::nsys_words {

/// Categories of NVTX ranges.
inline constexpr std::string_view kOpCategory = "PyTorch op";
inline constexpr std::string_view kPythonCategory = "Python frame";
inline constexpr std::string_view kAnnotationCategory = "annotation";
/// Start of the JSON payload of a range: {"foretrace": {...}}.
inline constexpr std::string_view kPayloadStart = "{\"foretrace\":";
/// Names in META_DATA_EXPORT.
inline constexpr std::string_view kRank = "FORETRACE_RANK";
inline constexpr std::string_view kWorldSize = "FORETRACE_WORLD_SIZE";
inline constexpr std::string_view kTick = "FORETRACE_TICK_NS";

}  // namespace foretrace::nsys_words
