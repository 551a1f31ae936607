// The texts of the small enumerations.

#include <algorithm>
#include <span>

#include "foretrace/graph.h"
#include "graph/defaults.h"

namespace foretrace {
namespace {

/// The value whose place in `texts` is that of `name`.
template <class Value>
std::optional<Value> named(std::span<const std::string_view> texts, std::string_view name) {
  const auto found = std::find(texts.begin(), texts.end(), name);
  if (found == texts.end()) return std::nullopt;
  return static_cast<Value>(found - texts.begin());
}

constexpr std::string_view kLaneKinds[] = {"host_thread", "stream",  "copy_engine", "worker",
                                           "link",        "storage", "origin"};
constexpr std::string_view kProvenances[] = {"measured", "structural", "inferred", "assumed"};

}  // namespace

bool runs_on_device(TaskKind kind) {
  switch (kind) {
    case TaskKind::kernel:
    case TaskKind::collective:
    case TaskKind::copy_in:
    case TaskKind::copy_out:
    case TaskKind::copy_on_device:
    case TaskKind::copy_peer:
    case TaskKind::fill:
      return true;
    case TaskKind::host:
    case TaskKind::input:
    case TaskKind::launch:
    case TaskKind::sync:
    case TaskKind::transfer:
    case TaskKind::marker:
      return false;
  }
  return false;
}

const std::vector<std::string_view>& task_kind_names() {
  static const std::vector<std::string_view> names = {
      "host",     "input",          "launch",    "sync", "kernel",   "collective", "copy_in",
      "copy_out", "copy_on_device", "copy_peer", "fill", "transfer", "marker"};
  return names;
}

const std::vector<std::string_view>& phase_names() {
  static const std::vector<std::string_view> names = {"none", "input", "forward", "backward",
                                                      "update"};
  return names;
}

const std::vector<std::string_view>& memory_use_names() {
  static const std::vector<std::string_view> names = {"unknown",         "parameter",  "gradient",
                                                      "optimizer_state", "activation", "temporary",
                                                      "workspace",       "input"};
  return names;
}

std::string_view to_string(TaskKind kind) {
  return task_kind_names()[static_cast<std::size_t>(kind)];
}
std::string_view to_string(Phase phase) { return phase_names()[static_cast<std::size_t>(phase)]; }
std::string_view to_string(Provenance provenance) {
  return kProvenances[static_cast<std::size_t>(provenance)];
}
std::string_view to_string(LaneKind kind) { return kLaneKinds[static_cast<std::size_t>(kind)]; }

std::optional<TaskKind> task_kind_named(std::string_view name) {
  return named<TaskKind>(task_kind_names(), name);
}
std::optional<Phase> phase_named(std::string_view name) {
  return named<Phase>(phase_names(), name);
}
std::string_view to_string(StepSource source) {
  constexpr std::string_view kNames[] = {"none", "markers", "annotation", "optimizer", "period"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(MemoryUse use) {
  return memory_use_names()[static_cast<std::size_t>(use)];
}
std::optional<MemoryUse> memory_use_named(std::string_view name) {
  return named<MemoryUse>(memory_use_names(), name);
}
std::optional<LaneKind> lane_kind_named(std::string_view name) {
  return named<LaneKind>(kLaneKinds, name);
}

std::span<const std::string_view> lane_kind_names() { return kLaneKinds; }
std::span<const std::string_view> provenance_names() { return kProvenances; }
std::optional<Provenance> provenance_named(std::string_view name) {
  return named<Provenance>(kProvenances, name);
}

LaneKind default_kind(const Graph& graph, LaneId lane) {
  const TaskId first = graph.first(lane);
  if (first == kNoTask || runs_on_device(graph.task(first).kind)) return LaneKind::stream;
  return LaneKind::host_thread;
}

std::int32_t default_device(LaneKind kind) {
  return kind == LaneKind::stream || kind == LaneKind::copy_engine ? 0 : -1;
}

}  // namespace foretrace
