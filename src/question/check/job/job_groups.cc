// Groups of work: the work of the program at one place, with the sums of each step.

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/statistics.h"
#include "question/check/job/job_summary.h"

namespace foretrace {
namespace {

/// A baseline with this many groups, one line each, is still readable as text.
constexpr std::size_t kMaxGroups = 600;

struct StepSum {
  std::int64_t count = 0, work = 0, hidden = 0, bytes = 0, aside = 0, pageable = 0;
  std::int64_t longest = 0;  ///< The longest single task.

  StepSum& operator+=(const StepSum& other) {
    count += other.count, work += other.work, hidden += other.hidden;
    bytes += other.bytes, aside += other.aside, pageable += other.pageable;
    longest = std::max(longest, other.longest);
    return *this;
  }
};

/// The finest identity of a task's work, in numbers.
struct WorkKey {
  TaskKind kind{};
  NameId module{}, name{};
  std::uint32_t op = 0, site = 0;
  auto key() const { return std::tuple(kind, module, name, op, site); }
  bool operator<(const WorkKey& other) const { return key() < other.key(); }
};

struct WorkSum {
  std::vector<StepSum> steps;
  std::int64_t critical = 0;
};

/// The identity of a group as the baseline file shows it; sorts in the order of the file.
struct GroupKey {
  TaskKind kind{};
  /// Op, module, file, function, name.
  std::tuple<std::string, std::string, std::string, std::string, std::string> texts;
  bool operator<(const GroupKey& other) const {
    return kind == other.kind ? texts < other.texts : to_string(kind) < to_string(other.kind);
  }
};

struct MergedGroup {
  WorkSum sum;
  std::map<int, std::vector<std::int64_t>> lines;  ///< Number of calls in each step, by line.
};

/// "aten::linear/aten::t/aten::addmm" -> "aten::linear/aten::addmm"
std::string ends_of_path(std::string_view path) {
  const std::size_t first = path.find('/'), last = path.rfind('/');
  if (first == last) return std::string(path);
  return std::string(path.substr(0, first)) + std::string(path.substr(last));
}

class Grouper {
 public:
  explicit Grouper(const ObservedJob& job)
      : job_(job),
        steps_(job.graph),
        overlap_(job.graph, job.timeline),
        seen_(job.trace.hosts.size(), 0),
        launches_(job.trace.hosts.size(), 0),
        key_of_(job.graph.task_count(), kNone) {
    for (std::uint32_t i = 0; i < job.graph.task_count(); ++i) {
      const std::uint32_t record = host_record(job, TaskId{i});
      if (record != kNone && job.graph.task(TaskId{i}).kind == TaskKind::launch)
        launches_[record] = 1;
    }
    for (std::uint32_t i = 0; i < job.graph.lane_count(); ++i) {
      for (TaskId task = job.graph.first(LaneId{i}); task != kNoTask; task = job.graph.next(task))
        take(task);
    }
    for (const TaskId task : critical_path(job.graph, job.replayed)) {
      if (key_of_[index(task)] != kNone)
        sums_[key_of_[index(task)]].critical += job.graph.task(task).duration.count();
    }
  }

  Grouping grouped(std::optional<int> detail) {
    int level = detail.value_or(0);
    std::map<GroupKey, MergedGroup> merged = merge(level);
    while (!detail && level < kCoarsestDetail && merged.size() > kMaxGroups)
      merged = merge(++level);
    Grouping grouping;
    grouping.detail = level;
    std::map<GroupKey, std::uint32_t> numbers;
    for (const auto& [key, group] : merged) {
      numbers.emplace(key, static_cast<std::uint32_t>(grouping.groups.size()));
      grouping.groups.push_back(described(key, group));
    }
    std::vector<std::uint32_t> group_of_key(keys_.size(), kNone);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto found = numbers.find(written(keys_[i], level));
      if (found != numbers.end()) group_of_key[i] = found->second;
    }
    grouping.group_of.assign(key_of_.size(), kNone);
    for (std::size_t i = 0; i < key_of_.size(); ++i) {
      if (key_of_[i] != kNone) grouping.group_of[i] = group_of_key[key_of_[i]];
    }
    return grouping;
  }

