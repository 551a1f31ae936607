#include "foretrace/question/diff.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <memory>

#include "analysis/doubt/trust.h"
#include "base/threads.h"
#include "foretrace/error.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "question/diff/causes.h"
#include "question/diff/sides.h"

namespace foretrace {
namespace {

/// Budget of tasks that are replayed for one comparison.
constexpr std::size_t kReplayedTasks = 24'000'000;

StepSpan span_of(const DiffSide& side, const SideSteps& steps, const SideWindow& window,
                 const UnionGraph& graph, Side which) {
  StepSpan span;
  if (steps.marks.size() >= 2) {
    span.kind = StepSpan::Kind::marks;
    span.first = graph.place_of(which, steps.marks[window.mark].task);
    span.last = graph.place_of(which, steps.marks[window.mark + window.count].task);
  } else if (steps.marks.size() == 1) {
    span.kind = StepSpan::Kind::tasks;
    for (const TaskId task : tasks_of_step(side.graph, steps.marks[0]))
      span.tasks.push_back(graph.place_of(which, task));
  }
  return span;
}

/// Switches groups from one side to the other, and measures the effect on the step.
class Waterfall {
 public:
  Waterfall(UnionReplay& replay, StepSpan before, StepSpan after, std::size_t groups)
      : replay_(replay), before_(std::move(before)), after_(std::move(after)), groups_(groups) {}

  /// The effect of each group: the mean change when it is switched in two orders, one the reverse
  /// of the other.
  std::vector<Nanoseconds> effects(Notes& notes) {
    std::vector<std::size_t> order;
    for (std::size_t i = 1; i < groups_; ++i) order.push_back(i);
    order.push_back(0);
    std::vector<Nanoseconds> twice = changes(order);
    std::reverse(order.begin(), order.end());
    const std::vector<Nanoseconds> back = changes(order);
    for (std::size_t i = 0; i < groups_; ++i) twice[i] += back[i];
    if (cycles_ > 0) {
      notes.add(Severity::info,
                "groups of differences that cannot be switched one by one; their effects count "
                "with the next group",
                {}, cycles_);
    }
    // Half nanoseconds are carried over to the next group, so that the sum stays the same.
    std::vector<Nanoseconds> effects(groups_);
    Nanoseconds sum{0}, assigned{0};
    for (std::size_t i = 0; i < groups_; ++i) {
      sum += twice[i];
      effects[i] = sum / 2 - assigned;
      assigned += effects[i];
    }
    return effects;
  }

  Nanoseconds value(const std::vector<char>& as_after) {
    const bool ran = replay_.run(as_after);
    CHECK(ran);
    return replay_.measure(as_after[0] != 0 ? after_ : before_);
  }

 private:
  std::vector<Nanoseconds> changes(const std::vector<std::size_t>& order) {
    std::vector<char> as_after(groups_, 0);
    std::vector<Nanoseconds> changes(groups_, 0ns);
    Nanoseconds now = value(as_after);
    for (const std::size_t group : order) {
      as_after[group] = 1;
      if (!replay_.run(as_after)) {
        ++cycles_;
        continue;
      }
      const Nanoseconds next = replay_.measure(as_after[0] != 0 ? after_ : before_);
      changes[group] = next - now;
      now = next;
    }
    return changes;
  }

