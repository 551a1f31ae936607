#include "transform/parallel/sharded.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/device_change.h"
#include "transform/parallel/step_units.h"

namespace foretrace {
namespace {

class Sharding {
 public:
  Sharding(Graph& graph, const Context& context, const ShardedTraffic& settings, Bytes gradients)
      : graph_(graph),
        settings_(settings),
        timeline_(simulate(graph, {.memory = false})),
        found_(find_gradients(graph, timeline_, gradients)),
        within_(settings.network, settings.divided_by(), context.gpus_per_worker),
        exchange_(graph, timeline_, within_, settings.exchange, settings.workers),
        units_(units_of_steps(graph, timeline_, static_cast<std::size_t>(settings.units))) {
    const std::int64_t copies = settings.workers / settings.divided_by();
    if (copies > 1) {
      among_.emplace(settings.network, copies, settings.divided_by() * context.gpus_per_worker);
      exchange_.replicate_with(*among_, settings.divided_by());
    }
    // Stage 3 has no buckets: the gradients of a unit are contiguous in memory.
    if (settings.exchange.copies && settings.stage < 3)
      exchange_.copy_with(memory_rate(graph, context, "copies"));
  }

  void add(Bytes parameters, Effect& effect) {
    for (const BackwardPass& pass : found_.passes)
      gradients_ = std::max(gradients_, total_bytes(pass));
    const bool has_parameters = parameters > Bytes{};
    if (!has_parameters) parameters = gradients_;
    shorten_updates();
    TaskId updated = kNoTask;  // The first step finds its parameters in place.
    for (const BackwardPass& pass : found_.passes) {
      if (settings_.stage < 3)
        add_gather_behind(pass, parameters);
      else
        add_units(pass, parameters, updated);
      updated = units_.steps[pass.step].last_update;
    }
    effect.changed += exchange_.changed();
    effect.changed += contend(graph_, settings_.exchange.workers.contention).changed;
    describe(parameters, has_parameters, effect);
  }

 private:
  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  /// Returns the bytes of gradients of each unit in a step.
  std::vector<Bytes> gradients_of(const BackwardPass& pass) const {
    std::vector<Bytes> bytes(units_.steps.at(pass.step).backward.size());
    for (const Gradient& gradient : pass.gradients)
      bytes[units_.unit.at(gradient.ready)] += gradient.bytes;
    return bytes;
  }

  /// Shortens only device work: the host still launches as many kernels.
  void shorten_updates() {
    const double share = 1 / static_cast<double>(settings_.divided_by());
    for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
      Task& task = graph_.task(TaskId{i});
      if (!graph_.removed(TaskId{i}) && task.phase == Phase::update &&
          task.kind == TaskKind::kernel)
        task.duration = scaled(task.duration, share);
    }
  }

  void wait(TaskId before, TaskId after, Anchor anchor = Anchor::finish, Nanoseconds lag = 0ns) {
    if (before == kNoTask || after == kNoTask) return;
    graph_.add({.before = before,
                .after = after,
                .lag = lag,
                .anchor = anchor,
                .provenance = Provenance::assumed,
                .why = Rule::collective_input});
  }

  void add_gather_behind(const BackwardPass& pass, Bytes parameters) {
    exchange_.send(pass, Operation::reduce_scatter);
    const TaskId gather =
        exchange_.transfer(pass, "sharded parameters", "all_gather of the parameters",
                           Operation::all_gather, parameters, within_);
    const TaskId update = units_.steps[pass.step].last_update;
    wait(update == kNoTask ? pass.last : update, gather);
    const auto next = units_.steps.upper_bound(pass.step);
    if (next == units_.steps.end()) return;
    for (const UnitWork& unit : next->second.forward) {
      if (unit.first() == kNoTask) continue;
      wait(gather, unit.first());
      break;
    }
  }

  /// Adds the all-gathers of one pass, in the order in which its units run. The first `prefetch` of
  /// them may start with `begins`, once `ready` has finished; each later one starts with the unit
  /// `prefetch` places in front of its own.
  void gather(const BackwardPass& pass, const std::vector<UnitWork>& units,
              const std::vector<Bytes>& bytes, TaskId begins, TaskId ready) {
    std::vector<std::size_t> order;
    for (std::size_t unit = 0; unit < units.size(); ++unit)
      if (units[unit].first() != kNoTask) order.push_back(unit);
    std::ranges::stable_sort(order, {},
                             [&](std::size_t unit) { return start(units[unit].first()); });
    const auto depth = static_cast<std::size_t>(settings_.prefetch);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const TaskId gathered = exchange_.transfer(pass, "sharded parameters", "all_gather of a unit",
                                                 Operation::all_gather, bytes[order[i]], within_);
      if (i >= depth)
        wait(units[order[i - depth]].first(), gathered, Anchor::start);
      else
        wait(begins, gathered, Anchor::start), wait(ready, gathered);
      wait(gathered, units[order[i]].first());
    }
  }

