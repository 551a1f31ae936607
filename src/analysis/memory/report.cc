
#include <algorithm>
#include <fmt/core.h>
#include <string>

#include "analysis/memory/blocks.h"
#include "foretrace/answer/memory.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

/// Bandwidth of pinned copies over PCIe 3.0 x16 (measured in Capuchin, ASPLOS 2020).
constexpr Bandwidth kUsualLink{12e9};

std::string name_of_device(const Graph& graph, std::int32_t device) {
  const auto number = static_cast<std::size_t>(device);
  if (device < 0) return "host";
  return number < graph.device_names().size() ? graph.device_names()[number] : std::string();
}

/// Returns the device that the question names, or the one with the highest peak; the host only if
/// there is no device. Throws Error if there is none of this number.
std::int32_t chosen_device(const std::vector<MemorySummary>& devices,
                           const MemoryQuestion& question) {
  const auto fuller = [](const MemorySummary& a, const MemorySummary& b) {
    return std::pair(a.device >= 0, a.peak) < std::pair(b.device >= 0, b.peak);
  };
  if (!question.device) return std::max_element(devices.begin(), devices.end(), fuller)->device;
  std::string all;
  for (const MemorySummary& one : devices) {
    if (one.device == *question.device) return one.device;
    all += (all.empty() ? "" : ", ") + std::to_string(one.device);
  }
  throw Error(
      fmt::format("--device: the trace has memory events of {}, not of {}", all, *question.device));
}

/// Whether a step has the wanted number: the number in its name, or its index if the name has none.
bool has_step_number(const Graph& graph, std::int32_t step, std::int64_t wanted) {
  const auto parsed = step_name(graph.steps()[static_cast<std::size_t>(step)].name);
  return parsed ? static_cast<std::int64_t>(parsed->number) == wanted : step == wanted;
}

void narrow_to_step(const Graph& graph, std::int64_t wanted, DeviceMemory& memory,
                    MemoryReport& report) {
  for (const auto& span : memory.steps) {
    if (!has_step_number(graph, span.step, wanted)) continue;
    memory.from = span.begin;
    memory.to = span.end == memory.timeline.length ? memory.end : span.end;
    report.step = graph.steps()[static_cast<std::size_t>(span.step)].name;
    return;
  }
  if (memory.steps.empty()) throw Error("--step: the trace has no steps");
  const auto name = [&](const DeviceMemory::StepSpan& span) {
    return graph.steps()[static_cast<std::size_t>(span.step)].name;
  };
  throw Error(fmt::format("--step: there is no step {}; there are {} to {}", wanted,
                          name(memory.steps.front()), name(memory.steps.back())));
}

void note_missing_data(const DeviceMemory& memory, MemoryReport& report) {
  if (memory.unnamed > Bytes{}) {
    report.notes.add(Severity::info,
                     "in use before the recording and never freed in it: only the sum is known",
                     to_text(memory.unnamed));
  }
  const bool has_use = std::any_of(memory.blocks.begin(), memory.blocks.end(), [&](auto& block) {
    return memory.allocation(block.allocation).use != MemoryUse::unknown;
  });
  if (!has_use)
    report.notes.add(Severity::info, "the trace does not show what blocks are used for");
}

/// Fills in the capacity and, if the question gives none, the bandwidth of copies: from the model
/// of the device if it is known, otherwise a typical one.
void use_device_model(MemoryQuestion& question, MemoryReport& report) {
  const DeviceModel* model = device_recorded_as(report.device_name);
  if (model) report.capacity = model->memory;
  const bool has_bandwidths = question.out.bytes_per_second > 0 && question.in.bytes_per_second > 0;
  if (has_bandwidths || report.device < 0) return;
  const Bandwidth link = model ? model->host_link : kUsualLink;
  question.out = question.in = link;
  report.assumptions.push_back(
      fmt::format("copies to and from the host move {}{} (--host-bandwidth)", to_text(link),
                  model ? ", a figure recalled for " + model->name
                        : ", as for PCIe 3.0 x16, because the device is unknown"));
}

}  // namespace

MemoryReport describe_memory(const Graph& graph, const Timeline& timeline,
                             const MemoryQuestion& asked) {
  MemoryQuestion question = asked;
  MemoryReport report;
  for (const MemoryCurve& curve : memory_curves(graph, timeline)) {
    report.devices.push_back({.device = curve.device,
                              .name = name_of_device(graph, curve.device),
                              .peak = curve.peak,
                              .reserved = {}});
  }
  if (report.devices.empty()) throw TraceError(std::string(kNoMemoryEvents));
  report.device = chosen_device(report.devices, question);
  report.device_name = name_of_device(graph, report.device);
  use_device_model(question, report);
  DeviceMemory memory = device_memory(graph, timeline, report.device);
  if (question.step) narrow_to_step(graph, *question.step, memory, report);
  report.from = memory.from, report.to = memory.to;
  report.unnamed = memory.unnamed;
  for (const auto& span : memory.steps) {
    report.step_begins.push_back(
        {graph.steps()[static_cast<std::size_t>(span.step)].name, span.begin});
  }
  describe_occupation(memory, question, report);
  describe_lifetimes(memory, report);
  describe_growth(memory, question, report);
  describe_intervals(memory, question, report);
  describe_pool(memory, report);
  note_missing_data(memory, report);
  for (const TimedBlock& block : memory.blocks) {
    if (block.freed >= memory.from && block.made <= memory.to) report.timed_blocks.push_back(block);
  }
  report.blocks = std::ssize(report.timed_blocks);
  return report;
}

}  // namespace foretrace