  UnionReplay& replay_;
  StepSpan before_, after_;
  std::size_t groups_;
  std::int64_t cycles_ = 0;
};

/// One side of the comparison, and the replay that equals it, for its critical path.
struct PathView {
  const UnionGraph& graph;
  const UnionReplay& replay;
  const StepSpan& span;
  Side side;
  const DiffSide& of;
};

std::string_view path_name(const PathView& view, std::uint32_t number) {
  const UnionTask& task = view.graph.tasks()[number];
  const TaskId id = view.side == Side::before ? task.before : task.after;
  return id == kNoTask ? "other" : to_string(view.of.graph.task(id).kind);
}

/// Adds up the chain of tasks that ends the step, back to the beginning of the step.
void add_path(const PathView& view, std::map<std::string, PathShare>& shares) {
  const UnionReplay& replay = view.replay;
  const StepSpan& span = view.span;

  std::uint32_t task = kNone;
  Nanoseconds begin{0};
  if (span.kind == StepSpan::Kind::marks) {
    task = span.last;
    begin = replay.start(span.first);
  } else {
    for (std::uint32_t i = 0; i < view.graph.tasks().size(); ++i) {
      if (!replay.ran(i)) continue;
      if (task == kNone || replay.finish(i) > replay.finish(task)) task = i;
    }
  }
  if (task == kNone) return;
  const auto add = [&](std::string_view name, Nanoseconds time) {
    if (time <= 0ns) return;
    PathShare& share = shares[std::string(name)];
    (view.side == Side::before ? share.before : share.after) += time;
  };
  Nanoseconds now = span.kind == StepSpan::Kind::marks ? replay.start(task) : replay.finish(task);
  if (span.kind == StepSpan::Kind::marks) task = replay.reason(task);
  for (; task != kNone && now > begin; task = replay.reason(task)) {
    const Nanoseconds end = std::min(now, replay.finish(task));
    add("waiting", now - std::max(end, begin));
    const Nanoseconds start = std::max(begin, std::min(replay.start(task), end));
    add(path_name(view, task), std::max(0ns, end - start));
    now = std::min(now, std::max(begin, start));
  }
}

std::vector<PathShare> sorted_shares(std::map<std::string, PathShare> shares) {
  std::vector<PathShare> sorted;
  for (auto& [name, share] : shares) {
    share.name = name;
    sorted.push_back(share);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const PathShare& a, const PathShare& b) {
    return std::max(a.before, a.after) > std::max(b.before, b.after);
  });
  return sorted;
}

void sort_causes(std::vector<DiffCause>& causes) {
  const auto is_rest = [](const DiffCause& cause) { return cause.kind == DiffKind::rest; };
  std::stable_sort(causes.begin(), causes.end(), [&](const DiffCause& a, const DiffCause& b) {
    if (is_rest(a) != is_rest(b)) return is_rest(b);
    if (std::abs(a.effect.count()) != std::abs(b.effect.count()))
      return std::abs(a.effect.count()) > std::abs(b.effect.count());
    return std::abs(a.local.count()) > std::abs(b.local.count());
  });
  std::erase_if(causes, [&](const DiffCause& cause) {
    return is_rest(cause) && cause.effect == 0ns && cause.local == 0ns;
  });
}

void note_differences(Diff& diff) {
  if (diff.before.has_steps != diff.after.has_steps)
    diff.notes.add(Severity::warning,
                   "only one of the two has marked steps: the length of the whole recording is "
                   "compared with a step");
  if (diff.aligned < kHardlyTheSameJob)
    diff.notes.add(Severity::warning,
                   "hardly the same job: few tasks of the two correspond, so most of the "
                   "difference is work that was added and removed",
                   fmt::format("{} % correspond", to_fixed(100 * diff.aligned, 1)));
  if (!diff.before.device.empty() && !diff.after.device.empty() &&
      diff.before.device != diff.after.device)
    diff.notes.add(Severity::info, "recorded on another device",
                   fmt::format("{}, then {}", diff.before.device, diff.after.device));
}

bool changes_structure(const DiffCause& cause) {
  const bool is_work = cause.kind != DiffKind::host && cause.kind != DiffKind::waits;
  if (cause.kind == DiffKind::replaced) return cause.changed > 0;
  return is_work && cause.kind != DiffKind::input && cause.added + cause.removed + cause.moved > 0;
}

/// The comparison of one pair of recordings, part by part.
class Comparison {
 public:
  Comparison(const DiffSide& before, const DiffSide& after)
      : before_(before),
        after_(after),
        steps_before_(side_steps(before)),
        steps_after_(side_steps(after)),
        compared_(compared_steps(steps_before_, steps_after_)) {
    if (before.trace != nullptr)
      sites_before_ = std::make_unique<CallSites>(*before.trace, before.graph);
    if (after.trace != nullptr)
      sites_after_ = std::make_unique<CallSites>(*after.trace, after.graph);
    number_steps();
  }

  Diff compare(const DiffOptions& options) {
    diff_.before = side_report(before_, steps_before_, window(Side::before));
    diff_.after = side_report(after_, steps_after_, window(Side::after));
    const Matching matching =
        match_tasks({before_.graph, keys_before_}, {after_.graph, keys_after_}, keys_);
    count_matched(matching);
    UnionGraph graph({before_.graph, before_.timeline}, {after_.graph, after_.timeline}, matching);
    diff_.causes = find_causes(graph, {before_.graph, sites_before_.get(), keys_before_.step},
                               {after_.graph, sites_after_.get(), keys_after_.step},
                               scope(graph.tasks().size(), options));
    diff_.identical = diff_.causes.size() == 1 && diff_.before.step_time == diff_.after.step_time &&
                      diff_.aligned == 1;
    measure_effects(graph);
    diff_.peak = peak_changes(before_, after_);
    if (options.with_names)
      diff_.names = name_changes(before_, window(Side::before), after_, window(Side::after));
    diff_.identical = diff_.identical && diff_.peak.empty();
    diff_.same_structure =
        std::none_of(diff_.causes.begin(), diff_.causes.end(), changes_structure);
    const auto has_times = [](const DiffSide& side) {
      return side.trace == nullptr || !is_snapshot(*side.trace);
    };
    diff_.has_times = has_times(before_) && has_times(after_);
    note_differences(diff_);
    return std::move(diff_);
  }

