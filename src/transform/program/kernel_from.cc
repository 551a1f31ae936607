// Gives kernels the times that they have in another trace of the same job, such as one in another
// precision, with another library or on another device.
//
//     own      a  g  r  a          a and r keep their names: times of the other trace
//     other    a  h  r  q  a       g and h are in the same place and of one kind: time of h
//                                  q has no counterpart: added after r
//
// Steps are aligned as sequences of names, the rest between as sequences of kinds of work, and
// whatever still differs takes the time of its counterpart as a whole. Ignored: that the host would
// launch more or fewer kernels.

#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
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

/// Aligns one step of the trace with the typical step of the donor.
class Transplant {
 public:
  Transplant(Graph& graph, const DonorSteps& donor, bool whole)
      : graph_(graph), donor_(donor), whole_(whole) {
    for (const DonorKernel& kernel : donor.typical()) {
      donor_names_.push_back(numbers_.of(kernel.name));
      donor_kinds_.push_back(numbers_.of("kind " + kind_of_kernel(kernel.name)));
    }
  }

  /// `comparable` says whether the kernels can be aligned with the typical step: both are steps, or
  /// both are traces without steps.
  void apply(const std::vector<TaskId>& kernels, bool comparable) {
    if (!comparable || donor_names_.empty()) return from_pool(kernels);
    std::vector<std::uint64_t> names;
    for (const TaskId task : kernels) names.push_back(name_number(task));
    const auto [known, added] = alignments_.try_emplace(names);
    if (added) known->second = aligned_runs(names, donor_names_);
    for (const AlignedRun& run : known->second) {
      if (run.equal) {
        take_each(kernels, run, counts.by_name);
      } else {
        align_kinds(kernels, run);
      }
    }
  }

  MatchCounts counts;
  std::vector<TaskId> removed;

 private:
  std::uint64_t name_number(TaskId task) { return number(task, own_names_, false); }
  std::uint64_t kind_number(TaskId task) { return number(task, own_kinds_, true); }

  std::uint64_t number(TaskId task, std::map<NameId, std::uint64_t>& known, bool kind) {
    const auto [at, added] = known.try_emplace(graph_.task(task).name, 0);
    if (added) {
      at->second = kind ? numbers_.of("kind " + kind_of_kernel(graph_.name(task)))
                        : numbers_.of(graph_.name(task));
    }
    return at->second;
  }

  void take_each(const std::vector<TaskId>& kernels, const AlignedRun& run, std::size_t& count) {
    for (std::size_t i = run.begin; i < run.end; ++i) {
      graph_.task(kernels[i]).duration = donor_.typical()[run.other_begin + i - run.begin].duration;
    }
    count += run.end - run.begin;
  }

  void align_kinds(const std::vector<TaskId>& kernels, const AlignedRun& run) {
    std::vector<std::uint64_t> kinds;
    for (std::size_t i = run.begin; i < run.end; ++i) kinds.push_back(kind_number(kernels[i]));
    const std::span<const std::uint64_t> others(donor_kinds_.data() + run.other_begin,
                                                run.other_end - run.other_begin);
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
      wanted += donor_.typical()[i].duration;
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
                         count == 1 ? donor_.typical()[run.other_begin].name
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
  NameNumbers numbers_;
  std::map<NameId, std::uint64_t> own_names_, own_kinds_;
  std::vector<std::uint64_t> donor_names_, donor_kinds_;
  std::map<std::vector<std::uint64_t>, std::vector<AlignedRun>> alignments_;
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
    if (donor.typical().empty()) throw Error("trace: the other trace has no kernels");
    const std::vector<TaskId> kernels = where_.select_some(graph);
    for (const TaskId task : kernels) {
      if (graph.task(task).kind != TaskKind::kernel)
        throw Error("where: must select kernels only, got " + where_.to_text());
    }
    const Nanoseconds before = total_duration(graph, kernels);
    const Launches launches(graph);
    const KernelSteps steps = kernel_steps(graph, kernels);
    const bool has_steps = steps.rbegin()->first >= 0;
    Transplant transplant(graph, donor, whole_);
    for (const auto& [step, tasks] : steps) {
      // A step is aligned with a step, and a trace without steps with a trace without steps.
      const bool comparable = has_steps == donor.has_steps() && (step >= 0 || !has_steps);
      transplant.apply(tasks, comparable);
    }
    const MatchCounts& counts = transplant.counts;
    if (counts.by_name + counts.by_kind + counts.pooled == 0) {
      throw Error(
          fmt::format("trace: no kernel of the other trace corresponds to one of \"where\" ({})",
                      where_.to_text()));
    }
    for (const TaskId task : transplant.removed) graph.remove(task);
    remove_launches_of(graph, launches, transplant.removed);
    return effect_of(graph, kernels, counts, before);
  }

 private:
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
  return {.make = create<KernelFrom>,
          .assumes =
              "Kernels take the times of another trace of the same job: its typical step, with the "
              "median time of all such steps, is aligned with each step here, kernel by kernel, "
              "first by name, then by kind of work, and the rest by place. Kernels that only one "
              "of the two has are added or deleted. The host, copies and communication stay.",
          .advice = {.why_not = "needs another trace: kernel_from:trace=FILE"}};
}

}  // namespace foretrace
