// Finds causes from changes: all changes at one place are one cause, named by the most significant
// change, and weighed by replaying the job without all of them.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "question/check/job/changes.h"
#include "question/check/job/figures.h"
#include "question/check/job/words.h"

namespace foretrace {
namespace {

/// Replays take long on large jobs, and more causes are not useful to readers.
constexpr std::size_t kMaxReplays = 10;
constexpr std::size_t kMaxCauses = 20;

using ClusterKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;

struct ChangeCluster {
  std::vector<const WorkChange*> changes;
  const WorkChange* headline = nullptr;
  Nanoseconds local{0};
  /// The cause includes waits, so its effect may exceed its own work by far.
  bool frees_waits = false;
  CheckCause cause;
  CheckOutcome standing = CheckOutcome::passed;
  std::vector<std::uint32_t> groups = {};  ///< Indices of groups of slower kernels.
};

ClusterKey cluster_key(const WorkChange& change) {
  const std::string op = change.op.substr(0, change.op.find('/'));
  // Without a place only the name of the work distinguishes causes.
  const bool has_place = !op.empty() || !change.file.empty();
  const std::string module = without_instances(change.module.substr(0, change.module.find(" (")));
  return {op, module, change.file, change.function,
          has_place ? "" : fmt::format("{} {}", to_string(change.kind), change.after.name)};
}

bool weighs_on(const ChangeCluster& cluster, const CheckedFigure& figure) {
  const FigureRule& rule = figure_rule(figure.name);
  return std::any_of(cluster.changes.begin(), cluster.changes.end(),
                     [&](const WorkChange* change) { return weighs_on(*change, rule); });
}

std::int64_t worsening(const CheckedFigure& figure) {
  const std::int64_t change = figure.after.value_or(0) - figure.before.value_or(0);
  return figure.less_is_worse ? -change : change;
}

/// A cause of less than a twentieth of the slowdown explains nothing.
bool is_large_enough(const ChangeCluster& cluster, const CheckedFigure& figure) {
  if (figure.unit != FigureUnit::time) return true;
  const Nanoseconds size =
      figure.name == kStepTime ? cluster.cause.effect.value_or(cluster.local / 3) : cluster.local;
  return size.count() * 20 >= worsening(figure);
}

class CauseFinder {
 public:
  /// Waits that moved cost what they now wait for. What they cost before is unknown, so they are
  /// only asked, `of_moved_waits`, if nothing else explains a longer step.
  explicit CauseFinder(const CausesQuestion& question, bool of_moved_waits = false)
      : question_(question), of_moved_waits_(of_moved_waits) {
    for (const CheckedFigure& figure : question.figures) {
      if (figure.standing >= CheckOutcome::warned) worse_.push_back(&figure);
    }
    std::stable_sort(worse_.begin(), worse_.end(),
                     [](const auto* a, const auto* b) { return a->standing > b->standing; });
  }

  void find(std::vector<CauseCandidate>& found) {
    if (worse_.empty()) return;
    const WorkChanges changes = work_changes(question_.before, question_.after);
    for (const GeneralChange& general : changes.general) {
      if (!of_moved_waits_) add_general(general);
    }
    const std::vector<WorkChange> merged = marked_changes(question_.before, changes.changes);
    for (const WorkChange& change : merged) {
      if (change.is_moved_wait() == of_moved_waits_) add_to_cluster(change);
    }
    measure_clusters();
    for (ChangeCluster& cluster : found_)
      found.push_back({std::move(cluster.cause), cluster.standing, std::move(cluster.groups)});
  }

  /// Worse figures for which no cause was found, except figures whose causes are found elsewhere
  /// (has_own_causes).
  std::vector<CheckedFigure> unexplained() const {
    std::vector<CheckedFigure> left;
    for (const CheckedFigure* figure : worse_) {
      if (!explained_.contains(figure->name) && !figure_rule(figure->name).has_own_causes)
        left.push_back(*figure);
    }
    return left;
  }

