// How long each kernel of a job takes, by name and shape.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/hash.h"
#include "base/statistics.h"
#include "base/wording.h"
#include "question/check/job/kernels.h"

namespace foretrace {
namespace {

/// Kernels with a smaller share of all kernel work are left out, because a baseline has a line for
/// each.
constexpr double kListedShare = 0.001;
constexpr std::size_t kLongestKernelName = 100;

struct KernelKey {
  NameId name{}, shapes{};
  std::uint32_t grid = 0, block = 0;
  auto key() const { return std::tuple(name, shapes, grid, block); }
  bool operator<(const KernelKey& other) const { return key() < other.key(); }
};

struct KernelSum {
  std::vector<std::int64_t> work, count;  ///< By column of steps.
};

/// "void at::native::(anonymous namespace)::f<float>(int)" -> "at::native::f<float>"
std::string short_kernel_name(std::string_view name) {
  std::string text(name);
  if (text.starts_with("void ")) text.erase(0, 5);
  for (std::string_view part : {"(anonymous namespace)::", "at::native::"}) {
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
      text.erase(at, part.size());
  }
  if (const std::size_t open = text.rfind(")"); open == text.size() - 1) {
    std::size_t depth = 0, at = text.size();
    while (at-- > 0) {
      if (text[at] == ')') ++depth;
      if (text[at] == '(' && --depth == 0) break;
    }
    if (at > 0 && at < text.size()) text.resize(at);
  }
  return shortened(text, kLongestKernelName);
}

class KernelSums {
 public:
  explicit KernelSums(const ObservedJob& job) : job_(job), steps_(job.graph) {
    for (const HostRecord& host : job.trace.hosts) {
      if (host.external == 0 || host.details >= job.trace.op_details.size()) continue;
      const NameId shapes = job.trace.op_details[host.details].shapes;
      if (shapes != NameId{}) shapes_.try_emplace(host.external, shapes);
    }
    sum_of_.assign(job.graph.task_count(), kNone);
    for (std::uint32_t i = 0; i < job.graph.task_count(); ++i) take(TaskId{i});
  }

  JobKernels listed() const {
    std::int64_t all = 0;
    for (const KernelSum& sum : sums_) {
      for (const std::int64_t work : sum.work) all += work;
    }
    std::vector<std::pair<KernelTimes, std::uint32_t>> kept;
    for (std::uint32_t i = 0; i < sums_.size(); ++i) {
      std::int64_t work = 0;
      for (const std::int64_t step : sums_[i].work) work += step;
      if (work > 0 && static_cast<double>(work) >= kListedShare * static_cast<double>(all))
        kept.emplace_back(times(keys_[i], sums_[i]), i);
    }
    std::erase_if(kept, [](const auto& kernel) { return kernel.first.count == 0; });
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.name, a.first.key) < std::tie(b.first.name, b.first.key);
    });
    std::vector<std::uint32_t> place(sums_.size(), kNone);
    JobKernels found;
    for (auto& [kernel, sum] : kept) {
      place[sum] = static_cast<std::uint32_t>(found.kernels.size());
      found.kernels.push_back(std::move(kernel));
    }
    for (const std::uint32_t sum : sum_of_)
      found.kernel_of.push_back(sum == kNone ? kNone : place[sum]);
    return found;
  }

 private:
  void take(TaskId id) {
    const Task& task = job_.graph.task(id);
    if (task.kind != TaskKind::kernel || job_.graph.removed(id)) return;
    const std::optional<std::size_t> column = steps_.column(task.step);
    if (!column) return;
    const auto [found, added] =
        numbers_.try_emplace(key_of(id, task), static_cast<std::uint32_t>(sums_.size()));
    if (added) {
      keys_.push_back(found->first);
      sums_.push_back({std::vector<std::int64_t>(steps_.count(), 0),
                       std::vector<std::int64_t>(steps_.count(), 0)});
    }
    sum_of_[index(id)] = found->second;
    sums_[found->second].work[*column] += task.duration.count();
    ++sums_[found->second].count[*column];
  }

  KernelKey key_of(TaskId id, const Task& task) const {
    KernelKey key{.name = task.name};
    if (index(id) >= job_.recorded_tasks || task.record >= job_.trace.devices.size()) return key;
    const DeviceRecord& record = job_.trace.devices[task.record];
    key.grid = record.grid, key.block = record.block;
    const auto op = shapes_.find(record.external);
    if (record.external != 0 && op != shapes_.end()) key.shapes = op->second;
    return key;
  }

  KernelTimes times(const KernelKey& key, const KernelSum& sum) const {
    KernelTimes kernel;
    const std::string_view name = job_.graph.names()[key.name];
    kernel.name = short_kernel_name(name);
    const std::string_view shapes =
        key.shapes == NameId{} ? std::string_view() : job_.trace.names[key.shapes];
    kernel.key = hash_digits(fmt::format("{}\n{}\n{}\n{}", name, key.grid, key.block, shapes));
    kernel.count = steps_.per_step(lower_median(sum.count));
    std::vector<std::int64_t> means;
    for (std::size_t step = 0; step < sum.count.size(); ++step) {
      const std::int64_t mean = sum.count[step] == 0 ? 0 : sum.work[step] / sum.count[step];
      kernel.of_steps.push_back(mean);
      if (sum.count[step] > 0) means.push_back(mean);
    }
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    kernel.least = Nanoseconds(*least), kernel.most = Nanoseconds(*most);
    kernel.each = Nanoseconds(lower_median(means));
    return kernel;
  }

  const ObservedJob& job_;
  SteadySteps steps_;
  std::unordered_map<std::uint32_t, NameId> shapes_;  ///< By the external id of an op.
  std::map<KernelKey, std::uint32_t> numbers_;
  std::vector<KernelKey> keys_;
  std::vector<KernelSum> sums_;
  std::vector<std::uint32_t> sum_of_;  ///< By task, into sums_; kNone for others.
};

}  // namespace

JobKernels kernels_of(const ObservedJob& job) { return KernelSums(job).listed(); }

}  // namespace foretrace
