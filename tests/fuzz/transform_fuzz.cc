// Any transforms with any settings, one after another, on a small training run with memory blocks
// and with contradictory parts: an Error that names a setting, or a graph that can be replayed,
// with memory that adds up and reports that can be written.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/allocator.h"
#include "foretrace/answer/memory.h"
#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "fuzz/drawn_transform.h"
#include "fuzz/supply.h"

namespace {

using namespace foretrace;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr const char* kKernels[] = {"gemm",
                                    "cudnn_convolve_sgemm",
                                    "batch_norm_collect_statistics",
                                    "vectorized_elementwise_kernel relu",
                                    "softmax_warp_forward",
                                    "nchwToNhwcKernel",
                                    "max_pool_forward",
                                    "vectorized_elementwise_kernel add",
                                    "triton_poi_fused_0",
                                    "multi_tensor_apply_kernel",
                                    "dropout",
                                    "Memset (Device)"};
constexpr const char* kOps[] = {"aten::conv2d", "aten::relu",    "aten::batch_norm",
                                "aten::linear", "aten::softmax", ""};

/// Writes a program in the order in which it runs: no task waits for a later one, so there is no
/// cycle.
class Program {
 public:
  explicit Program(Supply& supply) : supply_(supply) {}

  Graph write() {
    add_lanes();
    const std::uint32_t steps = 1 + supply_.below(3);
    layers_ = 1 + supply_.below(5);
    for (std::uint32_t i = 0; i < steps; ++i) add_step(static_cast<std::int32_t>(i));
    add_odd();
    if (supply_.below(2) == 0)
      graph_.initial_memory() = {Bytes{supply_.next() * 1000}, Bytes{1000}};
    if (supply_.below(4) != 0) graph_.device_names() = {"Tesla V100-SXM2-16GB", ""};
    return std::move(graph_);
  }

 private:
  void add_lanes() {
    main_ = graph_.add_lane({.name = "main", .kind = LaneKind::host_thread});
    engine_ = supply_.below(2) == 0
                  ? main_
                  : graph_.add_lane({.name = "engine", .kind = LaneKind::host_thread});
    stream_ = graph_.add_lane({.name = "stream 7", .kind = LaneKind::stream, .device = 0});
    other_ = graph_.add_lane(
        {.name = "stream 20", .device = static_cast<std::int32_t>(supply_.below(2))});
  }

