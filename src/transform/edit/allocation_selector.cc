#include "transform/edit/allocation_selector.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"

namespace foretrace {
namespace {

std::vector<std::string_view> any_or(const std::vector<std::string_view>& names) {
  std::vector<std::string_view> options = {"any"};
  options.insert(options.end(), names.begin(), names.end());
  return options;
}

}  // namespace

void AllocationSelector::describe(Fields& fields) {
  fields.choice("use", use_, any_or(memory_use_names()), "Only memory with this use");
  fields.text("op", op_, "Only with this text, or /expression/, in the op that asked for it");
  fields.text("stack", stack_, "Only with this text, or /expression/, in its source lines");
  fields.text("module", module_,
              "Only with this text, or /expression/, in the module of the task that allocated it");
  fields.choice("phase", phase_, any_or(phase_names()), "Only blocks allocated in this phase");
  fields.bytes("min_bytes", min_bytes_, "Only blocks of at least this size");
  fields.bytes("max_bytes", max_bytes_, "Only blocks of at most this size; 0B: any size");
  fields.optional_integer("device", device_, "Only on this device", 0);
}

void AllocationSelector::check() const {
  within("op", [&] { NamePattern pattern(op_); });
  within("stack", [&] { NamePattern pattern(stack_); });
  within("module", [&] { NamePattern pattern(module_); });
}

std::vector<std::uint32_t> AllocationSelector::select(const Graph& graph) const {
  check();
  const std::optional<MemoryUse> use = memory_use_named(use_);
  const std::optional<Phase> phase = phase_named(phase_);
  NameCondition op(op_, graph.names()), stack(stack_, graph.names());
  NameCondition module(module_, graph.names());
  std::vector<std::uint32_t> selected;
  for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
    const Allocation& block = graph.allocations()[i];
    if (block.bytes <= Bytes{} || block.bytes < min_bytes_) continue;
    if (max_bytes_ > Bytes{} && block.bytes > max_bytes_) continue;
    if (use && block.use != *use) continue;
    if (device_ && block.device != *device_) continue;
    const Task none;
    const Task& maker = block.made_by == kNoTask ? none : graph.task(block.made_by);
    if (phase && maker.phase != *phase) continue;
    if (op(block.op) && stack(block.stack) && module(maker.module)) selected.push_back(i);
  }
  return selected;
}

std::vector<std::uint32_t> AllocationSelector::select_some(const Graph& graph,
                                                           std::string_view setting) const {
  need_allocations(graph);
  std::vector<std::uint32_t> selected = select(graph);
  if (!selected.empty()) return selected;
  std::string message = fmt::format("no allocation matches \"{}\" ({})", setting, to_text());
  const auto none_has = [&](const auto& has) {
    return std::none_of(graph.allocations().begin(), graph.allocations().end(), has);
  };
  if (use_ != "any" &&
      none_has([](const Allocation& block) { return block.use != MemoryUse::unknown; })) {
    message += "; the use of memory is unknown in this trace";
  }
  if (!op_.empty() && none_has([](const Allocation& block) { return block.op != NameId{}; })) {
    message += "; the ops that asked for memory are unknown in this trace";
  }
  if (!stack_.empty() &&
      none_has([](const Allocation& block) { return block.stack != NameId{}; })) {
    message += "; the source lines of allocations are unknown in this trace";
  }
  throw Error(message);
}

std::string AllocationSelector::to_text() const {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  if (use_ != "any") add("use", use_);
  if (!op_.empty()) add("op", fmt::format("\"{}\"", op_));
  if (!stack_.empty()) add("stack", fmt::format("\"{}\"", stack_));
  if (!module_.empty()) add("module", fmt::format("\"{}\"", module_));
  if (phase_ != "any") add("phase", phase_);
  if (min_bytes_ > Bytes{}) add("min_bytes", to_exact_text(min_bytes_));
  if (max_bytes_ > Bytes{}) add("max_bytes", to_exact_text(max_bytes_));
  if (device_) add("device", std::to_string(*device_));
  return text.empty() ? "any allocation" : text;
}

void need_allocations(const Graph& graph) {
  if (std::any_of(graph.allocations().begin(), graph.allocations().end(),
                  [](const Allocation& block) { return block.bytes > Bytes{}; })) {
    return;
  }
  throw Error(
      "this trace does not record memory (torch.profiler: profile_memory=True; foretrace collect "
      "records it)");
}

}  // namespace foretrace