 private:
  void add_general(const GeneralChange& general) {
    ChangeCluster cluster;
    cluster.local = scaled(general.before, general.factor - 1);
    cluster.cause.what = general_words(general);
    cluster.cause.kind = to_string(general.kind);
    cluster.cause.local = cluster.local;
    std::vector<RemovedWork> taken;
    for (const std::uint32_t group : general.now)
      taken.push_back({.group = group, .left = 1 / general.factor, .freed_syncs = 0, .lines = {}});
    cluster.cause.effect = effect_of(question_.job, question_.grouping, taken);
    const CheckedFigure* worst = nullptr;
    for (const CheckedFigure* figure : worse_) {
      const auto slows_with = figure_rule(figure->name).slows_with;
      if (slows_with == nullptr || !slows_with(general.kind) || !is_large_enough(cluster, *figure))
        continue;
      explained_.insert(figure->name);
      if (worst == nullptr) worst = figure;
    }
    if (worst == nullptr) return;
    cluster.standing = worst->standing, cluster.cause.figure = worst->name;
    found_.push_back(std::move(cluster));
  }

  void add_to_cluster(const WorkChange& change) {
    ChangeCluster& cluster = clusters_[cluster_key(change)];
    cluster.changes.push_back(&change);
    cluster.local += excess_of(change);
  }

  static Nanoseconds excess_of(const WorkChange& change) {
    return std::max(0ns, std::max(change.added(), change.exposed()));
  }

  /// Orders changes by how well they explain the slowdown `of` their place. Work that is merely
  /// slower, by less than a third of that slowdown, comes last.
  using Rank = std::tuple<bool, int, Nanoseconds>;
  static Rank rank(const WorkChange& change, Nanoseconds of) {
    const bool is_new = change.has_more_tasks() || change.after.bytes > change.before.bytes ||
                        !change.replaced.empty() || change.after.pageable > change.before.pageable;
    return {is_new || excess_of(change) * 3 >= of, significance(change), change.added()};
  }

  /// A change that makes no figure worse cannot stand for those that do.
  std::pair<bool, Rank> telling(const WorkChange& change, Nanoseconds of) const {
    const bool is_worse = std::any_of(worse_.begin(), worse_.end(), [&](const auto* figure) {
      return weighs_on(change, figure_rule(figure->name));
    });
    return {is_worse, rank(change, of)};
  }

  void choose_headline(ChangeCluster& cluster) const {
    for (const WorkChange* change : cluster.changes) {
      if (cluster.headline == nullptr ||
          telling(*change, cluster.local) > telling(*cluster.headline, cluster.local))
        cluster.headline = change;
      if (((change->kind == TaskKind::sync || is_event_wait(*change)) &&
           change->has_more_tasks()) ||
          change->is_moved_wait())
        cluster.frees_waits = true;
    }
  }

  void measure_clusters() {
    std::vector<ChangeCluster*> order;
    for (auto& [key, cluster] : clusters_) {
      choose_headline(cluster);
      order.push_back(&cluster);
    }
    // Waits cost more than the calls that wait, so they are weighed first.
    std::stable_sort(
        order.begin(), order.end(), [](const ChangeCluster* a, const ChangeCluster* b) {
          const auto first = [](const ChangeCluster* cluster) {
            return std::tuple(
                cluster->headline->kind == TaskKind::sync && cluster->headline->more() > 0,
                cluster->local);
          };
          return first(a) > first(b);
        });
    std::size_t replays = 0;
    for (ChangeCluster* cluster : order) {
      if (!affects_worse_figure(*cluster)) continue;
      describe(*cluster);
      if (replays++ < kMaxReplays) measure_effect(*cluster);
      keep_if_explanatory(std::move(*cluster));
    }
  }

  bool affects_worse_figure(const ChangeCluster& cluster) const {
    return std::any_of(worse_.begin(), worse_.end(),
                       [&](const CheckedFigure* figure) { return weighs_on(cluster, *figure); });
  }

  void keep_if_explanatory(ChangeCluster cluster) {
    const CheckedFigure* worst = nullptr;
    for (const CheckedFigure* figure : worse_) {
      if (!weighs_on(cluster, *figure) || !is_large_enough(cluster, *figure)) continue;
      explained_.insert(figure->name);
      if (worst == nullptr) worst = figure;
    }
    if (worst == nullptr) return;
    cluster.standing = worst->standing;
    cluster.cause.figure = worst->name;
    for (const WorkChange* change : cluster.changes) {
      if (change->kind == TaskKind::kernel && change->added() > 0ns)
        cluster.groups.insert(cluster.groups.end(), change->now.begin(), change->now.end());
    }
    found_.push_back(std::move(cluster));
  }

