// Runs a job recorded on one GPU as a pipeline over several: each stage has some of the layers, and
// micro-batches pass through them in the order of a schedule (see schedule.h).
//
//     recorded   |FFFF|BBBBBBBB|U|            two stages, two micro-batches, 1F1B
//     rank 0     |FF|FF|....|BBBB|BBBB|U|
//     rank 1     ...|FF|BBBB|FF|BBBB|U|
//
// The work of a stage on a micro-batch is that of its layers as recorded, pauses between kernels
// included. All recorded work is replaced, host work too: the host is assumed to keep ahead.
//
// Ignored: that a smaller batch would take more than its proportional time (the recorded batch is a
// micro-batch), and that sends slow the kernels that run beside them.
//
// Input is loaded at the pace of the recording, by as many threads or workers: the first stage
// waits for that of each micro-batch.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <numeric>
#include <optional>

#include "base/fields/assignments.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "generate/generate.h"
#include "schedule/schedule.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/model/stage_work.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradients.h"

namespace foretrace {
namespace {

class Pipeline final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("stages", stages_, "GPUs of the pipeline", 2, 4096);
    fields.integer("micro_batches", micro_batches_,
                   "Micro-batches of a step, each as large as the recorded batch", 1, 65'536);
    fields.text("schedule", schedule_,
                "Order of the passes: 1f1b, gpipe, interleaved:chunks=2, zb_h1 ... (`foretrace "
                "plan show` draws them)");
    fields.text("cuts", cuts_,
                "First layer of each stage after the first, such as 6,12,18; by default chosen so "
                "that the slowest stage is as fast as possible");
    fields.integer("replicas", replicas_, "Copies of the pipeline, which sum their gradients", 1,
                   1'000'000);
    network_.describe(fields);
    fields.bytes("output_bytes", output_,
                 "Output of a stage for a micro-batch (batch x sequence x hidden x bytes of an "
                 "element); 0B: sends take no time");
    fields.bytes("gradient_bytes", gradients_,
                 "With replicas: all gradients of a step; 0B: from the trace");
    fields.flag("recompute", recompute_,
                "Activations are dropped, and each forward pass is run again before the backward "
                "pass");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);  // It would be lost with the rest.
    const Timeline timeline = simulate(graph, {.memory = false});
    Gradients gradients;
    if (replicas_ > 1 && gradients_ == Bytes{}) gradients = find_gradients(graph, timeline, {});
    const RecordedLayers recorded = recorded_layers(graph, timeline, gradients.passes);
    const auto rule = make_rule();
    const Schedule schedule = within("schedule", [&] { return rule->make(); });
    const std::vector<std::size_t> begins =
        stage_begins(recorded, static_cast<std::size_t>(schedule.stages), cuts_);
    std::vector<PipelineCosts> costs;
    Networks networks = make_networks(context.gpus_per_worker);
    for (const StepLayers& step : recorded.steps)
      costs.push_back(costs_of(stages_of(step, begins), step.update, networks));
    Memory memory = memory_of(graph, recorded);
    if (recompute_) {
      for (const LayerWork& stage : stages_of(recorded.steps.back(), begins))
        memory.recomputed.push_back(stage.activations);
    }
    const Nanoseconds input = input_of_batch(graph);
    Effect effect;
    const PipelineRun run = run_pipeline(schedule, costs.back());
    replace_all(graph, schedule, recorded, costs, input);
    set_memory(graph, schedule, costs.back(), memory, run);
    describe_effect(graph, recorded, schedule, run, effect);
    effect.assumptions.push_back(
        input > 0ns ? fmt::format("each micro-batch takes {} to load, as a recorded batch did",
                                  to_text(input))
                    : "input arrives in time: the recording shows no loading");
    if (gradients.estimate.bytes > Bytes{}) assume_gradients(gradients, effect.assumptions);
    return effect;
  }