 private:
  /// Numbers the steps of both sides so that the compared steps have the same number.
  void number_steps() {
    const std::int32_t behind = compared_.step_before < 0 || compared_.step_after < 0
                                    ? 0
                                    : compared_.step_after - compared_.step_before;
    shift_before_ = std::max(0, behind);
    shift_after_ = std::max(0, -behind);
    const KnownPlaces left = known_places(before_.graph, sites_before_.get());
    const KnownPlaces right = known_places(after_.graph, sites_after_.get());
    const KnownPlaces both{left.modules && right.modules, left.ops && right.ops};
    keys_before_ = task_keys({before_.graph, sites_before_.get(), shift_before_}, both, keys_);
    keys_after_ = task_keys({after_.graph, sites_after_.get(), shift_after_}, both, keys_);
  }

  SideWindow window(Side side) const {
    return side == Side::before
               ? SideWindow{compared_.before, compared_.count, compared_.step_before}
               : SideWindow{compared_.after, compared_.count, compared_.step_after};
  }

  CauseScope scope(std::size_t tasks, const DiffOptions& options) const {
    CauseScope scope;
    scope.most = options.most_causes != 0
                     ? options.most_causes
                     : std::clamp<std::size_t>(kReplayedTasks / (2 * tasks + 1), 12, 60);
    if (compared_.step_before < 0 || compared_.step_after < 0) return scope;
    scope.step = compared_.step_before + shift_before_;
    scope.first = std::max(shift_before_, shift_after_);
    const auto last = [](const DiffSide& side, std::int32_t shift) {
      return static_cast<std::int32_t>(side.graph.steps().size()) - 1 + shift;
    };
    scope.last = std::min(last(before_, shift_before_), last(after_, shift_after_));
    scope.count = static_cast<std::int32_t>(compared_.count);
    // Work between steps belongs to the steps around it.
    if (scope.first == 0) scope.first = -1;
    return scope;
  }

  void count_matched(const Matching& matching) {
    const auto found = std::count_if(matching.after_of.begin(), matching.after_of.end(),
                                     [](TaskId task) { return task != kNoTask; });
    diff_.matched = static_cast<std::size_t>(found);
    const auto both = static_cast<double>(diff_.before.tasks + diff_.after.tasks);
    diff_.aligned = both > 0 ? 2 * static_cast<double>(found) / both : 1;
  }

  void measure_effects(const UnionGraph& graph) {
    const std::size_t groups = diff_.causes.size();
    UnionReplay replay(graph, static_cast<std::uint32_t>(groups));
    const StepSpan span_before =
        span_of(before_, steps_before_, window(Side::before), graph, Side::before);
    const StepSpan span_after =
        span_of(after_, steps_after_, window(Side::after), graph, Side::after);
    Waterfall waterfall(replay, span_before, span_after, groups);
    const std::vector<Nanoseconds> effects =
        groups > 1 ? waterfall.effects(diff_.notes) : std::vector<Nanoseconds>(1, 0ns);
    const auto steps = static_cast<std::int64_t>(compared_.count);
    Nanoseconds attributed{0};
    for (std::size_t i = 0; i < groups; ++i) {
      diff_.causes[i].effect = effects[i] / steps;
      diff_.causes[i].local /= steps;
      attributed += diff_.causes[i].effect;
    }
    // Group 0 also covers how far the compared steps differ from typical ones, and the error of the
    // replay.
    diff_.causes[0].effect += diff_.after.step_time - diff_.before.step_time - attributed;
    std::map<std::string, PathShare> shares;
    waterfall.value(std::vector<char>(groups, 0));
    add_path({graph, replay, span_before, Side::before, before_}, shares);
    waterfall.value(std::vector<char>(groups, 1));
    add_path({graph, replay, span_after, Side::after, after_}, shares);
    for (auto& [name, share] : shares) share.before /= steps, share.after /= steps;
    diff_.path = sorted_shares(std::move(shares));
    sort_causes(diff_.causes);
  }

