#include "simulate/pass.h"

#include <algorithm>

namespace foretrace {
namespace {

template <bool with_lags>
std::int64_t pass_over(const Rows& rows, std::int64_t* finish) {
  const std::uint32_t* const first = rows.first.data();
  const std::uint32_t* const before = rows.before.data();
  const std::int64_t* const duration = rows.durations();
  const std::size_t count = rows.task_count();
  std::int64_t greatest = 0;
  std::uint32_t wait = 0;
  for (std::size_t task = 0; task < count; ++task) {
    std::int64_t start = 0;
    for (const std::uint32_t end = first[task + 1]; wait < end; ++wait) {
      if constexpr (with_lags) {
        const std::uint32_t from = before[wait] & ~Rows::kFlags;
        std::int64_t earliest = finish[from] + rows.lag[wait];
        if (before[wait] & Rows::kFromStart) earliest -= duration[from];
        if (before[wait] & Rows::kTail) earliest -= Tail::of(duration[from], rows.tail[wait]);
        start = std::max(start, earliest);
      } else {
        start = std::max(start, finish[before[wait]]);
      }
    }
    const std::int64_t end_of_task = start + duration[task];
    finish[task] = end_of_task;
    greatest = std::max(greatest, end_of_task);
  }
  return greatest;
}

}  // namespace

Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish) {
  std::int64_t* const to = as_counts(finish);
  return Nanoseconds(rows.lag.empty() ? pass_over<false>(rows, to) : pass_over<true>(rows, to));
}

}  // namespace foretrace
