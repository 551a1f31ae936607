// A compiled model (torch.compile with TorchInductor): chains of pointwise kernels and reductions
// become one kernel each (chains.h), and between its launches the host runs a generated wrapper
// instead of Python and the dispatcher:
//
//     cpu     |LhhMhhN......|                cpu     |gLwN.....|     g guards, w wrapper
//     stream  |.aaa.bbb.cccc|   ->           stream  |..ffffccc|
//
// Time of the host in a region: guard_time + launches * (recorded launch + wrapper_time), if that
// is less than the recorded time. With mode reduce-overhead the regions are then launched as CUDA
// graphs (cuda_graphs.cc). A region ends where the host waits for the device, loads input or copies
// from or to host memory, and where a kernel that is not compiled is launched.
//
// Ignored: compilation itself, a new choice of matrix products (max-autotune), another order of
// kernels, tensors that are computed again in the backward pass.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "transform/edit/chains.h"
#include "transform/edit/regions.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class TorchCompile final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels of the compiled model");
    fields.choice("mode", mode_, {"default", "reduce-overhead"},
                  "reduce-overhead also launches compiled regions as CUDA graphs");
    fields.flag("optimizer", optimizer_, "Also compile kernels of the update phase");
    fields.time("guard_time", guard_time_,
                "Host time to check, before each compiled region, that it may run (recalled: tens "
                "of microseconds)",
                Nanoseconds(0));
    fields.time("wrapper_time", wrapper_time_,
                "Host time for each launch in addition to the call itself (recalled: about 5us)",
                Nanoseconds(0));
    fields.integer("reductions", reductions_,
                   "Reductions and normalizations in a fused kernel (assumed: 2, as a softmax has)",
                   1, 1'000'000);
    cost_.describe(fields);
  }

  Effect apply(Graph& graph, const Context& context) const override {
    std::vector<TaskId> kernels = where_.select_some(graph);
    if (!optimizer_) {
      std::erase_if(kernels, [&](TaskId id) { return graph.task(id).phase == Phase::update; });
      if (kernels.empty()) {
        throw Error(fmt::format(
            "where: all tasks ({}) are of the update phase; \"optimizer\": true compiles them",
            where_.to_text()));
      }
    }
    ChainRule rule;
    rule.reductions = reductions_;
    ChainsFused fused;
    {
      const Launches launches(graph);
      fused = fuse_chains(graph, find_chains(graph, launches, kernels, rule), cost_);
    }
    Cuts cuts;
    const HostWork host = replace_host_work(graph, kernels, cuts);
    if (fused.chains == 0 && host.regions == 0) {
      throw Error(fmt::format(
          "where: no kernels ({}) to fuse, and no host work between their launches to save",
          where_.to_text()));
    }
    Effect effect;
    effect.summary = fmt::format("{}; {} with {} less host work", fused.to_text(),
                                 counted(host.regions, "compiled region"), to_text(host.saved));
    fused.add_to(effect, cost_);
    effect.changed += host.changed;
    effect.figures.push_back({"regions", static_cast<double>(host.regions)});
    effect.figures.push_back({"host_time_saved", host.saved});
    const auto note = [&](std::string_view why, std::size_t count) {
      note_count(effect, Severity::info, why, count);
    };
    note("graph breaks where the host waits for the device", cuts.waits);
    note("graph breaks at copies from or to host memory", cuts.copies);
    note("graph breaks at launches that are not compiled", cuts.others);
    effect.assumptions.push_back(
        "compiled regions are called again with the same shapes, so nothing is recompiled");
    effect.assumptions.push_back("matrix products and convolutions take as long as before");
    if (mode_ == "reduce-overhead") add_graphs(graph, context, effect);
    return effect;
  }

 private:
  struct HostWork {
    std::size_t regions = 0, changed = 0;
    Nanoseconds saved{0};
  };

  HostWork replace_host_work(Graph& graph, const std::vector<TaskId>& kernels, Cuts& cuts) const {
    std::vector<char> compiled(graph.task_count(), 0);
    for (const TaskId task : kernels) compiled[index(task)] = 1;
    const Launches launches(graph);
    const NameId name = graph.names().intern("compiled wrapper");
    HostWork work;
    std::vector<TaskId> removed;
    for (const Region& region : find_regions(graph, launches, compiled, true, cuts)) {
      const Nanoseconds recorded = total_duration(graph, region.host);
      const Nanoseconds needed =
          guard_time_ + scaled(wrapper_time_, static_cast<double>(region.launches.size()));
      if (needed >= recorded) continue;
      ++work.regions;
      work.changed += region.host.size();
      work.saved += recorded - needed;
      removed.insert(removed.end(), region.host.begin(), region.host.end());
      add_wrapper(graph, region, name);
    }
    for (const TaskId task : removed) graph.remove(task);
    return work;
  }

  void add_wrapper(Graph& graph, const Region& region, NameId name) const {
    const auto add = [&](TaskId launch, Nanoseconds duration) {
      if (duration == Nanoseconds(0)) return;
      const Task like = graph.task(launch);
      graph.insert_before(launch, {.duration = duration,
                                   .name = name,
                                   .step = like.step,
                                   .kind = TaskKind::host,
                                   .phase = like.phase});
    };
    add(region.launches.front(), guard_time_);
    for (const TaskId launch : region.launches) add(launch, wrapper_time_);
  }

  /// Captures the launches of the fused kernels as graphs, if there is anything to capture.
  static void add_graphs(Graph& graph, const Context& context, Effect& effect) {
    const std::unique_ptr<Transform> graphs = cuda_graphs_entry().make();
    const Effect more = within("mode", [&] { return graphs->apply(graph, context); });
    effect.summary += "; " + more.summary;
    effect.changed += more.changed;
    effect.notes.merge(more.notes);
    effect.assumptions.insert(effect.assumptions.end(), more.assumptions.begin(),
                              more.assumptions.end());
  }

  Selector where_{"kernel"};
  std::string mode_ = "default";
  bool optimizer_ = false;
  Nanoseconds guard_time_ = 50us;
  Nanoseconds wrapper_time_ = 5us;
  std::int64_t reductions_ = 2;
  ChainCost cost_;
};

}  // namespace

TransformEntry torch_compile_entry() {
  return {.make = create<TorchCompile>,
          .assumes =
              "Chains of pointwise kernels with up to two reductions become one kernel each, "
              "forward and backward, as in op_fusion; matrix products and convolutions stay. Host "
              "work between launches is replaced by guards for each region and a wrapper for each "
              "launch (both recalled), where that is less. Waits, copies from or to host memory "
              "and collectives break a region. Compilation, other choices of kernels and "
              "recomputation in the backward pass are not modelled.",
          .advice = {.goal = Goal::time,
                     .tries = {"torch_compile", "torch_compile:mode=reduce-overhead"},
                     .applies_to = {"fusion", "launches"}}};
}

}  // namespace foretrace