  void describe(ChangeCluster& cluster) const {
    const WorkChange& change = *cluster.headline;
    CheckCause& cause = cluster.cause;
    cause.what = change_words(change) + companions(cluster);
    cause.kind = to_string(change.kind);
    cause.local = cluster.local;
    cause.count_before = change.before.count, cause.count_after = change.after.count;
    cause.file = change.file;
    const std::vector<int> lines = new_lines(change.before, change.after);
    if (!lines.empty()) {
      cause.line = lines.front();
    } else if (!change.after.lines.empty()) {
      cause.line = change.after.lines.front().first;
    }
    cause.where = place_words(change, cause.line);
    if (cause.where.empty()) cause.where = position(change, cause);
  }

  /// Names the other notable changes at the place, such as a copy that came with a wait.
  static std::string companions(const ChangeCluster& cluster) {
    constexpr int kMinTelling = 5;
    constexpr std::size_t kMaxCompanions = 2;
    std::vector<const WorkChange*> others;
    for (const WorkChange* change : cluster.changes) {
      if (change != cluster.headline && significance(*change) >= kMinTelling &&
          std::get<0>(rank(*change, cluster.local)))
        others.push_back(change);
    }
    std::stable_sort(others.begin(), others.end(), [&](const WorkChange* a, const WorkChange* b) {
      return rank(*a, cluster.local) > rank(*b, cluster.local);
    });
    std::string text;
    for (std::size_t i = 0; i < std::min(others.size(), kMaxCompanions); ++i)
      text += (i == 0 ? ", with " : " and ") + change_words(*others[i]);
    if (others.size() > kMaxCompanions)
      text += fmt::format(" and {} more changes", others.size() - kMaxCompanions);
    return text;
  }

  std::string position(const WorkChange& change, CheckCause& cause) const {
    std::vector<TaskId> tasks;
    for (std::uint32_t i = 0; i < question_.job.graph.task_count(); ++i) {
      const std::uint32_t group = question_.grouping.group_of[i];
      if (std::find(change.now.begin(), change.now.end(), group) != change.now.end())
        tasks.push_back(TaskId{i});
    }
    return position_of(question_.job, tasks, cause);
  }

  void measure_effect(ChangeCluster& cluster) const {
    std::vector<RemovedWork> taken;
    for (const WorkChange* change : cluster.changes) {
      RemovedWork part;
      const Nanoseconds excess = std::max(change->added(), change->exposed());
      if (change->after.work > 0ns && excess > 0ns) {
        part.left = std::max(0.0, 1 - static_cast<double>(excess.count()) /
                                          static_cast<double>(change->after.work.count()));
      } else {
        part.left = 1;
      }
      if (change->kind == TaskKind::sync && (change->more() > 0 || change->is_moved_wait())) {
        part.freed_syncs = change->more() > 0 ? change->more() : change->came;
        part.lines = new_lines(change->before, change->after);
      }
      for (const std::uint32_t group : change->now) {
        part.group = group;
        taken.push_back(part);
      }
    }
    cluster.cause.effect = effect_of(question_.job, question_.grouping, taken);
    // Removing work cannot shorten a step by more than that work, though a replay may show more if
    // the median falls on another step.
    if (!cluster.frees_waits) cluster.cause.effect = std::min(*cluster.cause.effect, cluster.local);
    if (const CheckedFigure* step = worse_figure(question_, kStepTime); of_moved_waits_ && step)
      cluster.cause.effect = std::min(*cluster.cause.effect, Nanoseconds(worsening(*step)));
  }

