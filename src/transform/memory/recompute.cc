// Activation checkpointing: memory for time. Activations are freed after their last forward use and
// computed again before their first backward one (Chen et al., Training Deep Nets with Sublinear
// Memory Cost, 2016):
//
//     n layers, one kept at the end of each of sqrt(n) segments:  about 2 sqrt(n) layers of memory
//     instead of n, for at most one more forward pass
//
// Ignored: work that the trace does not show (restoring random state takes no time), and changes in
// fragmentation, which the replay of the allocator shows.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/registered.h"
#include "transform/memory/recompute_choice.h"
#include "transform/memory/recompute_replay.h"

namespace foretrace {
namespace {

class Recompute final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The activations that may be dropped");
    fields.choice("policy", settings_.policy, {"sqrt", "every", "selected", "all", "budget"},
                  "sqrt: about sqrt(n) segments of the forward pass, restored one at a time (Chen "
                  "et al. 2016). every: segments of \"layers\" layers. selected: everything "
                  "that \"where\" selects, recomputed from as far back as needed. all: the same "
                  "with every activation, so that the whole pass exists again before its backward "
                  "pass and the peak falls little. "
                  "budget: the activations that meet \"save\", \"peak\" or \"share\" in the least "
                  "time");
    fields.integer(
        "layers", settings_.layers,
        "For every: layers per segment (where layers are unknown: ops that make an activation)", 1,
        1'000'000);
    fields.number(
        "share", settings_.share,
        "Share of the bytes that the policy would drop, those made first; for budget any of them",
        0, 1);
    fields.bytes("save", settings_.save,
                 "For budget: bytes to drop in each forward pass; 0B: by share");
    fields.bytes("peak", settings_.peak,
                 "For budget: drop until the peak is no higher than this; 0B: by save or share");
    fields.flag("exact", settings_.exact,
                "For budget: search for the least time; otherwise choose greedily by bytes saved "
                "per time (MSPS of Capuchin, ASPLOS'20)");
    fields.flag("host_work", host_work_,
                "The host also repeats the work before each launch, as running the forward code "
                "again does; otherwise only the launches");
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (settings_.policy != "budget" && (settings_.save > Bytes{} || settings_.peak > Bytes{}))
      throw Error(fmt::format("{}: is for policy budget, got policy {}",
                              settings_.save > Bytes{} ? "save" : "peak", settings_.policy));
    if (settings_.save > Bytes{} && settings_.peak > Bytes{})
      throw Error("peak: cannot be given together with save");
    const AllocationSelector every("activation");
    const std::vector<std::uint32_t> blocks =
        (settings_.policy == "all" ? every : where_).select_some(graph);
    const MemoryView view(graph);
    const std::vector<Activation> activations = find_activations(graph, view.uses, blocks);
    if (activations.empty()) no_activation(graph, blocks);
    const RecomputeChoice choice = choose_recompute(view, activations, settings_);
    if (choice.droppable == Bytes{}) nothing_to_drop(choice, activations.size());
    return apply_choice(graph, view, choice);
  }

 private:
  [[noreturn]] void nothing_to_drop(const RecomputeChoice& choice, std::size_t activations) const {
    std::string why = fmt::format("policy: {} leaves nothing to drop of {}", settings_.policy,
                                  counted(activations, "activation"));
    if (choice.impossible > 0)
      why += ": the kernels that write them are unknown, or cannot run again";
    else if (settings_.policy == "every" || settings_.policy == "sqrt")
      why += ": each is used by another segment or is in the last, which is needed at once";
    if (settings_.policy == "every" && choice.impossible == 0)
      why += "; with a greater \"layers\", more activations stay inside one segment";
    throw Error(why);
  }

