#include "simulate/pass.h"

#include <algorithm>
#include <tuple>

#include "foretrace/error.h"

namespace foretrace {
namespace {

template <bool with_lags>
std::int64_t pass_over(const Rows& rows, std::int64_t* finish, std::size_t begin, std::size_t count,
                       std::int64_t soonest) {
  const std::uint32_t* const first = rows.first.data();
  const std::uint32_t* const before = rows.before.data();
  const std::int64_t* const duration = rows.durations();
  std::int64_t greatest = 0;
  std::uint32_t wait = first[begin];
  for (std::size_t task = begin; task < count; ++task) {
    std::int64_t start = soonest;
    for (const std::uint32_t end = first[task + 1]; wait < end; ++wait) {
      if constexpr (with_lags) {
        const std::uint32_t from = before[wait] & ~Rows::kFlags;
        std::int64_t earliest = finish[from] + rows.lag[wait];
        if (before[wait] & Rows::kFromStart) earliest -= duration[from];
        if (before[wait] & Rows::kTail) earliest -= TailShare::of(duration[from], rows.tail[wait]);
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
  return pass(rows, finish, 0, static_cast<std::uint32_t>(rows.task_count()), 0ns);
}

Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish, std::uint32_t begin,
                 std::uint32_t end, Nanoseconds earliest) {
  const auto pass_some = rows.lag.empty() ? pass_over<false> : pass_over<true>;
  return Nanoseconds(pass_some(rows, as_counts(finish), begin, end, earliest.count()));
}

std::vector<Probe> probes_by_row(std::span<const TaskId> tasks,
                                 std::span<const std::uint32_t> row_of) {
  std::vector<Probe> sorted;
  for (const TaskId task : tasks) {
    CHECK(index(task) < row_of.size());
    sorted.push_back({row_of[index(task)], static_cast<std::uint32_t>(sorted.size())});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Probe& a, const Probe& b) {
    return std::tie(a.task, a.place) < std::tie(b.task, b.place);
  });
  return sorted;
}

}  // namespace foretrace
