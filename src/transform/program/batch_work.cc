#include "transform/program/batch_work.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "foretrace/error.h"
#include "graph/ops.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"

namespace foretrace {
namespace {

/// Bytes of a loss, a count or a flag, which is as large for any batch.
constexpr std::int64_t kSingleNumber = 8;
/// Bytes of the caching allocator's block for a single number.
constexpr std::int64_t kSmallestBlock = 512;

void lower_to(Nanoseconds& least, Nanoseconds duration) {
  if (duration > 0ns && (least == 0ns || duration < least)) least = duration;
}

void add(Nanoseconds& sum, Nanoseconds amount) {
  sum += std::min(amount, Nanoseconds::max() - sum);
}

/// Returns the shorter side of the tile that a product's name gives, as in
/// "nvjet_sm90_tst_128x16_64x11"; 0 if it gives none.
int shorter_side_of_tile(std::string_view name) {
  const char* const end = name.data() + name.size();
  const auto number = [&](const char* at, int& value) {
    const auto read = std::from_chars(at, end, value);
    return read.ec == std::errc() && value > 0 && value < 1000 ? read.ptr : nullptr;
  };
  for (std::size_t at = name.find('_'); at != name.npos; at = name.find('_', at + 1)) {
    int first = 0, second = 0;
    const char* const x = number(name.data() + at + 1, first);
    if (x != nullptr && x != end && *x == 'x' && number(x + 1, second) != nullptr)
      return std::min(first, second);
  }
  return 0;
}

}  // namespace

BatchWork::BatchWork(const Graph& graph, double most)
    : graph_(graph),
      most_(most),
      classes_(graph),
      growing_(graph.accesses().empty() ? 0 : graph.task_count(), 0),
      touched_(growing_) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (graph.removed(TaskId{i})) continue;
    has_phases_ = has_phases_ || task.phase == Phase::forward;
    trains_ = trains_ || task.phase == Phase::backward || task.phase == Phase::update;
    if (task.kind == TaskKind::kernel) lower_to(kernel_floor_, task.duration);
    if (is_copy(task.kind)) lower_to(copy_floor_, task.duration);
  }
  if (const DeviceModel* device = recorded_device(graph); device != nullptr)
    balance_ = std::max(device->fp16, device->bf16).flops_per_second /
               device->memory_bandwidth.bytes_per_second;
  find_sizes_of_weights();
  find_casts();
  for (const Access& access : graph.accesses()) {
    if (access.task == kNoTask) continue;
    const auto size = static_cast<float>(graph.allocations()[access.allocation].bytes.count);
    touched_[index(access.task)] += size;
    if (grows(access.allocation)) growing_[index(access.task)] += size;
  }
}

void BatchWork::find_sizes_of_weights() {
  std::set<std::int64_t> forward;
  for (const Allocation& block : graph_.allocations()) {
    if (block.use == MemoryUse::parameter || block.use == MemoryUse::gradient)
      sizes_of_weights_.insert(asked_bytes(block));
    else if (block.made_by != kNoTask && graph_.task(block.made_by).phase == Phase::forward)
      forward.insert(asked_bytes(block));
  }
  std::erase_if(sizes_of_weights_, [&](std::int64_t size) { return forward.contains(size); });
}

/// Whether a conversion of types asked for the block, as far as ops and stacks show it.
bool BatchWork::is_conversion(const Allocation& block) const {
  const std::string_view op = bare_op_name(graph_.names()[block.op]);
  return op == "to" || op == "to_copy" ||
         contains_any(graph_.names()[block.stack], {"at::_ops::_to_copy", "at::autocast::"});
}

void BatchWork::find_casts() {
  std::map<std::int64_t, std::size_t> weights;
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::uint32_t>> made;
  for (std::uint32_t i = 0; i < graph_.allocations().size(); ++i) {
    const Allocation& block = graph_.allocations()[i];
    if (block.use == MemoryUse::parameter) {
      ++weights[asked_bytes(block)];
    } else if (block.made_by != kNoTask) {
      const Task& maker = graph_.task(block.made_by);
      if (maker.phase == Phase::forward && is_conversion(block))
        made[{maker.step, asked_bytes(block)}].push_back(i);
    }
  }
  constexpr std::size_t kFewest = 2;  // One block has the size of one weight by chance.
  for (const auto& [place, blocks] : made) {
    const auto found = weights.find(2 * place.second);
    if (blocks.size() >= kFewest && found != weights.end() && found->second == blocks.size())
      casts_.insert(blocks.begin(), blocks.end());
  }
}

bool BatchWork::grows(TaskId task) {
  return duration(task, most_, 1) != graph_.task(task).duration;
}

bool BatchWork::grows(std::uint32_t allocation) const {
  const Allocation& block = graph_.allocations()[allocation];
  if (block.bytes.count <= kSmallestBlock || block.made_by == kNoTask) return false;
  if (casts_.contains(allocation)) return false;
  const Phase phase = graph_.task(block.made_by).phase;
  switch (block.use) {
    case MemoryUse::parameter:
    case MemoryUse::gradient:
    case MemoryUse::optimizer_state:
      return false;
    case MemoryUse::activation:
    case MemoryUse::input:
      return true;
    case MemoryUse::temporary:
    case MemoryUse::workspace:
      if (phase == Phase::backward && sizes_of_weights_.contains(asked_bytes(block))) return false;
      return phase != Phase::update;
    case MemoryUse::unknown:
      break;
  }
  return phase != Phase::update && (phase != Phase::none || !has_phases_);
}