  JobChange job_change() const override {
    return JobChange::on(stages_ * replicas_, micro_batches_ * replicas_);
  }

 private:
  /// Memory of the recorded device: the stages divide `initial` and `activations`, and each needs
  /// all of `rest`.
  struct Memory {
    Bytes initial{}, activations{}, rest{};
    std::vector<Bytes> recomputed = {};  ///< By stage: what exists while it is computed again.
  };

  std::unique_ptr<ScheduleRule> make_rule() const {
    const std::size_t colon = schedule_.find(':');
    auto rule = within("schedule", [&] { return find_schedule(schedule_.substr(0, colon)); });
    within("schedule", [&] {
      if (colon != std::string::npos) read_assigned(schedule_.substr(colon + 1), *rule);
    });
    rule->stages = stages_, rule->micro_batches = micro_batches_;
    return rule;
  }

  /// The network between neighboring stages, which are as many workers apart as a stage has copies,
  /// and the network among these copies; nullopt if not needed.
  struct Networks {
    std::optional<Communicator> neighbors, copies;
  };

  Networks make_networks(std::int64_t gpus_per_worker) const {
    Networks networks;
    if (output_ > Bytes{} && !network_.is_given())
      throw Error("output_bytes: needs a machine, or latency and bandwidth");
    if (output_ > Bytes{})
      networks.neighbors.emplace(network_, stages_, replicas_ * gpus_per_worker);
    if (replicas_ > 1) networks.copies.emplace(network_, replicas_, gpus_per_worker);
    return networks;
  }

  PipelineCosts costs_of(const std::vector<LayerWork>& stages, Nanoseconds update,
                         Networks& networks) const {
    Nanoseconds work{0};
    for (const LayerWork& stage : stages) work += stage.forward + stage.backward;
    PipelineCosts costs;
    for (const LayerWork& stage : stages) {
      StageCosts& cost = costs.stages.emplace_back();
      cost.forward = stage.forward, cost.recompute = recompute_ ? stage.forward : 0ns;
      // Half of a backward pass computes the gradients of weights, which takes as many products as
      // those of inputs.
      cost.weight_gradient = stage.backward / 2;
      cost.input_gradient = stage.backward - cost.weight_gradient;
      const double part = ratio(stage.forward + stage.backward, work);
      cost.update = scaled(update, part);
      if (networks.neighbors)
        cost.send_forward = cost.send_backward =
            networks.neighbors->time(Operation::send_receive, output_);
      const Bytes gradients = gradients_ > Bytes{} ? scaled(gradients_, part) : stage.gradients;
      if (networks.copies)
        cost.all_reduce = networks.copies->time(Operation::all_reduce, gradients);
      cost.activations = recompute_ ? output_ : stage.activations;
    }
    return costs;
  }

  static Memory memory_of(const Graph& graph, const RecordedLayers& recorded) {
    Memory memory;
    if (graph.allocations().empty()) return memory;
    for (const Bytes level : graph.initial_memory())
      memory.initial = std::max(memory.initial, level);
    for (const StepLayers& step : recorded.steps) {
      Bytes sum{};
      for (const LayerWork& layer : step.layers) sum += layer.activations;
      memory.activations = std::max(memory.activations, sum);
    }
    const Bytes peak = peak_memory(graph);
    memory.rest = std::max(Bytes{}, peak - memory.initial - memory.activations);
    return memory;
  }

