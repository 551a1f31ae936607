#pragma once

// The peak of the fullest device of an answer: the one number that represents the memory of a job
// with several devices. Host memory has its own entry among the peaks, which counts only where it
// is requested.

#include <optional>
#include <vector>

#include "foretrace/answer/prediction.h"

namespace foretrace {

enum class PeaksOf { devices, devices_and_host };

/// Return nullopt if none of the peaks counts.
std::optional<Bytes> greatest_allocated(const std::vector<MemoryPeak>& peaks,
                                        PeaksOf counted = PeaksOf::devices);
std::optional<Bytes> greatest_reserved(const std::vector<MemoryPeak>& peaks,
                                       PeaksOf counted = PeaksOf::devices);

}  // namespace foretrace