double BatchWork::growing_share(TaskId task) const {
  if (touched_.empty() || touched_[index(task)] <= 0) return 1;
  return static_cast<double>(growing_[index(task)]) / static_cast<double>(touched_[index(task)]);
}

bool BatchWork::copies_samples(const Task& task) const {
  return !crosses_host_link(task.kind) || task.bytes.count == 0 || task.bytes.count > kSingleNumber;
}

double BatchWork::bound_by_weights(const Task& task) {
  constexpr int kFewTokens = 32;
  if (trains_ || task.kind != TaskKind::kernel) return 0;
  const std::string_view name = classes_.name_of(task);
  if (operation_of(classes_.of(task.name), name) != OperationKind::product) return 0;
  const int tokens = shorter_side_of_tile(name);
  return tokens > 0 && tokens <= kFewTokens ? tokens : 0;
}

bool BatchWork::reads_a_cache(const Task& task) {
  if (!answers_tokens_) {
    answers_tokens_ = false;
    for (std::uint32_t i = 0; !trains_ && i < graph_.task_count() && !*answers_tokens_; ++i)
      answers_tokens_ = bound_by_weights(graph_.task(TaskId{i})) > 0;
  }
  return *answers_tokens_ && task.kind == TaskKind::kernel &&
         operation_of(classes_.of(task.name), classes_.name_of(task)) == OperationKind::attention;
}

bool BatchWork::loops_over_samples(const Task& task) {
  constexpr Nanoseconds kLongBlock = 20us;  // A block that works on one sample ends sooner. Chosen.
  const Pattern pattern = classes_.of(task.name).pattern;
  return task.fill < 1 && task.duration >= kLongBlock &&
         (pattern == Pattern::normalization || pattern == Pattern::reduction);
}

Nanoseconds BatchWork::duration(TaskId id, double factor, double before) {
  const Task& task = graph_.task(id);
  if (factor == 1 || task.phase == Phase::update) return task.duration;
  if (task.kind == TaskKind::input) return scaled(task.duration, factor);
  if (task.kind != TaskKind::kernel && !(is_copy(task.kind) && copies_samples(task)))
    return task.duration;
  const double share = growing_share(id);
  if (share == 0) return task.duration;  // The task works on parameters alone.
  const bool is_arithmetic =
      task.kind == TaskKind::kernel && classes_.of(task.name).bound == Boundness::compute;
  double growth = factor;
  if (!is_arithmetic) growth = share * factor + (1 - share);
  if (const double tokens = bound_by_weights(task); tokens > 0) {
    const auto time = [&](double grown) { return std::max(1.0, tokens * grown / balance_); };
    growth = time(before * factor) / time(before);
  } else if (task.fill > 0 && !loops_over_samples(task) && !reads_a_cache(task)) {
    // Relative to the time as recorded, which both ends of the change are measured from.
    const auto time = [&](double grown) {
      if (is_arithmetic && grown < 1) return grown;
      const double fill = static_cast<double>(task.fill);
      return std::max(1.0, fill * grown) / std::max(1.0, fill);
    };
    growth = time(before * growth) / time(before);
  }
  const Nanoseconds floor =
      std::min(task.kind == TaskKind::kernel ? kernel_floor_ : copy_floor_, task.duration);
  const Nanoseconds above = scaled(task.duration - floor, growth);
  return floor + std::min(above, Nanoseconds::max() - floor);
}

Bytes BatchWork::bytes(TaskId id, double factor) const {
  const Task& task = graph_.task(id);
  if (factor == 1 || task.phase == Phase::update || !is_copy(task.kind) || !copies_samples(task))
    return task.bytes;
  if (growing_share(id) == 0) return task.bytes;
  const double wanted = std::round(static_cast<double>(task.bytes.count) * factor);
  return Bytes{static_cast<std::int64_t>(std::min(wanted, 1e18))};
}

double BatchWork::flops(TaskId id, double factor) const {
  const Task& task = graph_.task(id);
  return task.phase == Phase::update || growing_share(id) == 0 ? task.flops : task.flops * factor;
}

TaskWork BatchWork::grown(TaskId id, double factor, double before) {
  return {duration(id, factor, before), bytes(id, factor), flops(id, factor)};
}

double growth_factor(double factor, const std::optional<std::int64_t>& from,
                     const std::optional<std::int64_t>& to) {
  if (from.has_value() != to.has_value())
    throw Error(from ? "to: must be given together with from"
                     : "from: must be given together with to");
  if (!from) return factor;
  if (factor != 1) throw Error("factor: cannot be given together with from and to");
  return static_cast<double>(*to) / static_cast<double>(*from);
}

void grow_work(Graph& graph, BatchWork& work, const std::vector<double>& factors,
               const std::vector<double>& before, GrowthTally& tally) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (graph.removed(id) || !work.grows(id)) continue;
    const TaskWork wanted = work.grown(id, factors[i], before[i]);
    Task& task = graph.task(id);
    ++tally.tasks;
    add(tally.before, task.duration);
    add(tally.after, wanted.duration);
    if (wanted.duration != task.duration || wanted.bytes != task.bytes) ++tally.changed;
    wanted.set(task);
  }
}

void grow_blocks(Graph& graph, const BatchWork& work, const std::vector<double>& factors,
                 GrowthTally& tally) {
  for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
    if (!work.grows(i)) continue;
    const Allocation wanted = resized(graph.allocations()[i], factors[i], "factor");
    ++tally.blocks;
    if (wanted.bytes != graph.allocations()[i].bytes) ++tally.changed;
    replace_block(graph, i, wanted);
  }
}

}  // namespace foretrace
