#include "question/collective/recorded_times.h"

#include <algorithm>

#include "base/statistics.h"
#include "network/collective.h"

namespace foretrace {
namespace {

RecordedCollectives::Spread spread_of(const std::vector<Nanoseconds>& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {.typical = lower_median(times), .least = *least, .most = *most};
}

}  // namespace

RecordedCollectives RecordedTimes::row(const std::string& operation, const std::string& group,
                                       Bytes bytes) const {
  RecordedCollectives row{.operation = operation,
                          .group = group,
                          .ranks = ranks,
                          .nodes = nodes,
                          .bytes = bytes,
                          .count = count,
                          .matched = transfers.size(),
                          .kernels = kernels.size(),
                          .kernel = lower_median(kernels),
                          .skew = {},
                          .transfer = {},
                          .priced = {}};
  for (const Nanoseconds time : kernels) row.kernel_total += time;
  if (transfers.empty()) return row;
  row.skew = spread_of(skews);
  row.transfer = spread_of(transfers);
  for (const auto& [rank, times] : last) {
    if (!row.last || times > row.last->times) row.last = {rank, times};
  }
  const auto known = operation_recorded_as(operation);
  if (known && row.transfer->typical > 0ns)
    row.bus_bandwidth = static_cast<double>(bytes.count) * bus_factor(*known, row.ranks) * 1e9 /
                        static_cast<double>(row.transfer->typical.count());
  return row;
}

void sort_rows(std::vector<RecordedCollectives>& rows) {
  std::ranges::stable_sort(rows, std::ranges::greater(), &RecordedCollectives::kernel_total);
}

}  // namespace foretrace
