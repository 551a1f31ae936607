// ZeRO: the replicated state of data-parallel workers is divided among them (Rajbhandari et al.,
// ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC'20). With P, G and O
// bytes of parameters, gradients and optimizer state, each of N workers has
//
//     stage 1:  P + G + O/N        stage 2:  P + (G+O)/N        stage 3:  (P+G+O)/N + largest layer
//
// Mixed precision with Adam takes 2 + 2 + 12 bytes for each parameter. Where the settings name a
// network, the exchange between workers and the smaller update are added (parallel/sharded.h).

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/memory/memory_view.h"
#include "transform/parallel/sharded.h"

namespace foretrace {
namespace {

class Zero final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("stage", stage_,
                   "1: optimizer state is divided; 2: gradients as well; 3: parameters as well", 1,
                   3);
    fields.integer("workers", workers_, "Number of data-parallel workers", 1, 1'000'000);
    fields.bytes("parameter_bytes", parameters_,
                 "Parameters in use when the recording began; 0B: from the trace");
    fields.bytes("gradient_bytes", gradients_,
                 "Gradients in use when the recording began; 0B: from the trace");
    fields.bytes("optimizer_bytes", optimizer_,
                 "Optimizer state in use when the recording began; 0B: from the trace");
    fields.bytes("layer_bytes", layer_,
                 "For stage 3: parameters of the largest layer, which is gathered while it runs; "
                 "0B: from the trace");
    traffic_.describe(fields);
  }

  Effect apply(Graph& graph, const Context& context) const override {
    // Traffic is added first, because it depends on the sizes of gradients before they are divided.
    Effect traffic;
    if (has_traffic()) {
      ShardedTraffic settings = traffic_;
      settings.stage = stage_, settings.workers = workers_;
      traffic = add_sharded_traffic(graph, context, settings, parameters_, gradients_);
    }
    Effect effect = divide_memory(graph);
    if (!has_traffic()) return effect;
    effect.summary += "; " + traffic.summary;
    effect.changed += traffic.changed;
    effect.figures.insert(effect.figures.end(), traffic.figures.begin(), traffic.figures.end());
    effect.assumptions.insert(effect.assumptions.end(), traffic.assumptions.begin(),
                              traffic.assumptions.end());
    return effect;
  }

  JobChange job_change() const override {
    if (!has_traffic()) return {};
    return JobChange::on(workers_, workers_, traffic_.network.text());
  }

 private:
  bool has_traffic() const { return traffic_.network.is_given(); }

  Effect divide_memory(Graph& graph) const {
    const MemoryView view(graph);
    const Bytes peak = peak_memory(graph, view.timeline);
    std::vector<ModelState> states = {{MemoryUse::optimizer_state, "optimizer_bytes", optimizer_},
                                      {MemoryUse::gradient, "gradient_bytes", gradients_},
                                      {MemoryUse::parameter, "parameter_bytes", parameters_}};
    for (ModelState& state : states) measure(graph, state);
    Effect effect;
    if (has_traffic() && !has_known_size(states)) {
      effect.summary =
          "memory is not divided, because the trace does not show what this stage divides";
      return effect;
    }
    refuse_unknown(states);
    // Counts the unit that runs, and the units that are gathered ahead of it.
    const std::int64_t gathered_at_once = has_traffic() ? traffic_.prefetch + 1 : 1;
    const Bytes gathered =
        stage_ == 3 ? Bytes{gathered_bytes(view).count * gathered_at_once} : Bytes{};
    Bytes before{}, after{};
    for (std::size_t i = 0; i < states.size(); ++i) {
      before += states[i].bytes;
      if (static_cast<std::int64_t>(i) >= stage_) {
        after += states[i].bytes;
        continue;
      }
      const Bytes left = divide(graph, states[i], effect);
      after += left;
      effect.figures.push_back({std::string(states[i].setting), left});
    }
    add_permanent_block(graph, gathered, MemoryUse::parameter);
    const Bytes new_peak = peak_memory(graph);
    effect.summary =
        fmt::format("{} of {} of parameters, gradients and optimizer state left on each of {}",
                    to_text(after), to_text(before), counted(workers_, "worker"));
    if (gathered > Bytes{})
      effect.summary += fmt::format(", and {} of gathered parameters", to_text(gathered));
    effect.figures.push_back({"state_before", before});
    effect.figures.push_back({"state_after", after});
    effect.figures.push_back({"gathered_bytes", gathered});
    effect.figures.push_back({"saved_bytes", before - after - gathered});
    effect.figures.push_back({"peak_before", peak});
    effect.figures.push_back({"peak_after", new_peak});
    add_assumptions(states, gathered, effect);
    return effect;
  }

  struct ModelState {
    MemoryUse use;
    std::string_view setting;
    Bytes given;
    Bytes bytes{};
    std::vector<std::uint32_t> blocks{};
  };

