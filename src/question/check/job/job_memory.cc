// The holders of memory at the peak, and the memory kept from step to step.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/statistics.h"
#include "question/check/job/job_summary.h"

namespace foretrace {
namespace {

struct MemoryKey {
  NameId op{}, module{};
  std::uint32_t site = 0;
  auto key() const { return std::tuple(op, module, site); }
  bool operator<(const MemoryKey& other) const { return key() < other.key(); }
};

struct MemorySum {
  std::int64_t peak = 0;
  std::vector<std::int64_t> kept;  ///< By column of steps.
};

/// When the host begins each step, in order; steps without host tasks are left out.
std::map<std::int32_t, Nanoseconds> step_begins(const ObservedJob& job) {
  std::map<std::int32_t, Nanoseconds> begins;
  for (std::uint32_t i = 0; i < job.graph.task_count(); ++i) {
    const Task& task = job.graph.task(TaskId{i});
    if (task.step < 0 || job.graph.removed(TaskId{i}) || runs_on_device(task.kind)) continue;
    const auto [found, added] = begins.try_emplace(task.step, job.timeline.start[i]);
    if (!added) found->second = std::min(found->second, job.timeline.start[i]);
  }
  return begins;
}

const MemoryCurve* fullest_curve(const Timeline& timeline) {
  const MemoryCurve* fullest = nullptr;
  for (const MemoryCurve& curve : timeline.memory) {
    if (curve.device >= 0 && (fullest == nullptr || curve.peak > fullest->peak)) fullest = &curve;
  }
  return fullest;
}

class MemoryGrouper {
 public:
  MemoryGrouper(const ObservedJob& job, const MemoryCurve& curve)
      : job_(job), curve_(curve), begins_(step_begins(job)), steps_(job.graph) {
    const std::vector<Allocation>& allocations = job.graph.allocations();
    std::vector<Nanoseconds> made(allocations.size(), Nanoseconds::min());
    std::vector<Nanoseconds> freed(allocations.size(), Nanoseconds::max());
    for (const MemoryEvent& event : memory_events(job.graph, job.replayed))
      (event.frees ? freed : made)[event.allocation] = event.time;
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      if (allocations[i].device == curve.device && allocations[i].bytes.count > 0)
        take(allocations[i], made[i], freed[i]);
    }
  }

  std::vector<MemoryGroup> groups() const {
    std::map<std::tuple<std::string, std::string, std::string, std::string>, MemoryGroup> all;
    for (const auto& [key, sum] : sums_) {
      MemoryGroup group;
      group.op = job_.graph.names()[key.op], group.module = job_.graph.names()[key.module];
      if (key.site != 0) {
        const CallSite& site = places_[key.site - 1];
        group.file = site.file, group.function = site.function, group.line = site.line;
      }
      group.peak = Bytes{sum.peak};
      group.kept = Bytes{steps_.per_step(kept_in_a_step(sum))};
      if (group.peak.count == 0 && group.kept.count == 0) continue;
      const auto [found, added] =
          all.try_emplace({group.op, group.module, group.file, group.function}, group);
      if (added) continue;
      found->second.peak += group.peak, found->second.kept += group.kept;
    }
    return greatest(all);
  }

  std::optional<Bytes> growth() const {
    std::vector<std::int64_t> levels, changes;
    for (const auto& [step, begin] : begins_) levels.push_back(level_at(begin));
    // The first change is left out, because the optimizer may allocate its state in the first step.
    for (std::size_t i = 2; i < levels.size(); ++i) changes.push_back(levels[i] - levels[i - 1]);
    if (changes.empty()) return std::nullopt;
    return Bytes{std::max<std::int64_t>(0, lower_median(std::move(changes)))};
  }

 private:
  void take(const Allocation& block, Nanoseconds made, Nanoseconds freed) {
    MemoryKey key{.op = block.op, .module = {}, .site = 0};
    std::int32_t step = -1;
    if (block.made_by != kNoTask && index(block.made_by) < job_.recorded_tasks) {
      key.module = job_.graph.task(block.made_by).module;
      step = job_.graph.task(block.made_by).step;
      if (const std::optional<CallSite> site = job_.sites.site(block.made_by)) {
        const auto place = std::tuple(site->file, site->function, site->line);
        key.site = numbers_.try_emplace(place, static_cast<std::uint32_t>(numbers_.size()) + 1)
                       .first->second;
        if (places_.size() < numbers_.size()) places_.push_back(*site);
      }
    }
    MemorySum& sum = sums_[key];
    sum.kept.resize(steps_.count(), 0);
    is_followed_.resize(steps_.count(), 0);
    if (made <= curve_.peak_time && freed > curve_.peak_time) sum.peak += block.bytes.count;
    const std::optional<std::size_t> column = steps_.column(step);
    if (step < 0 || !column) return;
    const auto next = begins_.upper_bound(step);
    // Memory is kept if it is freed after the next step has ended. Memory that only the next step
    // still reads is not kept.
    if (next == begins_.end() || std::next(next) == begins_.end()) return;
    is_followed_[*column] = 1;
    if (freed > std::next(next)->second) sum.kept[*column] += block.bytes.count;
  }

  /// Median over the steps that two more steps follow; memory of the last steps may still be freed.
  std::int64_t kept_in_a_step(const MemorySum& sum) const {
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < is_followed_.size(); ++i) {
      if (is_followed_[i] != 0) values.push_back(sum.kept[i]);
    }
    return lower_median(std::move(values));
  }

  std::int64_t level_at(Nanoseconds time) const {
    const auto behind = std::upper_bound(
        curve_.points.begin(), curve_.points.end(), time,
        [](Nanoseconds at, const MemoryCurve::Point& point) { return at < point.time; });
    return behind == curve_.points.begin() ? 0 : std::prev(behind)->allocated.count;
  }

  template <class Groups>
  static std::vector<MemoryGroup> greatest(const Groups& all) {
    constexpr std::size_t kMax = 200;
    std::vector<std::int64_t> sizes;
    for (const auto& [key, group] : all) sizes.push_back(std::max(group.peak, group.kept).count);
    std::sort(sizes.rbegin(), sizes.rend());
    const std::int64_t least = sizes.size() > kMax ? sizes[kMax] + 1 : 1;
    std::vector<MemoryGroup> kept;
    for (const auto& [key, group] : all) {
      if (std::max(group.peak, group.kept).count >= least) kept.push_back(group);
    }
    return kept;
  }

  const ObservedJob& job_;
  const MemoryCurve& curve_;
  std::map<std::int32_t, Nanoseconds> begins_;
  SteadySteps steps_;
  std::map<MemoryKey, MemorySum> sums_;
  std::vector<char> is_followed_;  ///< By column: whether two more steps follow.
  std::map<std::tuple<std::string, std::string, int>, std::uint32_t> numbers_;
  std::vector<CallSite> places_;
};

}  // namespace

JobMemory memory_of(const ObservedJob& job) {
  const MemoryCurve* curve = fullest_curve(job.replayed);
  if (curve == nullptr) return {};
  const MemoryGrouper grouper(job, *curve);
  return {.groups = grouper.groups(), .growth = grouper.growth()};
}

}  // namespace foretrace
