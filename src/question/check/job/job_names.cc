#include <algorithm>
#include <cctype>

#include "question/check/job/job_summary.h"
#include "timeline/step_marks.h"

namespace foretrace {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

/// Removes everything in brackets, including inner ones. Unclosed brackets stay.
std::string without(std::string_view text, char open, char close) {
  std::string kept;
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == open) ++depth;
    if (depth == 0) kept += c;
    if (c == close && depth > 0) --depth;
  }
  return depth == 0 ? kept : std::string(text);
}

/// Replaces each run of digits (tiles, strides, versions) by one '#'.
std::string without_numbers(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) {
      kept += text[i];
    } else if (kept.empty() || kept.back() != '#') {
      kept += '#';
    }
  }
  return kept;
}

/// "0x7f12ab" -> "0x"
std::string without_addresses(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    kept += text[i];
    if (!kept.ends_with("0x")) continue;
    while (i + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0) ++i;
  }
  return kept;
}

/// Drops folder and line from the name of a Python frame; file and function stay.
std::string plain_frame(std::string_view name) {
  const std::size_t file = name.find(".py(");
  if (file == std::string_view::npos) return std::string(name);
  const std::size_t slash = name.substr(0, file).find_last_of("/\\");
  const std::size_t close = name.find(')', file);
  std::string kept(name.substr(slash == std::string_view::npos ? 0 : slash + 1,
                               file + 3 - (slash == std::string_view::npos ? 0 : slash + 1)));
  if (close != std::string_view::npos) kept += name.substr(close + 1);
  return kept;
}

/// Drops trailing numbers that PyTorch counts up; ops such as "aten::conv2d" keep theirs.
std::string plain_host_name(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end + 1 < name.size() &&
      (name[end] == '#' || name[end] == ' ' || name[end] == '_'))
    name = name.substr(0, end + 1);
  return plain_frame(without_addresses(name));
}

}  // namespace

std::string plain_name(std::string_view name, bool is_kernel) {
  if (!is_kernel) return plain_host_name(name);
  std::string text(name);
  remove_all(text, "(anonymous namespace)::");
  if (text.starts_with("void ")) text.erase(0, 5);
  text = without(without(text, '<', '>'), '(', ')');
  if (text.empty()) text = name;
  return without_numbers(without_addresses(text));
}

std::string without_instances(std::string_view module) {
  std::string kept;
  for (const char c : module) {
    if (c < '0' || c > '9') {
      kept += c;
    } else if (kept.empty() || kept.back() != '*') {
      kept += '*';
    }
  }
  return kept;
}

bool is_pageable(std::string_view name) { return name.find("Pageable") != std::string_view::npos; }

bool waits_for_event(std::string_view name) {
  return name.find("StreamWaitEvent") != std::string_view::npos;
}

std::uint32_t host_record(const ObservedJob& job, TaskId task) {
  if (index(task) >= job.recorded_tasks) return kNone;
  const LaneKind lane = job.graph.lane(job.graph.lane_of(task)).kind;
  if (lane != LaneKind::host_thread && lane != LaneKind::worker) return kNone;
  const std::uint32_t record = job.graph.task(task).record;
  return record < job.trace.hosts.size() ? record : kNone;
}

bool is_synchronizing(const ObservedJob& job, TaskId task) {
  const TaskKind kind = job.graph.task(task).kind;
  if (runs_on_device(kind) || kind == TaskKind::marker) return false;
  // If a what-if removed a wait, its call remains as host work.
  if (job.is_edited && kind != TaskKind::sync) return false;
  const std::string_view name = job.graph.name(task);
  if (name.find("Synchronize") != std::string_view::npos) return true;
  // These calls wait until nothing on the device can use the memory any more.
  if (name == "cudaFree" || name == "hipFree") return true;
  return kind == TaskKind::sync && name.find("Memcpy") != std::string_view::npos &&
         name.find("Async") == std::string_view::npos;
}

SteadySteps::SteadySteps(const Graph& graph) {
  const std::vector<std::int32_t> steps = counted_steps(graph);
  if (steps.empty()) return;
  columns_.assign(graph.steps().size(), -1);
  period_ = std::clamp<std::int64_t>(graph.step_rule().period, 1, std::ssize(steps));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    columns_[static_cast<std::size_t>(steps[i])] =
        static_cast<std::int32_t>(i / static_cast<std::size_t>(period_));
  }
  count_ = steps.size() / static_cast<std::size_t>(period_);
}

std::optional<std::size_t> SteadySteps::column(std::int32_t step) const {
  if (columns_.empty()) return 0;
  if (step < 0 || static_cast<std::size_t>(step) >= columns_.size()) return std::nullopt;
  const std::int32_t column = columns_[static_cast<std::size_t>(step)];
  return column < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(column));
}

namespace {

using Kernels = std::vector<std::pair<Nanoseconds, Nanoseconds>>;

/// Returns the times in which at least one of the kernels runs.
Kernels merged_kernels(Kernels kernels) {
  std::sort(kernels.begin(), kernels.end());
  Kernels merged;
  for (const auto& [start, finish] : kernels) {
    if (merged.empty() || start > merged.back().second) {
      merged.emplace_back(start, finish);
    } else {
      merged.back().second = std::max(merged.back().second, finish);
    }
  }
  return merged;
}

}  // namespace

KernelOverlap::KernelOverlap(const Graph& graph, const Timeline& timeline)
    : graph_(graph), timeline_(timeline) {
  std::vector<Nanoseconds> most;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const LaneId lane{i};
    const std::int32_t device = graph.lane(lane).device;
    if (device < 0 || device > 4096) continue;
    const auto place = static_cast<std::size_t>(device);
    if (place >= devices_.size()) devices_.resize(place + 1), most.resize(place + 1, -1ns);
    Nanoseconds work{0};
    for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
      if (graph.task(task).kind != TaskKind::kernel) continue;
      work += graph.task(task).duration;
      devices_[place].kernels.emplace_back(timeline.start[index(task)],
                                           timeline.finish[index(task)]);
    }
    if (work > most[place]) most[place] = work, devices_[place].main = lane;
  }
  for (DeviceKernels& device : devices_) {
    device.kernels = merged_kernels(std::move(device.kernels));
    Nanoseconds sum{0};
    for (const auto& [start, finish] : device.kernels) {
      device.before.push_back(sum);
      sum += finish - start;
    }
  }
}

Nanoseconds KernelOverlap::busy_until(const DeviceKernels& device, Nanoseconds time) const {
  const auto behind =
      std::upper_bound(device.kernels.begin(), device.kernels.end(), time,
                       [](Nanoseconds at, const auto& kernel) { return at < kernel.first; });
  if (behind == device.kernels.begin()) return 0ns;
  const auto i = static_cast<std::size_t>(behind - device.kernels.begin()) - 1;
  return device.before[i] + std::min(time, device.kernels[i].second) - device.kernels[i].first;
}

Nanoseconds KernelOverlap::hidden(TaskId task) const {
  const std::int32_t device = graph_.lane(graph_.lane_of(task)).device;
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return 0ns;
  const DeviceKernels& kernels = devices_[static_cast<std::size_t>(device)];
  return busy_until(kernels, timeline_.finish[index(task)]) -
         busy_until(kernels, timeline_.start[index(task)]);
}

bool KernelOverlap::is_on_side_stream(TaskId task) const {
  const LaneId lane = graph_.lane_of(task);
  const std::int32_t device = graph_.lane(lane).device;
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return false;
  return devices_[static_cast<std::size_t>(device)].main != lane;
}

}  // namespace foretrace
