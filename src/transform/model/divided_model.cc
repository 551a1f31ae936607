#include "transform/model/divided_model.h"

#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/program/batch_work.h"

namespace foretrace {

DividedModel::DividedModel(Graph& graph, std::int64_t blocks)
    : graph_(graph),
      units_(units_of_steps(graph, simulate(graph, {.memory = false}),
                            static_cast<std::size_t>(blocks))) {
  const auto has_passes = [](const auto& step) { return !step.second.backward.empty(); };
  if (std::ranges::none_of(units_.steps, has_passes))
    throw Error(
        "no step of the trace has a forward and a backward pass, whose work devices could share");
}

std::size_t DividedModel::blocks() const {
  std::size_t most = 0;
  for (const auto& [step, units] : units_.steps) most = std::max(most, units.forward.size());
  return most;
}

void DividedModel::divide_kernels(double part, const std::function<bool(const Task&)>& divides) {
  BatchWork work(graph_, 1);
  std::vector<std::pair<TaskId, TaskWork>> shares;
  for (const auto& [id, unit] : units_.unit) {
    if (graph_.task(id).kind == TaskKind::kernel && divides(graph_.task(id)))
      shares.emplace_back(id, work.grown(id, part));
  }
  for (const auto& [id, share] : shares) share.set(graph_.task(id));
  changed_ += shares.size();
}

void DividedModel::add_behind_blocks(Phase phase, const std::string& name, Nanoseconds time,
                                     Bytes bytes) {
  if (time <= 0ns) return;
  for (const auto& [step, units] : units_.steps) {
    for (const UnitWork& unit : phase == Phase::forward ? units.forward : units.backward) {
      if (unit.last == kNoTask) continue;
      Task task{.duration = time, .bytes = bytes, .step = step, .phase = phase};
      task.kind = TaskKind::collective;
      task.name = graph_.names().intern(name);
      graph_.insert_behind(unit.last, task);
      transfer_ += time;
      ++changed_;
    }
  }
}

void DividedModel::divide_memory(MemoryUse use, std::int64_t parts) {
  for (std::uint32_t i = 0; i < graph_.allocations().size(); ++i) {
    const Allocation& block = graph_.allocations()[i];
    if (block.use != use || block.bytes <= Bytes{} || parts == 1) continue;
    replace_block(graph_, i, resized(block, 1. / static_cast<double>(parts), "gpus"));
    ++changed_;
  }
}

void DividedModel::divide_levels(std::int64_t parts) {
  for (Bytes& level : graph_.initial_memory()) level.count = (level.count + parts - 1) / parts;
}

Nanoseconds DividedModel::transfer_per_step() const {
  std::int64_t steps = 0;
  for (const auto& [step, units] : units_.steps) steps += units.forward.empty() ? 0 : 1;
  return transfer_ / std::max<std::int64_t>(1, steps);
}

}  // namespace foretrace