  /// Removes what was recorded, and appends the pipeline of each step to its lanes.
  static void replace_all(Graph& graph, const Schedule& schedule, const RecordedLayers& recorded,
                          const std::vector<PipelineCosts>& costs, Nanoseconds input) {
    std::vector<TaskId> old;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (!graph.removed(TaskId{i})) old.push_back(TaskId{i});
    }
    graph.accesses().clear();
    graph.allocations().clear();
    for (const TaskId id : old) graph.remove(id);
    drop_dependencies_of(graph, old);
    std::map<std::string, LaneId> lanes;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      PipelineGraph built = build_pipeline(schedule, costs[i]);
      if (input > 0ns) add_input(schedule, input, built);
      append(built.graph, recorded.steps[i].step, lanes, graph);
    }
  }

  /// The time between batches at which the recorded threads or workers load them: the work of a
  /// step, divided among those that do much of it.
  static Nanoseconds input_of_batch(const Graph& graph) {
    constexpr double kMuch = 0.1;  // Of the busiest; chosen.
    std::vector<Nanoseconds> work(graph.lane_count(), 0ns);
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (graph.task(TaskId{i}).kind != TaskKind::input || graph.removed(TaskId{i})) continue;
      work[index(graph.lane_of(TaskId{i}))] += graph.task(TaskId{i}).duration;
    }
    const Nanoseconds most = work.empty() ? 0ns : std::ranges::max(work);
    std::erase_if(work, [&](Nanoseconds time) { return time <= scaled(most, kMuch); });
    if (work.empty()) return 0ns;
    const auto batches = static_cast<std::int64_t>(std::max<std::size_t>(1, graph.steps().size()));
    const auto loaders = static_cast<std::int64_t>(work.size());
    return std::accumulate(work.begin(), work.end(), 0ns) / (loaders * batches);
  }

  /// Adds the loading of each micro-batch, for which its first pass waits.
  static void add_input(const Schedule& schedule, Nanoseconds input, PipelineGraph& built) {
    Graph& graph = built.graph;
    const LaneId lane = graph.add_lane({.name = "input", .kind = LaneKind::host_thread});
    std::map<std::int32_t, TaskId> first;  // By micro-batch: its pass in the first stage.
    for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
      for (std::size_t slot = 0; slot < schedule.orders[rank].size(); ++slot) {
        const Action& action = schedule.orders[rank][slot];
        if (action.stage == 0 && action.kind == ActionKind::forward && action.half <= 1)
          first[action.micro_batch] = built.tasks[rank][slot];
      }
    }
    for (const auto& [micro_batch, pass] : first) {
      const TaskId loading = graph.append(
          lane,
          {.duration = input, .name = graph.names().intern("input"), .kind = TaskKind::input});
      graph.add({.before = loading, .after = pass, .provenance = Provenance::assumed});
    }
  }

  static void append(const Graph& from, std::int32_t step, std::map<std::string, LaneId>& lanes,
                     Graph& graph) {
    std::vector<TaskId> copies(from.task_count(), kNoTask);
    for (std::uint32_t i = 0; i < from.lane_count(); ++i) {
      const Lane& lane = from.lane(LaneId{i});
      const auto [found, is_new] = lanes.try_emplace(lane.name, LaneId{});
      if (is_new) found->second = graph.add_lane(lane);
      for (TaskId id = from.first(LaneId{i}); id != kNoTask; id = from.next(id)) {
        Task task = from.task(id);
        task.name = graph.names().intern(from.name(id));
        task.module = {}, task.step = step;
        copies[index(id)] = graph.append(found->second, task);
      }
    }
    from.each_dependency([&](Dependency wait) {
      wait.before = copies[index(wait.before)], wait.after = copies[index(wait.after)];
      wait.why = wait_reason_named(graph.names(), to_string(wait.why, from.names()));
      wait.provenance = Provenance::assumed;
      graph.add(wait);
    });
  }

  /// Sets the memory of each GPU, in order of ranks: weights and their states in proportion to its
  /// work, plus the activations of the passes in flight.
  static void set_memory(Graph& graph, const Schedule& schedule, const PipelineCosts& costs,
                         const Memory& memory, const PipelineRun& run) {
    if (memory.initial == Bytes{} && memory.activations == Bytes{}) return;
    Nanoseconds work{0};
    for (const StageCosts& stage : costs.stages)
      work += stage.forward + stage.input_gradient + stage.weight_gradient;
    std::vector<Bytes>& levels = graph.initial_memory();
    levels.assign(run.ranks.size(), Bytes{});
    graph.device_names().resize(run.ranks.size(), graph.device_names().empty()
                                                      ? std::string()
                                                      : graph.device_names().front());
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
      std::vector<char> is_counted(costs.stages.size(), 0);
      Bytes recomputed{};
      for (const Action& action : schedule.orders[rank]) {
        const auto stage = static_cast<std::size_t>(action.stage);
        if (is_counted[stage] != 0) continue;
        is_counted[stage] = 1;
        const StageCosts& cost = costs.stages[stage];
        if (!memory.recomputed.empty()) recomputed = std::max(recomputed, memory.recomputed[stage]);
        levels[rank] += scaled(
            memory.initial, ratio(cost.forward + cost.input_gradient + cost.weight_gradient, work));
      }
      Allocation block{.device = static_cast<std::int32_t>(rank), .use = MemoryUse::activation};
      graph.allocations().push_back(block);
      block.bytes = run.ranks[rank].peak_activations + recomputed + memory.rest;
      replace_block(graph, static_cast<std::uint32_t>(graph.allocations().size() - 1), block);
    }
  }

  void describe_effect(const Graph& graph, const RecordedLayers& recorded, const Schedule& schedule,
                       const PipelineRun& run, Effect& effect) const {
    effect.changed = graph.task_count();
    effect.summary =
        fmt::format("{} of {} and {}: bubbles are {} of the passes' time", schedule.name,
                    counted(stages_, "stage"), counted(micro_batches_, "micro-batch"),
                    to_share(run.bubble_rate()));
    if (replicas_ > 1) effect.summary += fmt::format("; {} replicas", replicas_);
    Bytes most{};
    Nanoseconds slowest{0};
    std::int32_t in_flight = 0;
    for (const RankRun& rank : run.ranks) {
      most = std::max(most, rank.peak_activations), slowest = std::max(slowest, rank.busy);
      in_flight = std::max(in_flight, rank.peak_in_flight);
    }
    effect.figures = {{"makespan", run.makespan},
                      {"bubble_rate", run.bubble_rate()},
                      {"slowest_stage", slowest},
                      {"peak_in_flight", static_cast<double>(in_flight)},
                      {"peak_activations", most}};
    effect.assumptions = {
        "each micro-batch is as large as the recorded batch, and takes a stage as long as its "
        "layers took",
        "the host keeps ahead of all GPUs"};
    if (!recorded.are_recorded)
      effect.assumptions.emplace_back(
          "stages can begin anywhere in the passes, because the trace does not name layers");
    if (schedule.splits_backward)
      effect.assumptions.emplace_back("half of each backward pass makes the gradients of weights");
    if (output_ == Bytes{})
      effect.assumptions.emplace_back(
          "sends between stages take no time, as output_bytes is not given");
  }

  std::int64_t stages_ = 4, micro_batches_ = 8, replicas_ = 1;
  std::string schedule_ = "1f1b", cuts_;
  NetworkSettings network_;
  Bytes output_{}, gradients_{};
  bool recompute_ = false;
};

}  // namespace

TransformEntry pipeline_entry() {
  return {
      .make = create<Pipeline>,
      .assumes =
          "The layers of the recorded job become stages on GPUs of their own, as evenly as "
          "they can be cut, and micro-batches of the recorded size pass through them in the "
          "order of a schedule. A stage takes as long as its layers took, pauses between "
          "kernels included; updates are divided in proportion. Sends between stages and "
          "all-reduces among replicas take what the network's model says. Batches are loaded at "
          "the pace of the recording; the host is assumed to keep ahead. Memory: weights, "
          "gradients and optimizer state in "
          "proportion to the work of a stage, and activations of the micro-batches in flight.",
      .advice = {.why_not =
                     "say how many stages and which schedule: pipeline:stages=4,micro_batches=16"}};
}

}  // namespace foretrace
