// Gives kernels the times that they have in another trace of the same job, such as one in another
// precision, with another library or on another device.
//
//     own      a  g  r  a          a and r keep their names: times of the other trace
//     other    a  h  r  q  a       g and h are in the same place and of one kind: time of h
//                                  q has no counterpart: added after r
//
// Each kind of step is aligned with the kind of step of the other trace that is most like it, as
// sequences of names, the rest between as sequences of kinds of work, and whatever still differs
// takes the time of its counterpart as a whole. Ignored: that the host would launch more or fewer
// kernels, and that the device waits for it more or less in the other trace.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/align.h"
#include "transform/edit/donor_steps.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

struct MatchCounts {
  std::size_t by_name = 0, by_kind = 0, by_place = 0, pooled = 0, none = 0, added = 0, removed = 0;
};

/// Aligns each step of the trace with the kind of step of the donor that is most like it.
class Transplant {
 public:
  Transplant(Graph& graph, const DonorSteps& donor, bool whole)
      : graph_(graph), donor_(donor), whole_(whole) {
    for (const DonorSteps::Kind& kind : donor.kinds()) {
      Numbered& numbered = donor_kinds_.emplace_back();
      for (const DonorKernel& kernel : kind.kernels) {
        numbered.names.push_back(shared_number(kernel.name));
        numbered.works.push_back(shared_number("kind " + kind_of_kernel(kernel.name)));
      }
    }
  }

  /// `comparable` says whether the kernels can be aligned with those of a step: both are steps, or
  /// both are traces without steps.
  void apply(const std::vector<TaskId>& kernels, bool comparable) {
    if (!comparable) return from_pool(kernels);
    const Counterpart& like = counterpart(kernels);
    like_ = like.kind;
    for (const AlignedRun& run : like.runs) {
      if (run.equal) {
        take_each(kernels, run, counts.by_name);
      } else {
        align_works(kernels, run);
      }
    }
  }

  /// Why kinds of steps do not correspond one to one; empty if they do.
  std::string kinds_doubt(const std::vector<StepKind>& own) {
    std::size_t here = 0, other = 0;
    std::set<std::size_t> likes;
    for (const StepKind& kind : own) {
      if (!kind.is_common) continue;
      likes.insert(counterpart(*kind.steps.front()).kind);
      ++here;
    }
    bool all_taken = likes.size() == here;
    for (std::size_t i = 0; i < donor_kinds_.size(); ++i) {
      if (!donor_.kinds()[i].is_common) continue;
      all_taken = all_taken && likes.contains(i);
      ++other;
    }
    if (all_taken) return {};
    return fmt::format("{} of steps here and {} in the other trace do not correspond",
                       counted(here, "kind"), counted(other, "kind"));
  }

  MatchCounts counts;
  std::vector<TaskId> removed;

 private:
  /// The kernels of a step as numbers of their names, and of their kinds of work.
  struct Numbered {
    std::vector<std::uint64_t> names, works;
  };
  struct Counterpart {
    std::size_t kind = 0;
    std::vector<AlignedRun> runs;
  };

