#pragma once

// What the fullest device of an answer needs: the one number that stands for the memory of a job
// with several devices. Host memory has an entry of its own among the peaks, which counts only
// where one asks for it.

#include <optional>
#include <vector>

#include "foretrace/answer/prediction.h"

namespace foretrace {

enum class PeaksOf { devices, devices_and_host };

/// Nothing where none of them has a peak.
std::optional<Bytes> greatest_allocated(const std::vector<MemoryPeak>& peaks,
                                        PeaksOf counted = PeaksOf::devices);
std::optional<Bytes> greatest_reserved(const std::vector<MemoryPeak>& peaks,
                                       PeaksOf counted = PeaksOf::devices);

}  // namespace foretrace