 private:
  void take(TaskId id) {
    const Task& task = job_.graph.task(id);
    const std::optional<std::size_t> column = steps_.column(task.step);
    if (task.kind == TaskKind::marker || !column) return;
    const auto [found, added] =
        numbers_.try_emplace(key_of(id), static_cast<std::uint32_t>(sums_.size()));
    if (added) {
      keys_.push_back(found->first);
      sums_.push_back({std::vector<StepSum>(steps_.count())});
    }
    key_of_[index(id)] = found->second;
    StepSum& sum = sums_[found->second].steps[*column];
    const std::uint32_t record = host_record(job_, id);
    // A call that is cut where it waits counts once.
    if (record == kNone || seen_[record] == 0) ++sum.count;
    if (record != kNone) seen_[record] = 1;
    sum.work += task.duration.count();
    sum.longest = std::max(sum.longest, task.duration.count());
    if (!runs_on_device(task.kind)) return;
    sum.bytes += task.bytes.count;
    if (leaves_device(task.kind)) {
      sum.hidden += overlap_.hidden(id).count();
      sum.pageable += is_pageable(job_.graph.name(id)) ? 1 : 0;
    }
    sum.aside += overlap_.is_on_side_stream(id) ? 1 : 0;
  }

  WorkKey key_of(TaskId id) {
    const Task& task = job_.graph.task(id);
    WorkKey key{.kind = task.kind, .module = task.module, .name = task.name};
    if (index(id) >= job_.recorded_tasks) return key;
    const bool on_device = runs_on_device(task.kind);
    const std::uint32_t record = host_record(job_, id);
    // Host work of ops and frames between calls is summed up by place.
    const bool called = record != kNone && is_call(job_.trace.hosts[record].kind);
    // A call has one kind, although it may be cut into work, a launch and a wait.
    if (called) {
      key.kind = is_synchronizing(job_, id)   ? TaskKind::sync
                 : launches_[record] != 0     ? TaskKind::launch
                 : key.kind == TaskKind::sync ? TaskKind::sync
                                              : TaskKind::host;
    }
    if (!on_device && !called && record != kNone) key.name = NameId{};
    const std::string_view path = on_device ? job_.sites.op_path(id) : job_.sites.op(id);
    key.op = ops_.try_emplace(path, static_cast<std::uint32_t>(ops_.size())).first->second;
    if (op_texts_.size() < ops_.size()) op_texts_.push_back(path);
    if (const std::optional<CallSite> site = job_.sites.site(id)) {
      const auto place = std::tuple(site->file, site->function, site->line);
      key.site =
          sites_.try_emplace(place, static_cast<std::uint32_t>(sites_.size()) + 1).first->second;
      if (site_texts_.size() < sites_.size()) site_texts_.push_back(*site);
    }
    return key;
  }

  GroupKey written(const WorkKey& key, int level) const {
    const std::string_view path = op_texts_.empty() ? "" : op_texts_[key.op];
    const std::string_view module = job_.graph.names()[key.module];
    const bool is_kernel = key.kind == TaskKind::kernel || key.kind == TaskKind::collective;
    GroupKey found{.kind = key.kind, .texts = {}};
    auto& [op, in_module, file, function, name] = found.texts;
    op = level == 0                ? std::string(path)
         : level < kCoarsestDetail ? ends_of_path(path)
         : level < kAnyPlace       ? std::string(path.substr(0, path.find('/')))
                                   : std::string();
    if (level < 2) in_module = module;
    if (level == 2) in_module = without_instances(module);
    if (key.site != 0 && level < kCoarsestDetail) {
      file = site_texts_[key.site - 1].file;
      function = site_texts_[key.site - 1].function;
    }
    if (level != kCoarsestDetail || !is_kernel)
      name = plain_name(job_.graph.names()[key.name], is_kernel);
    return found;
  }