  /// Counts the elements that only one of two sequences has.
  static std::size_t distance(std::vector<std::uint64_t> a, std::vector<std::uint64_t> b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<std::uint64_t> differ;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                  std::back_inserter(differ));
    return differ.size();
  }

  const Counterpart& counterpart(const std::vector<TaskId>& kernels) {
    Numbered own;
    for (const TaskId task : kernels) own.names.push_back(name_number(task));
    const auto [known, added] = counterparts_.try_emplace(own.names);
    Counterpart& like = known->second;
    if (!added) return like;
    for (const TaskId task : kernels) own.works.push_back(work_number(task));
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i < donor_kinds_.size(); ++i) {
      const Numbered& other = donor_kinds_[i];
      const std::size_t off = distance(own.names, other.names) + distance(own.works, other.works);
      if (off < least) least = off, like.kind = i;
    }
    like.runs = aligned_runs(own.names, donor_kinds_[like.kind].names);
    return like;
  }

  const std::vector<DonorKernel>& donor_kernels() const { return donor_.kinds()[like_].kernels; }

  std::uint64_t name_number(TaskId task) { return number(task, own_names_, false); }
  std::uint64_t work_number(TaskId task) { return number(task, own_works_, true); }

  std::uint64_t shared_number(std::string_view name) {
    return static_cast<std::uint64_t>(shared_.intern(name));
  }

  std::uint64_t number(TaskId task, std::map<NameId, std::uint64_t>& known, bool kind) {
    const auto [at, added] = known.try_emplace(graph_.task(task).name, 0);
    if (added) {
      at->second = kind ? shared_number("kind " + kind_of_kernel(graph_.name(task)))
                        : shared_number(graph_.name(task));
    }
    return at->second;
  }

  void take_each(const std::vector<TaskId>& kernels, const AlignedRun& run, std::size_t& count) {
    for (std::size_t i = run.begin; i < run.end; ++i) {
      graph_.task(kernels[i]).duration = donor_kernels()[run.other_begin + i - run.begin].duration;
    }
    count += run.end - run.begin;
  }

  void align_works(const std::vector<TaskId>& kernels, const AlignedRun& run) {
    std::vector<std::uint64_t> kinds;
    for (std::size_t i = run.begin; i < run.end; ++i) kinds.push_back(work_number(kernels[i]));
    const std::span<const std::uint64_t> others =
        std::span(donor_kinds_[like_].works)
            .subspan(run.other_begin, run.other_end - run.other_begin);
    const std::vector<AlignedRun> runs = aligned_runs(kinds, others);
    // Nothing in the whole step aligns.
    const bool is_unaligned = runs.size() == 1 && !runs[0].equal && kinds.size() == kernels.size();
    if (is_unaligned) return from_pool(kernels);
    for (const AlignedRun& part : runs) {
      const AlignedRun placed{part.begin + run.begin, part.end + run.begin,
                              part.other_begin + run.other_begin, part.other_end + run.other_begin,
                              part.equal};
      if (placed.equal) {
        take_each(kernels, placed, counts.by_kind);
      } else {
        take_together(kernels, placed);
      }
    }
  }

  /// Scales the times of a run of kernels to the sum of the times of the run it corresponds to.
  void take_together(const std::vector<TaskId>& kernels, const AlignedRun& run) {
    Nanoseconds wanted(0);
    for (std::size_t i = run.other_begin; i < run.other_end; ++i) {
      wanted += donor_kernels()[i].duration;
    }
    const std::vector<TaskId> own(kernels.begin() + static_cast<std::ptrdiff_t>(run.begin),
                                  kernels.begin() + static_cast<std::ptrdiff_t>(run.end));
    if (own.empty()) return add(kernels, run, wanted);
    if (run.other_begin == run.other_end) return drop(own);
    const Nanoseconds sum = total_duration(graph_, own);
    counts.by_place += own.size();
    if (sum == Nanoseconds(0)) {
      graph_.task(own.front()).duration = wanted;
      return;
    }
    const double factor = static_cast<double>(wanted.count()) / static_cast<double>(sum.count());
    for (const TaskId task : own) {
      graph_.task(task).duration = scaled(graph_.task(task).duration, factor);
    }
  }

  void add(const std::vector<TaskId>& kernels, const AlignedRun& run, Nanoseconds duration) {
    if (!whole_ || kernels.empty()) return;
    const TaskId beside = kernels[run.begin == 0 ? 0 : run.begin - 1];
    const Task& like = graph_.task(beside);
    const std::size_t count = run.other_end - run.other_begin;
    const Task extra{.duration = duration,
                     .name = graph_.names().intern(
                         count == 1 ? donor_kernels()[run.other_begin].name
                                    : counted(count, "kernel") + " of the other trace"),
                     .step = like.step,
                     .kind = TaskKind::kernel,
                     .phase = like.phase};
    if (run.begin == 0) {
      graph_.insert_before(beside, extra);
    } else {
      graph_.insert_behind(beside, extra);
    }
    counts.added += count;
  }

  void drop(const std::vector<TaskId>& own) {
    if (!whole_) {
      counts.none += own.size();
      return;
    }
    removed.insert(removed.end(), own.begin(), own.end());
    counts.removed += own.size();
  }

  /// Takes typical times by name or kind, for steps that cannot be aligned.
  void from_pool(const std::vector<TaskId>& kernels) {
    for (const TaskId id : kernels) {
      Task& task = graph_.task(id);
      const std::string_view name = graph_.name(id);
      std::optional<Nanoseconds> time = donor_.by_name(name);
      ++(time ? counts.by_name : counts.pooled);
      if (!time) time = donor_.by_kind(kind_of_kernel(name), task.flops);
      if (time) {
        task.duration = *time;
      } else {
        --counts.pooled;
        ++counts.none;
      }
    }
  }

  Graph& graph_;
  const DonorSteps& donor_;
  bool whole_;
  Names shared_;  ///< Names in both traces.
  std::map<NameId, std::uint64_t> own_names_, own_works_;
  std::vector<Numbered> donor_kinds_;
  std::map<std::vector<std::uint64_t>, Counterpart> counterparts_;  ///< By names.
  std::size_t like_ = 0;  ///< The donor's kind of step that times are taken from.
};