  /// Takes the size from the trace, unless it is given. Gradients come and go, so their size is the
  /// greatest sum of the blocks of a step.
  static void measure(const Graph& graph, ModelState& state) {
    if (state.given > Bytes{}) {
      state.bytes = state.given;
      return;
    }
    std::map<std::int32_t, Bytes> of_step;
    Bytes lasting{};
    for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
      const Allocation& block = graph.allocations()[i];
      if (block.use != state.use || block.bytes <= Bytes{}) continue;
      state.blocks.push_back(i);
      if (block.made_by == kNoTask || block.freed_by == kNoTask)
        lasting += block.bytes;
      else
        of_step[graph.task(block.made_by).step] += block.bytes;
    }
    Bytes passing{};
    for (const auto& [step, bytes] : of_step) passing = std::max(passing, bytes);
    state.bytes = std::max(lasting, passing);
  }

  bool has_known_size(const std::vector<ModelState>& states) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(stage_); ++i) {
      if (states[i].bytes > Bytes{}) return true;
    }
    return false;
  }

  void refuse_unknown(const std::vector<ModelState>& states) const {
    if (has_known_size(states)) return;
    throw Error(fmt::format(
        "{}: must be given, because this trace does not show which memory stage {} divides",
        states[0].setting, stage_));
  }

  Bytes share_of(Bytes bytes) const { return {(bytes.count + workers_ - 1) / workers_}; }

  /// Divides each block or, if the trace shows none, the memory in use when the recording began.
  /// Returns the bytes left on each worker.
  Bytes divide(Graph& graph, const ModelState& state, Effect& effect) const {
    const Bytes left = share_of(state.bytes);
    if (workers_ == 1 || state.bytes == Bytes{}) return state.bytes;
    for (const std::uint32_t number : state.blocks) {
      replace_block(
          graph, number,
          resized(graph.allocations()[number], 1.0 / static_cast<double>(workers_), "workers"));
      ++effect.changed;
    }
    if (!state.blocks.empty()) return left;
    auto level = std::max_element(graph.initial_memory().begin(), graph.initial_memory().end());
    if (level == graph.initial_memory().end() || *level < state.bytes) {
      const Bytes most = level == graph.initial_memory().end() ? Bytes{} : *level;
      throw Error(fmt::format("{}: must be at most the {} in use when the recording began, got {}",
                              state.setting, to_text(most), to_exact_text(state.given)));
    }
    *level -= state.bytes - left;
    ++effect.changed;
    return left;
  }

  /// Returns the most parameters that one layer reads, or the largest block if layers are unknown.
  Bytes gathered_bytes(const MemoryView& view) const {
    if (layer_ > Bytes{}) return layer_;
    std::map<std::int32_t, Bytes> of_layer;
    Bytes largest{};
    for (std::uint32_t i = 0; i < view.graph.allocations().size(); ++i) {
      const Allocation& block = view.block(i);
      if (block.use != MemoryUse::parameter) continue;
      largest = std::max(largest, block.bytes);
      for (const Access& access : view.uses.of_block(i)) {
        const std::int32_t layer = view.graph.task(access.task).layer;
        if (layer < 0 || access.writes) continue;
        of_layer[layer] += block.bytes;
        break;
      }
    }
    for (const auto& [layer, bytes] : of_layer) largest = std::max(largest, bytes);
    return workers_ == 1 ? Bytes{} : largest;
  }

  void add_assumptions(const std::vector<ModelState>& states, Bytes gathered,
                       Effect& effect) const {
    if (!has_traffic())
      effect.assumptions.push_back(
          "memory only: the exchange between workers and the smaller update of each keep the "
          "recorded time; name a machine, or bandwidth and latency, to add them");
    if (stage_ == 3) {
      effect.assumptions.push_back(
          gathered > Bytes{}
              ? "the largest layer is gathered throughout"
              : "gathered layers take no memory, as none is known (give \"layer_bytes\")");
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(stage_); ++i) {
      if (states[i].bytes > Bytes{}) continue;
      effect.notes.add(Severity::warning,
                       "the trace does not show the memory that this stage divides",
                       std::string(states[i].setting), 1);
    }
  }

  std::int64_t stage_ = 1;
  std::int64_t workers_ = 8;
  Bytes parameters_{}, gradients_{}, optimizer_{}, layer_{};
  ShardedTraffic traffic_;
};

}  // namespace

TransformEntry zero_entry() {
  return {.make = create<Zero>,
          .assumes =
              "Each of the data-parallel workers keeps its part of the optimizer state, from stage "
              "2 on also of the gradients, and in stage 3 also of the parameters, of which one "
              "layer at a time is gathered (Rajbhandari et al., SC'20). The use of memory must be "
              "known from the trace or given. With a machine, or bandwidth and latency, the step "
              "also gets the traffic: reduce-scatters of gradients beside the backward pass, an "
              "all-gather of the parameters after the update, and in stage 3 all-gathers of each "
              "unit ahead of its passes; kernels of the update take their part of the time. "
              "Without them, only memory changes.",
          .advice = {
              .goal = Goal::memory, .tries = {"zero:stage=1,workers=8"}, .applies_to = {"state"}}};
}

}  // namespace foretrace