  Effect apply_choice(Graph& graph, const MemoryView& view, const RecomputeChoice& choice) const {
    const Bytes peak = peak_memory(graph, view.timeline);
    const Nanoseconds device_time = device_time_of(graph);
    const RecomputeTally tally = replay_recompute(graph, view, choice.plan, host_work_);
    const Bytes new_peak = choice.plan.units.empty() ? peak : peak_memory(graph);
    Effect effect;
    effect.changed = choice.plan.dropped.size() + tally.kernels;
    effect.summary =
        fmt::format("{} dropped, {} in a forward pass, and computed again by {} in {}",
                    counted(choice.plan.dropped.size(), "activation"), to_text(choice.saved),
                    counted(tally.kernels, "task"), counted(choice.plan.units.size(), "place"));
    const double share = device_time > 0ns ? static_cast<double>(tally.device_time.count()) /
                                                 static_cast<double>(device_time.count())
                                           : 0;
    effect.figures = {{"saved_bytes", choice.saved},
                      {"droppable_bytes", choice.droppable},
                      {"peak_before", peak},
                      {"peak_after", new_peak},
                      {"added_time", tally.device_time},
                      {"added_host_time", tally.host_time},
                      {"added_share", share},
                      {"recomputed_kernels", static_cast<double>(tally.kernels)}};
    add_assumptions(choice, effect);
    if (settings_.policy == "budget" && choice.reached && settings_.peak > Bytes{} &&
        new_peak > settings_.peak) {
      effect.notes.add(Severity::warning, "recompute does not stay under its peak",
                       fmt::format("the peak is {}, the target is {}", to_text(new_peak),
                                   to_text(settings_.peak)));
    }
    return effect;
  }

  static Nanoseconds device_time_of(const Graph& graph) {
    Nanoseconds time{0};
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      const auto task = static_cast<TaskId>(i);
      if (!graph.removed(task) && runs_on_device(graph.task(task).kind))
        time += graph.task(task).duration;
    }
    return time;
  }

  void add_assumptions(const RecomputeChoice& choice, Effect& effect) const {
    effect.assumptions.push_back(
        "work that is done again takes as long as the first time and is done at most once more "
        "(at most one more forward pass: Chen et al. 2016)");
    effect.assumptions.push_back(
        "restoring random state and recording for autograd again take no time");
    if (!choice.by_layer && choice.length >= 0 &&
        (settings_.policy == "every" || settings_.policy == "sqrt"))
      effect.assumptions.push_back(
          choice.by_repetition
              ? "layers are unknown: the parts of a forward pass that repeat count as layers"
              : "layers are unknown: each task that completes an activation counts as one");
    note_count(
        effect, Severity::info,
        "activations kept, because the tasks that write them are unknown or cannot run again",
        choice.impossible);
    if (settings_.policy != "budget") return;
    if (!choice.reached) {
      effect.notes.add(Severity::warning,
                       settings_.peak > Bytes{}
                           ? "no plan stays under \"peak\"; the plan with the lowest peak is used"
                           : "all that can be dropped is less than \"save\"",
                       {}, 1);
    }
    if (settings_.exact && settings_.peak == Bytes{} && !choice.least) {
      effect.notes.add(Severity::info,
                       "the search for the least time was given up; the best plan found is used",
                       {}, 1);
    }
  }

  AllocationSelector where_{"activation"};
  RecomputeSettings settings_{.policy = "sqrt"};
  bool host_work_ = true;
};

}  // namespace

TransformEntry recompute_entry() {
  return {.make = create<Recompute>,
          .assumes =
              "Each dropped activation is freed after its last forward use. Before the first "
              "backward use of anything that depends on it, the kernels that made it run again, "
              "with their launches and the host's work around them on the thread of the backward "
              "pass; so do kernels whose results they need and that are gone. Everything runs "
              "again at most once, as long as the first time, so that the price is at most one "
              "more forward pass (Chen et al. 2016). With segments, what one passes to another is "
              "kept, and so is the last one. Layers are those that the trace names; for policy "
              "every, else the parts of a pass that repeat. Not modelled: random state, recording "
              "for autograd, "
              "other fragmentation.",
          .advice = {.goal = Goal::memory, .tries = {"recompute"}, .applies_to = {"activations"}}};
}

}  // namespace foretrace
