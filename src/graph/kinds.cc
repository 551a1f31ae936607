// The table of task kinds, and the texts of the other small enumerations.

#include <algorithm>
#include <iterator>
#include <span>

#include "foretrace/graph.h"
#include "graph/defaults.h"

namespace foretrace {
namespace {

/// Returns the value whose text is `name`, or nullopt.
template <class Value>
std::optional<Value> named(std::span<const std::string_view> texts, std::string_view name) {
  const auto found = std::find(texts.begin(), texts.end(), name);
  if (found == texts.end()) return std::nullopt;
  return static_cast<Value>(found - texts.begin());
}

enum class Side : std::uint8_t { none, host, device, link };

struct KindEntry {
  TaskKind kind;
  std::string_view name;
  Side side;
  TaskClass task_class;
  BytePath bytes;
};

/// Everything that a new kind must define, in the order of the enumeration.
constexpr KindEntry kTaskKinds[] = {
    {TaskKind::host, "host", Side::host, TaskClass::host, BytePath::none},
    {TaskKind::input, "input", Side::host, TaskClass::input, BytePath::none},
    {TaskKind::launch, "launch", Side::host, TaskClass::launch, BytePath::none},
    {TaskKind::sync, "sync", Side::host, TaskClass::sync, BytePath::none},
    {TaskKind::kernel, "kernel", Side::device, TaskClass::compute, BytePath::none},
    {TaskKind::collective, "collective", Side::device, TaskClass::communication, BytePath::peers},
    {TaskKind::copy_in, "copy_in", Side::device, TaskClass::copy, BytePath::host_link},
    {TaskKind::copy_out, "copy_out", Side::device, TaskClass::copy, BytePath::host_link},
    {TaskKind::copy_on_device, "copy_on_device", Side::device, TaskClass::copy,
     BytePath::on_device},
    {TaskKind::copy_peer, "copy_peer", Side::device, TaskClass::communication, BytePath::peers},
    {TaskKind::fill, "fill", Side::device, TaskClass::copy, BytePath::none},
    {TaskKind::transfer, "transfer", Side::link, TaskClass::communication, BytePath::storage},
    {TaskKind::unknown, "unknown", Side::none, TaskClass::unknown, BytePath::none},
    {TaskKind::marker, "marker", Side::none, TaskClass::none, BytePath::none},
};
static_assert(
    [] {
      std::size_t place = 0;
      return std::all_of(std::begin(kTaskKinds), std::end(kTaskKinds), [&](const KindEntry& kind) {
        return static_cast<std::size_t>(kind.kind) == place++;
      });
    }(),
    "a kind is not at its place in the table");
static_assert(std::size(kTaskKinds) == static_cast<std::size_t>(TaskKind::marker) + 1,
              "a kind is missing in the table");

constexpr const KindEntry& entry(TaskKind kind) {
  return kTaskKinds[static_cast<std::size_t>(kind)];
}

constexpr std::string_view kLaneKinds[] = {"host_thread", "stream",  "copy_engine", "worker",
                                           "link",        "storage", "origin"};
constexpr std::string_view kRules[] = {"in line",          "launch",
                                       "launch queue",     "blocking copy",
                                       "device sync",      "event wait",
                                       "default stream",   "device full",
                                       "collective input", "update after collectives",
                                       "thread hand-over", "wait for thread",
                                       "other ranks",      "recorded start"};
static_assert(std::size(kRules) == static_cast<std::size_t>(Rule::recorded_start) + 1,
              "a rule has no name");
constexpr std::string_view kProvenances[] = {"measured", "structural", "inferred", "assumed"};

}  // namespace

bool runs_on_device(TaskKind kind) { return entry(kind).side == Side::device; }
bool runs_on_host(TaskKind kind) { return entry(kind).side == Side::host; }
TaskClass class_of(TaskKind kind) { return entry(kind).task_class; }
BytePath byte_path(TaskKind kind) { return entry(kind).bytes; }

const std::vector<std::string_view>& task_kind_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const KindEntry& kind : kTaskKinds) all.push_back(kind.name);
    return all;
  }();
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

WaitReason wait_reason_named(Names& names, std::string_view text) {
  if (const std::optional<Rule> rule = named<Rule>(kRules, text)) return *rule;
  WaitReason why;
  why.code_ = static_cast<std::uint32_t>(names.intern(text));
  return why;
}

std::string_view to_string(WaitReason why, const Names& names) {
  if (why.code_ < WaitReason::kFirstRule) return names[NameId{why.code_}];
  return kRules[why.code_ - WaitReason::kFirstRule];
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
