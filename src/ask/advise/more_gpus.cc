#include "ask/advise/more_gpus.h"

#include <fmt/core.h>
#include <optional>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/threads.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostAdvisedGpus = 1024;

std::string step_of(std::int64_t gpus, const std::string& network) {
  return fmt::format("data_parallel:gpus={},machine=\"{}\"", gpus, network);
}

}  // namespace

MoreGpus more_gpus(const AdvisedJob& job, const std::string& network) {
  MoreGpus found{.network = network, .points = {}, .refused = {}};
  std::vector<std::int64_t> counts;
  for (std::int64_t gpus = 2; gpus <= kMostAdvisedGpus; gpus *= 2) counts.push_back(gpus);
  std::vector<std::optional<Nanoseconds>> times(counts.size());
  std::vector<std::string> refused(counts.size());
  on_all_cores(counts.size(), [&](std::size_t i) {
    const std::string step = step_of(counts[i], network);
    try {
      times[i] = step_time_with(job, {step});
    } catch (const Error& error) {
      refused[i] = without_place(error.what(), step);
    }
  });
  MoreGpus::Point before;
  for (std::size_t i = 0; i < counts.size() && times[i]; ++i) {
    MoreGpus::Point point{.gpus = counts[i]};
    point.times_as_fast = ratio(job.now(), *times[i]) * static_cast<double>(counts[i]);
    point.each_added = (point.times_as_fast - before.times_as_fast) /
                       static_cast<double>(point.gpus - before.gpus);
    found.points.push_back(before = point);
  }
  if (found.points.empty()) found.refused = refused.front();
  if (found.refused.starts_with("gradient_bytes"))
    found.refused += ", or ask foretrace scale with --scheme data_parallel:gradient_bytes=SIZE";
  return found;
}

}  // namespace foretrace