  const DiffSide& before_;
  const DiffSide& after_;
  SideSteps steps_before_, steps_after_;
  ComparedSteps compared_;
  std::unique_ptr<CallSites> sites_before_, sites_after_;
  DiffKeys keys_;
  TaskKeys keys_before_, keys_after_;
  std::int32_t shift_before_ = 0, shift_after_ = 0;
  Diff diff_;
};

/// Joins the trust in both sides with the share of tasks that correspond.
Trust trust_of_both(const Trust& before, const Trust& after, double aligned) {
  Trust trust;
  const auto add_side = [&](const Trust& side, const char* name) {
    for (TrustReason reason : side.reasons) {
      reason.text = fmt::format("{}: {}", name, reason.text);
      trust.reasons.push_back(std::move(reason));
    }
  };
  add_side(before, "A");
  add_side(after, "B");
  trust.reasons.push_back(
      {.name = "aligned",
       .grade = aligned < kHardlyTheSameJob ? Grade::poor : Grade::good,
       .text = fmt::format("{} % of the tasks correspond", to_fixed(100 * aligned, 1)),
       .value = aligned,
       .limit = kHardlyTheSameJob});
  return trust;
}

/// Throws TraceError if only one side is a memory snapshot, which has no times to compare.
void check_comparable(const JobRanks& before, const JobRanks& after) {
  const bool memory_before = before.has_snapshots();
  if (memory_before == after.has_snapshots()) return;
  throw TraceError((memory_before ? before.path : after.path) +
                   ": is a memory snapshot, and can only be compared with another one");
}

/// The rank of the other recording to compare with this one, or nullptr.
const Rank* counterpart(const Rank& rank, const JobRanks& before, const JobRanks& after) {
  if (before.ranks.size() == 1 && after.ranks.size() == 1) return &after.ranks.front();
  const auto other =
      std::find_if(after.ranks.begin(), after.ranks.end(),
                   [&](const Rank& other_rank) { return other_rank.number == rank.number; });
  return other == after.ranks.end() ? nullptr : &*other;
}

Diff compared_ranks(const Rank& before, const Rank& after, const DiffOptions& options) {
  Diff result = diff(side_of(before), side_of(after), options);
  result.rank = before.number;
  const auto trust = [](const Rank& rank) {
    return trust_in_recording(rank.inference, rank.import_notes, AnswerAbout::recorded);
  };
  if (result.has_times) result.trust = trust_of_both(trust(before), trust(after), result.aligned);
  add_warnings_of(before.import_notes, "A", result.notes);
  add_warnings_of(before.inference.notes, "A", result.notes);
  add_warnings_of(after.import_notes, "B", result.notes);
  add_warnings_of(after.inference.notes, "B", result.notes);
  return result;
}

std::optional<RankFacts> facts_of(const JobRanks& job, const Rank& rank) {
  if (!job.is_joined()) return {};
  return rank_facts(job, static_cast<std::size_t>(&rank - job.ranks.data()));
}

/// Notes, for each side, which rank the others wait for.
void note_both(const JobRanks& before, const JobRanks& after, Notes& notes) {
  for (const JobRanks* job : {&before, &after}) {
    Notes job_notes;
    note_ranks(*job, job_notes);
    for (const Note& note : job_notes.all())
      notes.add(note.severity, (job == &before ? "A: " : "B: ") + note.text, note.example);
  }
}

}  // namespace

Diff diff(const DiffSide& before, const DiffSide& after, const DiffOptions& options) {
  return Comparison(before, after).compare(options);
}

DiffReport diff(const std::string& before_path, const std::string& after_path,
                const ImportOptions& how, const DiffOptions& options) {
  JobRanks before, after;
  on_all_cores(2, [&](std::size_t side) {
    (side == 0 ? before : after) =
        read_job(side == 0 ? before_path : after_path, {.reading = how,
                                                        .keep_traces = true,
                                                        .joining = Joining::if_one_job,
                                                        .keeps_waits_open = true});
  });
  check_comparable(before, after);
  DiffReport report;
  report.before = before.inputs();
  report.after = after.inputs();
  std::size_t alone = 0;
  for (const Rank& rank : before.ranks) {
    if (const Rank* other = counterpart(rank, before, after)) {
      Diff& added = report.ranks.emplace_back(compared_ranks(rank, *other, options));
      if (rank.trace && other->trace)
        added.kinds =
            changes_of_kinds(serving_steps_of(*rank.trace), serving_steps_of(*other->trace));
      added.among_before = facts_of(before, rank), added.among_after = facts_of(after, *other);
    } else {
      ++alone;
    }
  }
  if (report.ranks.empty())
    throw Error(
        fmt::format("must have a rank in common: {} and {} have none", before_path, after_path));
  note_both(before, after, report.notes);
  alone += after.ranks.size() - report.ranks.size();
  if (alone > 0)
    report.notes.add(Severity::warning, "ranks that only one of the two recordings has", {},
                     static_cast<std::int64_t>(alone));
  return report;
}

}  // namespace foretrace