  const CausesQuestion& question_;
  bool of_moved_waits_;
  std::vector<const CheckedFigure*> worse_;  ///< Most severe first.
  std::map<ClusterKey, ChangeCluster> clusters_;
  std::vector<ChangeCluster> found_;
  std::set<std::string> explained_;  ///< Names of figures that have a cause.
};

/// Whether a cause explains a timed figure, but less than a tenth of the step's slowdown.
bool is_minor(const CheckCause& cause, const CheckedFigure* step) {
  if (step == nullptr || !figure_rule(cause.figure).entry.is_timed()) return false;
  return cause.effect.value_or(0ns).count() * 10 < worsening(*step);
}

/// `step` is the step time if that is worse; otherwise null.
std::vector<CheckCause> greatest_first(std::vector<CauseCandidate> found,
                                       const CheckedFigure* step) {
  std::stable_sort(
      found.begin(), found.end(), [&](const CauseCandidate& a, const CauseCandidate& b) {
        const auto rank = [&](const CauseCandidate& candidate) {
          return std::tuple(!is_minor(candidate.cause, step), candidate.standing,
                            candidate.cause.effect.value_or(0ns), candidate.cause.local,
                            candidate.cause.figure == kMemoryGrowth, candidate.cause.bytes);
        };
        return rank(a) > rank(b);
      });
  std::vector<CheckCause> causes;
  std::set<std::string> listed;
  for (const CauseCandidate& candidate : found) {
    if (causes.size() < kMaxCauses &&
        listed.insert(candidate.cause.what + "\n" + candidate.cause.where).second)
      causes.push_back(candidate.cause);
  }
  return causes;
}

// Kernels that became slower wherever they run.

constexpr std::size_t kMaxSlowerKernels = 5;

std::vector<TaskId> tasks_of_kernel(const JobKernels& kernels, std::uint32_t number) {
  std::vector<TaskId> tasks;
  for (std::uint32_t i = 0; i < kernels.kernel_of.size(); ++i) {
    if (kernels.kernel_of[i] == number) tasks.push_back(TaskId{i});
  }
  return tasks;
}

CheckCause kernel_cause(const CausesQuestion& question, const SlowerKernel& slower) {
  const KernelTimes& before = question.before.kernels[slower.before];
  const KernelTimes& now = question.kernels.kernels[slower.now];
  CheckCause cause;
  cause.what =
      fmt::format("{} slower: {} -> {}", now.name, to_text(before.each), to_text(now.each));
  if (now.count > 1) cause.what += fmt::format(" x {}", now.count);
  cause.kind = "kernel", cause.figure = kSlowerKernels;
  cause.local = slower.added;
  cause.count_before = before.count, cause.count_after = now.count;
  cause.where = position_of(question.job, tasks_of_kernel(question.kernels, slower.now), cause);
  const Grouping alone{.detail = 0, .groups = {}, .group_of = question.kernels.kernel_of};
  cause.effect = std::min(
      cause.local,
      effect_of(question.job, alone,
                {{.group = slower.now, .left = 1 / slower.ratio, .freed_syncs = 0, .lines = {}}}));
  return cause;
}

/// Whether causes at places already cover most tasks of a kernel.
bool is_known(const CausesQuestion& question, const std::set<std::uint32_t>& known,
              std::uint32_t kernel) {
  const std::vector<TaskId> tasks = tasks_of_kernel(question.kernels, kernel);
  const auto covered = std::count_if(tasks.begin(), tasks.end(), [&](TaskId task) {
    return known.contains(question.grouping.group_of[index(task)]);
  });
  return covered * 2 > std::ssize(tasks);
}

// Causes of higher memory use.

using MemoryPlace = std::tuple<std::string, std::string, std::string, std::string>;

MemoryPlace memory_place(const MemoryGroup& group) {
  return {group.op, without_instances(group.module), group.file, group.function};
}

CheckCause memory_cause(const MemoryGroup& group, Bytes more, const char* how) {
  WorkChange place;
  place.module = group.module, place.file = group.file, place.function = group.function;
  CheckCause cause;
  cause.what = fmt::format("+{} {}: {}", to_text(more), how,
                           group.op.empty() ? "memory of no known op" : group.op);
  cause.where = place_words(place, group.line);
  cause.file = group.file, cause.line = group.line;
  cause.kind = "memory", cause.bytes = more;
  return cause;
}

/// Adds the places with at least a twentieth of the figure's increase, except those in `listed`.
void add_memory_causes(const CausesQuestion& question, const CheckedFigure& figure,
                       Bytes MemoryGroup::*part, std::set<MemoryPlace>& listed,
                       std::vector<CauseCandidate>& found) {
  const char* how = part == &MemoryGroup::kept ? "in each step, never freed" : "at the peak";
  std::map<MemoryPlace, Bytes> then, now;
  for (const MemoryGroup& group : question.before.memory) then[memory_place(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) now[memory_place(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) {
    const MemoryPlace key = memory_place(group);
    const Bytes more = now[key] - then[key];
    const std::int64_t worse = figure.after.value_or(0) - figure.before.value_or(0);
    if (more.count <= 0 || more.count * 20 < worse || !listed.insert(key).second) continue;
    CheckCause cause = memory_cause(group, more, how);
    cause.figure = figure.name;
    found.push_back({std::move(cause), figure.standing});
  }
}

}  // namespace

const CheckedFigure* worse_figure(const CausesQuestion& question, std::string_view name) {
  for (const CheckedFigure& figure : question.figures) {
    if (figure.name == name && figure.standing >= CheckOutcome::warned) return &figure;
  }
  return nullptr;
}

std::vector<CheckCause> causes_of(const CausesQuestion& question) {
  std::vector<CauseCandidate> found;
  CauseFinder by_place(question);
  by_place.find(found);
  const auto is_of_step = [](const CauseCandidate& one) { return one.cause.figure == kStepTime; };
  if (worse_figure(question, kStepTime) != nullptr &&
      std::none_of(found.begin(), found.end(), is_of_step))
    CauseFinder(question, true).find(found);
  // Work whose place differs in each step is at none of its places in most steps; it is compared by
  // kind and name alone.
  const std::vector<CheckedFigure> unexplained = by_place.unexplained();
  // The coarsest baselines do not distinguish kernels.
  if (!unexplained.empty() && question.before.detail < kCoarsestDetail) {
    const Grouping grouping = group_work(question.job, kAnyPlace);
    JobSummary after = question.after;
    after.groups = grouping.groups;
    const JobSummary before = at_any_place(question.before);
    const CausesQuestion anywhere{.job = question.job,
                                  .grouping = grouping,
                                  .kernels = question.kernels,
                                  .before = before,
                                  .after = after,
                                  .figures = unexplained};
    const std::size_t of_places = found.size();
    CauseFinder(anywhere).find(found);
    for (std::size_t i = of_places; i < found.size(); ++i) found[i].groups.clear();
  }
  add_memory(question, found);
  add_slower_kernels(question, found);
  add_slowest_step(question, found);
  return greatest_first(std::move(found), worse_figure(question, kStepTime));
}

void add_slower_kernels(const CausesQuestion& question, std::vector<CauseCandidate>& found) {
  const CheckedFigure* figure = worse_figure(question, kSlowerKernels);
  if (figure == nullptr) return;
  std::set<std::uint32_t> known;
  for (const CauseCandidate& cause : found) known.insert(cause.groups.begin(), cause.groups.end());
  std::size_t listed = 0;
  for (const SlowerKernel& slower :
       slower_kernels(question.before.kernels, question.kernels.kernels)) {
    if (is_known(question, known, slower.now)) continue;
    if (listed++ == kMaxSlowerKernels) return;
    found.push_back({kernel_cause(question, slower), figure->standing});
  }
}

void add_memory(const CausesQuestion& question, std::vector<CauseCandidate>& found) {
  // Memory that is never freed is in use at the peak as well, but is reported once.
  std::set<MemoryPlace> listed;
  if (const CheckedFigure* growth = worse_figure(question, kMemoryGrowth))
    add_memory_causes(question, *growth, &MemoryGroup::kept, listed, found);
  const CheckedFigure* allocated = worse_figure(question, kPeakAllocated);
  const CheckedFigure* reserved = worse_figure(question, kPeakReserved);
  if (allocated == nullptr || (reserved != nullptr && reserved->standing > allocated->standing))
    allocated = reserved;
  if (allocated != nullptr)
    add_memory_causes(question, *allocated, &MemoryGroup::peak, listed, found);
}

}  // namespace foretrace
