#include "foretrace/question/kernels.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analysis/place/call_site.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "infer/device/op_shapes.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "job/step_cost.h"
#include "machine/operation_rates.h"

namespace foretrace {
namespace {

/// The arithmetic of a kernel, by its name, and the bytes of its values. Has no name if that of the
/// kernel does not say, as with those that Triton compiles.
struct KernelArithmetic {
  Arithmetic kind = Arithmetic::fp32;
  std::string_view name = {};
  double value_bytes = 4;
  bool is_known() const { return !name.empty(); }
};

KernelArithmetic arithmetic_of(std::string_view name) {
  const KernelClass kernel = classify_kernel(name);
  if (kernel.double_precision) return {Arithmetic::fp64, "fp64", 8};
  if (kernel.narrow) return {Arithmetic::fp8, "8 bits", 1};
  if (kernel.half_precision) return {Arithmetic::half, "16 bits", 2};
  if (kernel.tensor_cores) return {Arithmetic::tf32, "tf32", 4};
  for (const std::string_view word : {"float", "f32", "fp32", "sgemm", "scudnn"}) {
    if (name.find(word) != name.npos) return {Arithmetic::fp32, "fp32", 4};
  }
  return {};
}

/// The number of values that a kernel of an op reads. The gradients of a convolution have only the
/// first input in common.
double values_read(std::string_view op, std::string_view shapes) {
  double all = 0;
  for (const infer_detail::Shape& shape : infer_detail::read_shapes(shapes)) {
    all += shape.empty() ? 0 : infer_detail::product(shape);
    if (op == "aten::convolution_backward") break;
  }
  return all;
}

/// Sets what the device's peaks say about a row.
void compare_with_peaks(const DeviceModel& device, KernelRow& row) {
  const KernelArithmetic arithmetic = arithmetic_of(row.kernel);
  row.arithmetic = arithmetic.name;
  if (row.flops <= 0 || row.each.count() <= 0 || !arithmetic.is_known()) return;
  row.peak_flops = peak_of(device, arithmetic.kind).flops_per_second;
  if (row.peak_flops <= 0 || device.memory_bandwidth.bytes_per_second <= 0) return;
  const double read = values_read(row.op, row.shapes) * arithmetic.value_bytes;
  const double least =
      std::max(row.flops / row.peak_flops, read / device.memory_bandwidth.bytes_per_second);
  row.of_roofline = least / (static_cast<double>(row.each.count()) * 1e-9);
}

bool computes(std::string_view kernel) {
  return classify_kernel(kernel).bound == Boundness::compute;
}

/// Finds the device whose peaks are used; nullptr if it is not known.
const DeviceModel* device_of(const Graph& graph, const std::string& machine, DeviceModel& named) {
  if (!machine.empty()) {
    named = find_device(machine);
    return &named;
  }
  for (const std::string& recorded : graph.device_names())
    if (!recorded.empty()) return device_recorded_as(recorded);
  return nullptr;
}

/// Adds up the kernels of an average step, by op, shapes and name.
std::vector<KernelRow> rows_of(const Graph& graph, const Trace& trace, KernelReport& report) {
  const CallSites sites(trace, graph);
  const MeasuredSteps steps = measured_steps(graph);
  report.has_steps = !steps.all;
  const auto count = static_cast<double>(std::max<std::int64_t>(steps.count, 1));
  struct Sum {
    std::int64_t count = 0;
    Nanoseconds time{0};
    double flops = 0;
  };
  std::map<std::tuple<std::string_view, std::string_view, NameId>, Sum> sums;
  std::map<std::pair<std::string_view, std::string_view>, OtherWork> other;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel || !steps.has(task)) continue;
    const CallSites::ShapedOp op = sites.shaped_op(TaskId{i});
    Sum& sum = sums[{op.name, op.shapes, task.name}];
    ++sum.count, sum.time += task.duration, sum.flops += task.flops;
    const auto [known, is_new] = other.try_emplace({op.name, op.shapes});
    const OtherWork work = other_work(op.name, op.shapes, op.values);
    if (is_new) known->second = work;
    if (known->second.flops != work.flops) known->second.flops = 0;  // Not all are causal.
  }
  std::vector<KernelRow> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [op, shapes, name] = key;
    KernelRow& row = rows.emplace_back();
    row.op = op, row.shapes = shapes, row.kernel = graph.names()[name];
    row.count = static_cast<double>(sum.count) / count;
    row.time = scaled(sum.time, 1 / count);
    row.each = sum.time / sum.count;
    row.flops = sum.flops / static_cast<double>(sum.count);
  }
  std::ranges::stable_sort(rows, std::greater(), &KernelRow::each);
  for (KernelRow& row : rows) {
    OtherWork& work = other[{row.op, row.shapes}];
    if (!(work.flops > 0) || work.kernels == 0 || !computes(row.kernel)) continue;
    row.flops = work.flops, --work.kernels;
  }
  return rows;
}

}  // namespace

KernelReport measure_kernels(const std::string& path, const std::string& machine,
                             const ImportOptions& reading) {
  const JobRanks job = read_job(path, {.reading = reading, .keep_traces = true, .memory = false});
  if (job.has_snapshots())
    throw TraceError(path + ": must be a trace with times, but is a memory snapshot");
  SlowestRank slowest;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Inference& inference = job.ranks[i].inference;
    slowest.consider(i, step_times(inference.graph, inference.recorded).step_time);
  }
  const Rank& rank = job.ranks[slowest.rank()];
  const Graph& graph = rank.inference.graph;
  KernelReport report;
  report.trace = path, report.rank = rank.number, report.ranks = std::ssize(job.ranks);
  report.rows = rows_of(graph, *rank.trace, report);
  if (report.rows.empty()) throw TraceError(path + ": has no kernels in its steps");
  DeviceModel named;
  const DeviceModel* const device = device_of(graph, machine, named);
  if (device != nullptr) report.device = device->name;
  double least = 0;
  for (KernelRow& row : report.rows) {
    report.all += row.time;
    compare_with_peaks(device ? *device : DeviceModel{}, row);
    if (row.of_roofline > 1) ++report.impossible;
    if (row.of_roofline <= 0 || row.of_roofline > 1) continue;
    report.known += row.time;
    least += row.of_roofline * static_cast<double>(row.time.count());
  }
  if (report.known.count() > 0)
    report.of_roofline = least / static_cast<double>(report.known.count());
  std::ranges::stable_sort(report.rows, [](const KernelRow& a, const KernelRow& b) {
    return std::pair(a.lost(), a.time) > std::pair(b.lost(), b.time);
  });
  return report;
}

}  // namespace foretrace
