#include <limits>

#include "plan/size.h"

namespace foretrace {

double speedup_of(double overhead, double gpus) {
  return gpus * (1 + overhead) / (1 + gpus * overhead);
}

std::optional<double> gpus_for_speedup(double overhead, double speedup) {
  const double left = 1 + overhead - speedup * overhead;
  if (left <= 0) return std::nullopt;
  return speedup / left;
}

double gpus_for_efficiency(double overhead, double efficiency) {
  if (overhead <= 0) return std::numeric_limits<double>::infinity();
  return ((1 + overhead) / efficiency - 1) / overhead;
}

double overhead_allowed(double efficiency, double gpus) {
  const double lost = efficiency * gpus - 1;
  return lost <= 0 ? std::numeric_limits<double>::infinity() : (1 - efficiency) / lost;
}

double servers_for(Bytes model, std::int64_t workers, Bandwidth server, Nanoseconds compute) {
  const double bytes = 2 * static_cast<double>(model.count) * static_cast<double>(workers);
  return bytes / (server.bytes_per_second * static_cast<double>(compute.count()) * 1e-9);
}

}  // namespace foretrace