class KernelFrom final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that take other times");
    fields.path("trace", trace_, "Path of the trace of the same job that has these times");
    fields.flag("whole", whole_,
                "Add kernels that only the other trace has, and delete those that it lacks");
  }

  std::string donor() const override { return trace_; }

  Effect apply(Graph& graph, const Context& context) const override {
    if (context.donor == nullptr)
      throw Error("trace: must be the path of another trace of the same job");
    const DonorSteps donor(*context.donor);
    if (donor.kinds().empty()) throw Error("trace: the other trace has no kernels");
    const std::vector<TaskId> kernels = where_.select_some(graph);
    for (const TaskId task : kernels) {
      if (graph.task(task).kind != TaskKind::kernel)
        throw Error("where: must select kernels only, got " + where_.to_text());
    }
    const Nanoseconds before = total_duration(graph, kernels);
    const Launches launches(graph);
    const KernelSteps steps = kernel_steps(graph, simulate(graph, {.memory = false}), kernels);
    const bool has_steps = steps.rbegin()->first >= 0;
    const std::vector<StepKind> kinds = step_kinds(graph, steps);
    Transplant transplant(graph, donor, whole_);
    for (const auto& [step, tasks] : steps) {
      // A step is aligned with a step, and a trace without steps with a trace without steps.
      const bool comparable = has_steps == donor.has_steps() && (step >= 0 || !has_steps);
      transplant.apply(tasks, comparable);
    }
    std::vector<std::string> doubts;
    if (has_steps && donor.has_steps()) doubts.push_back(transplant.kinds_doubt(kinds));
    const MatchCounts& counts = transplant.counts;
    if (counts.by_name + counts.by_kind + counts.pooled == 0) {
      throw Error(
          fmt::format("trace: no kernel of the other trace corresponds to one of \"where\" ({})",
                      where_.to_text()));
    }
    for (const TaskId task : transplant.removed) graph.remove(task);
    remove_launches_of(graph, launches, transplant.removed);
    doubts.push_back(waits_doubt(graph, donor));
    std::erase(doubts, "");
    Effect effect = effect_of(graph, kernels, counts, before);
    effect.doubts = std::move(doubts);
    return effect;
  }

 private:
  /// Why a step may take another time than its kernels say; empty if the device of the other trace
  /// waits for about as much of a step.
  static std::string waits_doubt(const Graph& graph, const DonorSteps& donor) {
    constexpr double kMuchMore = 0.1;
    const double waits = waiting_share(graph, simulate(graph, {.memory = false}));
    if (std::abs(donor.waits() - waits) <= kMuchMore) return {};
    return fmt::format(
        "in the other trace the device waits for {} of a step, here then for {}: only kernels are "
        "taken over, not what launches them",
        to_share(donor.waits()), to_share(waits));
  }

  static Effect effect_of(const Graph& graph, const std::vector<TaskId>& kernels,
                          const MatchCounts& counts, Nanoseconds before) {
    Nanoseconds after(0);
    for (const TaskId task : kernels) {
      if (!graph.removed(task)) after += graph.task(task).duration;
    }
    Effect effect;
    effect.changed = kernels.size() - counts.none + counts.added;
    effect.summary = fmt::format(
        "{} from {} to {} in all: {} by name, {} by kind of work, {} by place",
        counted(kernels.size(), "kernel"), to_text(before), to_text(after), grouped(counts.by_name),
        grouped(counts.by_kind + counts.pooled), grouped(counts.by_place));
    if (counts.removed > 0) effect.summary += fmt::format(", {} gone", grouped(counts.removed));
    if (counts.added > 0) effect.summary += fmt::format(", {} added", grouped(counts.added));
    const auto figure = [&](const char* name, std::size_t count) {
      effect.figures.push_back({name, static_cast<double>(count)});
    };
    figure("by_name", counts.by_name);
    figure("by_kind", counts.by_kind + counts.pooled);
    figure("by_place", counts.by_place);
    figure("unmatched", counts.none);
    figure("added", counts.added);
    figure("gone", counts.removed);
    effect.figures.push_back({"kernel_time_before", before});
    effect.figures.push_back({"kernel_time_after", after});
    note_count(effect, Severity::warning, "kernels without a counterpart, left as they are",
               counts.none);
    effect.assumptions.push_back("the other trace is of the same job: model, sizes and batch");
    effect.assumptions.push_back("the host works as recorded, also for kernels that were added");
    if (counts.pooled > 0) {
      effect.assumptions.push_back(
          fmt::format("{} {} the median time of their kind of work, because the steps do not align",
                      counted(counts.pooled, "kernel"), counts.pooled == 1 ? "takes" : "take"));
    }
    return effect;
  }

  Selector where_{"kernel"};
  std::string trace_;
  bool whole_ = true;
};

}  // namespace

TransformEntry kernel_from_entry() {
  return {
      .make = create<KernelFrom>,
      .assumes =
          "Kernels take the times of another trace of the same job: of its kinds of steps, each "
          "with the median times of all such steps, the one with the kernels most like those "
          "of a step here is aligned with it, kernel by kernel, "
          "first by name, then by kind of work, and the rest by place. Kernels that only one "
          "of the two has are added or deleted. The host, copies and communication stay.",
      .advice = {.why_not = "needs another trace: kernel_from:trace=FILE"}};
}

}  // namespace foretrace