  Nanoseconds time() { return Nanoseconds(supply_.next() * (supply_.below(3) == 0 ? 1000 : 100)); }
  Bytes size() {
    constexpr std::int64_t kSizes[] = {
        0, 1, 512, 4096, 100'000, 1 << 20, 3 << 20, 20 << 20, 1'000'000, std::int64_t{1} << 40};
    return Bytes{supply_.one_of(kSizes)};
  }

  Task task(TaskKind kind, std::string_view name) {
    Task made{.duration = time(), .name = graph_.names().intern(name), .kind = kind};
    made.step = step_, made.layer = layer_, made.phase = phase_;
    if (layer_ >= 0) made.module = graph_.names().intern("Net_0/Layer_" + std::to_string(layer_));
    if (supply_.once_in(16)) made.step = -1;
    if (supply_.once_in(16)) made.layer = static_cast<std::int32_t>(supply_.below(6)) - 1;
    if (supply_.once_in(16)) made.phase = static_cast<Phase>(supply_.below(5));
    if (supply_.once_in(16)) made.gap = time();
    if (supply_.once_in(16)) made.tail = TailShare::nearest(0.01 * supply_.below(101));
    return made;
  }

  void wait(TaskId before, TaskId after, const char* why) {
    if (supply_.once_in(24)) return;
    Dependency wait{
        .before = before, .after = after, .why = wait_reason_named(graph_.names(), why)};
    if (supply_.once_in(8)) wait.lag = time();
    if (supply_.once_in(8)) wait.tail = TailShare::nearest(0.01 * supply_.below(101));
    if (supply_.once_in(8)) wait.anchor = Anchor::start;
    graph_.add(wait);
  }

  TaskId launched(LaneId host, TaskKind kind, std::string_view name) {
    if (supply_.below(3) == 0) graph_.append(host, task(TaskKind::host, "aten::op"));
    last_launch_ = graph_.append(host, task(TaskKind::launch, "cudaLaunchKernel"));
    Task work = task(kind, name);
    if (kind != TaskKind::kernel) work.bytes = size();
    if (supply_.below(3) == 0) work.flops = 1e6 * supply_.next();
    const TaskId id = graph_.append(supply_.once_in(12) ? other_ : stream_, work);
    wait(last_launch_, id, "launch");
    return id;
  }

  void block(TaskId made, TaskId freed, MemoryUse use) {
    Allocation one{.bytes = size(), .made_by = made, .freed_by = freed, .use = use};
    if (supply_.once_in(8)) one.made_by = kNoTask;
    if (supply_.once_in(8)) one.freed_by = kNoTask;
    if (supply_.once_in(12)) one.device = static_cast<std::int32_t>(supply_.below(3)) - 1;
    if (supply_.once_in(12)) one.use = static_cast<MemoryUse>(supply_.below(8));
    if (supply_.once_in(8)) one.made_after = time();
    if (supply_.once_in(4)) one.requested = Bytes{one.bytes.count - one.bytes.count / 3};
    one.made_order = order_++, one.freed_order = order_ + supply_.below(64);
    one.op = graph_.names().intern(supply_.one_of(kOps));
    one.stack = graph_.names().intern(supply_.below(2) == 0 ? "model.py:12 forward" : "");
    graph_.allocations().push_back(one);
  }
  void touch(std::uint32_t block, TaskId task, bool writes) {
    if (supply_.once_in(16)) return;
    graph_.accesses().push_back({.allocation = block, .task = task, .writes = writes});
  }
  std::uint32_t last_block() const {
    return static_cast<std::uint32_t>(graph_.allocations().size() - 1);
  }

  void add_step(std::int32_t step) {
    graph_.steps().push_back({"ProfilerStep#" + std::to_string(step)});
    step_ = step, layer_ = -1, phase_ = Phase::input;
    graph_.append(main_, task(TaskKind::input, "enumerate(DataLoader)#next"));
    const TaskId copy = launched(main_, TaskKind::copy_in, "Memcpy HtoD (Pageable -> Device)");
    const TaskId copy_call = last_launch_;
    add_forward(copy);
    add_backward();
    step_ = step, layer_ = -1, phase_ = Phase::update;
    const TaskId update = launched(main_, TaskKind::kernel, "multi_tensor_apply_kernel");
    for (const std::uint32_t gradient : gradients_) touch(gradient, update, true);
    block(copy_call, last_launch_, MemoryUse::input);
    touch(last_block(), copy, true);
    if (supply_.below(2) == 0) {
      phase_ = Phase::none;
      const TaskId out = launched(main_, TaskKind::copy_out, "Memcpy DtoH");
      wait(out, graph_.append(main_, task(TaskKind::sync, "cudaStreamSynchronize")), "sync");
    }
  }

  void add_forward(TaskId input) {
    phase_ = Phase::forward;
    kept_.clear();
    TaskId last = input;
    for (layer_ = 0; layer_ < static_cast<std::int32_t>(layers_); ++layer_) {
      const TaskId kernel = launched(main_, TaskKind::kernel, supply_.one_of(kKernels));
      kept_.push_back({kernel, last_launch_, last});
      last = kernel;
    }
  }

  void add_backward() {
    phase_ = Phase::backward;
    gradients_.clear();
    const auto first = static_cast<std::uint32_t>(graph_.allocations().size());
    for (const Kept& kept : kept_) {
      block(kept.launch, kNoTask, MemoryUse::activation);
      touch(last_block(), kept.kernel, true);
    }
    for (std::size_t i = kept_.size(); i-- > 0;) {
      layer_ = static_cast<std::int32_t>(i);
      if (i > 0) touch(first + static_cast<std::uint32_t>(i - 1), kept_[i].kernel, false);
      const TaskId kernel = launched(engine_, TaskKind::kernel, supply_.one_of(kKernels));
      touch(first + static_cast<std::uint32_t>(i), kernel, false);
      if (supply_.below(8) != 0) graph_.allocations()[first + i].freed_by = last_launch_;
      block(last_launch_, kNoTask, MemoryUse::gradient);
      touch(last_block(), kernel, true);
      gradients_.push_back(last_block());
    }
    if (supply_.once_in(3)) launched(engine_, TaskKind::collective, "ncclDevKernel_AllReduce");
  }

  /// Adds things that no program does, but that a file may claim.
  void add_odd() {
    const std::size_t tasks = graph_.task_count();
    while (supply_.once_in(2)) {
      const TaskId one{supply_.next() % static_cast<std::uint32_t>(tasks)};
      const TaskId two{supply_.next() % static_cast<std::uint32_t>(tasks)};
      if (graph_.removed(one)) continue;
      switch (supply_.below(4)) {
        case 0:
          graph_.remove(one);
          break;
        case 1:
          if (one < two) wait(one, two, "event wait");
          break;
        case 2:
          block(one, two, static_cast<MemoryUse>(supply_.below(8)));
          touch(last_block(), two, supply_.below(2) == 0);
          break;
        default:
          touch(last_block(), one, supply_.below(2) == 0);
      }
    }
  }

  struct Kept {
    TaskId kernel, launch, input;
  };
  Supply& supply_;
  Graph graph_;
  LaneId main_{}, engine_{}, stream_{}, other_{};
  std::uint32_t layers_ = 1, order_ = 1;
  std::int32_t step_ = -1, layer_ = -1;
  Phase phase_ = Phase::none;
  TaskId last_launch_ = kNoTask;
  std::vector<Kept> kept_;
  std::vector<std::uint32_t> gradients_;
};

void check_memory(const Graph& graph, const Timeline& timeline) {
  for (const MemoryCurve& curve : timeline.memory) {
    for (const MemoryCurve::Point& point : curve.points) require(point.allocated >= Bytes{});
  }
  AllocatorSettings settings;
  settings.limit = Bytes{30 << 20};
  for (const AllocatorSettings& one : {AllocatorSettings{}, settings}) {
    for (const AllocatorRun& run : replay_allocator(graph, timeline, one)) {
      require(run.peaks.reserved >= run.peaks.active);
    }
  }
}

void write_reports(const Graph& graph, const Timeline& timeline) {
  step_times(graph, timeline);
  breakdown(graph, timeline);
  input_stalls(graph, timeline);
  MemoryQuestion question;
  question.out = question.in = Bandwidth{12e9};
  const MemoryReport report = describe_memory(graph, timeline, question);
  std::ostringstream out;
  write_text(document_of(report), out);
  write_memory_html(report, graph, out);
  to_json(report).dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Supply supply(data, size);
  try {
    // Transforms are drawn first: when the bytes are used up, the program becomes a plain one, but
    // the settings would all be the same.
    std::vector<std::unique_ptr<Transform>> steps;
    for (std::uint32_t i = 1 + supply.below(3); i > 0; --i)
      steps.push_back(drawn_transform(supply).transform);
    Graph graph = Program(supply).write();
    const Graph donor = Program(supply).write();
    for (const auto& step : steps) step->apply(graph, {.donor = &donor});
    const Timeline timeline = simulate(graph);
    check_memory(graph, timeline);
    write_reports(graph, timeline);
  } catch (const Error&) {
  }
  return 0;
}
