#include "foretrace/answer/memory_peak.h"

#include <algorithm>

namespace foretrace {
namespace {

template <class PeakOf>
std::optional<Bytes> greatest_of(const std::vector<MemoryPeak>& peaks, PeaksOf counted,
                                 const PeakOf& peak_of) {
  std::optional<Bytes> most;
  for (const MemoryPeak& peak : peaks) {
    if (peak.device < 0 && counted == PeaksOf::devices) continue;
    const std::optional<Bytes> one = peak_of(peak);
    if (one) most = std::max(most.value_or(*one), *one);
  }
  return most;
}

}  // namespace

std::optional<Bytes> greatest_allocated(const std::vector<MemoryPeak>& peaks, PeaksOf counted) {
  return greatest_of(peaks, counted, [](const MemoryPeak& peak) { return peak.peak_allocated; });
}

std::optional<Bytes> greatest_reserved(const std::vector<MemoryPeak>& peaks, PeaksOf counted) {
  return greatest_of(peaks, counted, [](const MemoryPeak& peak) { return peak.peak_reserved; });
}

}  // namespace foretrace