  std::map<GroupKey, MergedGroup> merge(int level) const {
    std::map<GroupKey, MergedGroup> merged;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      MergedGroup& group = merged[written(keys_[i], level)];
      group.sum.steps.resize(steps_.count());
      group.sum.critical += sums_[i].critical;
      std::vector<std::int64_t>* lines = nullptr;
      if (keys_[i].site != 0 && level < kCoarsestDetail) {
        lines = &group.lines[site_texts_[keys_[i].site - 1].line];
        lines->resize(steps_.count(), 0);
      }
      for (std::size_t step = 0; step < steps_.count(); ++step) {
        group.sum.steps[step] += sums_[i].steps[step];
        if (lines != nullptr) (*lines)[step] += sums_[i].steps[step].count;
      }
    }
    std::erase_if(merged, [&](const auto& entry) {
      return median_of(entry.second.sum, &StepSum::count) == 0;
    });
    return merged;
  }

  std::int64_t median_of(const WorkSum& sum, std::int64_t StepSum::*part) const {
    std::vector<std::int64_t> values;
    for (const StepSum& step : sum.steps) values.push_back(step.*part);
    return steps_.per_step(lower_median(std::move(values)));
  }

  JobGroup described(const GroupKey& key, const MergedGroup& merged) const {
    JobGroup group;
    group.kind = key.kind;
    std::tie(group.op, group.module, group.file, group.function, group.name) = key.texts;
    for (const auto& [line, counts] : merged.lines) {
      if (const std::int64_t count = steps_.per_step(lower_median(counts)); count > 0)
        group.lines.emplace_back(line, count);
    }
    group.count = median_of(merged.sum, &StepSum::count);
    group.work = Nanoseconds(median_of(merged.sum, &StepSum::work));
    const auto [least, most] =
        std::minmax_element(merged.sum.steps.begin(), merged.sum.steps.end(),
                            [](const StepSum& a, const StepSum& b) { return a.work < b.work; });
    group.least = Nanoseconds(steps_.per_step(least->work));
    group.most = Nanoseconds(steps_.per_step(most->work));
    std::vector<std::int64_t> longest;
    for (const StepSum& step : merged.sum.steps) longest.push_back(step.longest);
    group.longest = Nanoseconds(lower_median(std::move(longest)));
    group.hidden = Nanoseconds(median_of(merged.sum, &StepSum::hidden));
    group.critical = Nanoseconds(
        steps_.per_step(merged.sum.critical / static_cast<std::int64_t>(steps_.count())));
    group.bytes = Bytes{median_of(merged.sum, &StepSum::bytes)};
    group.aside = median_of(merged.sum, &StepSum::aside);
    group.pageable = median_of(merged.sum, &StepSum::pageable);
    return group;
  }

  const ObservedJob& job_;
  SteadySteps steps_;
  KernelOverlap overlap_;
  std::vector<char> seen_;             ///< By host record: whether its call was counted.
  std::vector<char> launches_;         ///< By host record: whether it launches work.
  std::vector<std::uint32_t> key_of_;  ///< By task, into keys_; kNone for tasks that do not count.
  std::map<WorkKey, std::uint32_t> numbers_;
  std::vector<WorkKey> keys_;
  std::vector<WorkSum> sums_;
  std::unordered_map<std::string_view, std::uint32_t> ops_{{"", 0}};
  std::vector<std::string_view> op_texts_{""};
  std::map<std::tuple<std::string, std::string, int>, std::uint32_t> sites_;
  std::vector<CallSite> site_texts_;
};

}  // namespace

Grouping group_work(const ObservedJob& job, std::optional<int> detail) {
  return Grouper(job).grouped(detail);
}

}  // namespace foretrace