  void add_units(const BackwardPass& pass, Bytes parameters, TaskId updated) {
    const StepUnits& step = units_.steps[pass.step];
    const std::vector<Bytes> gradients = gradients_of(pass);
    const ArrivalSkew late(pass, timeline_, settings_.exchange.workers, settings_.workers);
    const Bytes all = total_bytes(pass);
    std::vector<Bytes> bytes;
    for (const Bytes one : gradients)
      bytes.push_back(
          scaled(parameters, static_cast<double>(one.count) /
                                 static_cast<double>(std::max<std::int64_t>(1, all.count))));
    gather(pass, step.forward, bytes, kNoTask, updated);
    TaskId last_forward = kNoTask;
    for (const UnitWork& unit : step.forward) {
      if (unit.first() != kNoTask &&
          (last_forward == kNoTask || start(unit.first()) > start(last_forward)))
        last_forward = unit.first();
    }
    if (settings_.reshard) gather(pass, step.backward, bytes, last_forward, kNoTask);
    std::vector<std::size_t> order;
    for (std::size_t unit = 0; unit < step.backward.size(); ++unit)
      if (step.backward[unit].last != kNoTask) order.push_back(unit);
    std::ranges::stable_sort(order, {},
                             [&](std::size_t unit) { return finish(step.backward[unit].last); });
    TaskId sent = kNoTask;
    for (const std::size_t unit : order) {
      if (gradients[unit] == Bytes{}) continue;
      const TaskId ready = step.backward[unit].last;
      sent = exchange_.send_unit(pass, "sharded gradients", gradients[unit]);
      wait(ready, exchange_.last_unit(), Anchor::finish, late.at(ready));
    }
    exchange_.count_step(pass, late);
    for (const TaskId reader : pass.readers) wait(sent, reader);
  }

  void describe(Bytes parameters, bool has_parameters, Effect& effect) const {
    const auto steps = static_cast<std::int64_t>(found_.passes.size());
    const auto s = static_cast<double>(settings_.divided_by());
    const auto copies = static_cast<double>(settings_.workers) / s;
    const double gathers = settings_.stage == 3 && settings_.reshard ? 2 : 1;
    const auto g = static_cast<double>(gradients_.count), p = static_cast<double>(parameters.count);
    const double wire =
        (s - 1) / s * (gathers * p + g) + (copies > 1 ? 2 * (copies - 1) / copies * g / s : 0);
    effect.summary = fmt::format("{} of transfers a step among {}",
                                 to_text(exchange_.totals().transfer / steps), within_.described());
    effect.figures.push_back({"wire_bytes_per_step", Bytes{static_cast<std::int64_t>(wire)}});
    for (const Figure& figure : exchange_.figures(found_.passes.size()))
      if (figure.name != "gradient_bytes") effect.figures.push_back(figure);
    effect.transfers = within_.doubt();
    for (const std::string& one : within_.assumed()) effect.assumptions.push_back(one);
    if (!has_parameters)
      effect.assumptions.emplace_back("parameters take as many bytes as gradients");
    assume_gradients(found_, effect.assumptions);
    effect.assumptions.emplace_back(
        "kernels of the update take their part of the time, the host launches as many; workers are "
        "as late as in published runs");
  }

  Graph& graph_;
  const ShardedTraffic& settings_;
  Timeline timeline_;
  Gradients found_;
  Communicator within_;
  std::optional<Communicator> among_;
  GradientExchange exchange_;
  UnitsOfSteps units_;
  Bytes gradients_{};
};

}  // namespace

ShardedTraffic::ShardedTraffic() { exchange.copies = false; }

void ShardedTraffic::describe(Fields& fields) {
  network.describe(fields);
  exchange.describe(fields);
  fields.integer("shard", shard,
                 "With a network: number of workers that divide one copy of the model among them, "
                 "as in hybrid sharding; 0: all of them",
                 0, 1'000'000);
  fields.integer(
      "units", units,
      "For stage 3: units that are gathered one by one; 0: the recorded blocks or layers, or 24", 0,
      100'000);
  fields.integer("prefetch", prefetch,
                 "For stage 3: units that are gathered ahead of the one that runs", 1, 1000);
  fields.flag("reshard", reshard,
              "For stage 3: parameters are dropped after the forward pass and gathered again");
}

Effect add_sharded_traffic(Graph& graph, const Context& context, const ShardedTraffic& settings,
                           Bytes parameters, Bytes gradients) {
  refuse_communication(graph);
  if (settings.shard > 0 && settings.workers % settings.shard != 0)
    throw Error(
        fmt::format("shard: must divide the {} workers, got {}", settings.workers, settings.shard));
  Effect effect;
  if (settings.workers == 1)
    effect.summary = "a single worker exchanges nothing";
  else
    Sharding(graph, context, settings, gradients).add(parameters, effect);
  return effect;
}

}  // namespace foretrace
