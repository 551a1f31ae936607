// The bytes of all gradients of a step, for jobs recorded without memory events. Three sources, the
// best one first:
//
//   shapes   Autograd hands each gradient to torch::autograd::AccumulateGrad. With
//            record_shapes=True their sizes add up to those of all trained parameters: exact on
//            ResNet-50, BERT, GPT-2 small and medium and an image model
//            (traces/ground_truth.json).
//   blocks   A multi-tensor kernel of the optimizer gives each block 65,536 elements of one tensor
//            (ATen/native/cuda/MultiTensorApply.cuh), so n tensors in b blocks have between
//            65,536 (b - n) and 65,536 b elements. Three quarters of n blocks are taken to be
//            empty, which is within 1.5 % on the five models; n is the number of calls of
//            AccumulateGrad.
//   time     Such a kernel does nothing but read and write. It reached 60 to 79 % of the memory
//            bandwidth of an H100 on the five models, the small ones the least.
//
// A functor counts only if it reads each parameter exactly once in a step. SGD multiplies each
// momentum by a number once; without momentum, it adds each gradient to its parameter in place
// once, while a weight decay is added elsewhere. Other optimizers, clipping and averages do the
// same, so that these count only in updates of a job whose only optimizer is SGD. Gradients have
// the type of those kernels or calls.

#include <algorithm>
#include <array>
#include <map>

#include "foretrace/machine.h"
#include "infer/device/op_shapes.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

constexpr double kChunk = 65536;              ///< Elements of a block.
constexpr std::uint16_t kChunkThreads = 512;  ///< Of a block of PyTorch's own kernels.
constexpr double kEmptyShare = 0.75;          ///< Of the last block of a tensor. See above.
constexpr double kBandwidthShare = 0.75;      ///< Reached by the kernels. See above.
constexpr double kMinOfTime = 0.7, kMaxOfTime = 1.15;  ///< The truth, relative to the estimate.

/// Functors of multi-tensor kernels, and how often they read or write each element.
struct Functor {
  std::string_view name, lists;  ///< Both are parts of the kernel's name.
  double accesses;
  bool of_sgd = false;
};
constexpr std::array kOncePerStep = {
    Functor{"FusedAdamMathFunctor", "", 7}, Functor{"UnaryOpFunctor", "", 2},
    Functor{"BinaryOpScalarFunctor", "", 2, true},
    Functor{"BinaryOpListAlphaFunctor", "TensorListMetadata<2>", 3, true}};

/// Bytes of an element of the type whose name is in a text: ["float"], or the name of a kernel.
double bytes_named_in(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  if (has("double")) return 8;
  return has("BFloat16") || has("Half") || has("__half") ? 2 : 4;
}

/// Sizes in order of time, by step.
using Sizes = std::map<std::int32_t, std::vector<double>>;

/// The sum of a step that most steps have; of several, the largest.
double usual_sum(const Sizes& sizes) {
  std::map<double, int> counts;
  for (const auto& [step, all] : sizes) {
    double sum = 0;
    for (const double one : all) sum += one;
    ++counts[sum];
  }
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
      });
  return usual == counts.end() ? 0 : usual->first;
}

struct Handed {
  std::int64_t at = 0;
  double bytes = 0;
};

class Estimator {
 public:
  Estimator(const Program& program, const Graph& graph)
      : records_(program.records), steps_(program.steps), graph_(graph) {
    for (const std::vector<Segment>& thread : program.host.segments) {
      for (const Segment& segment : thread) {
        if (segment.context != kNone &&
            program.host.contexts[segment.context].phase == Phase::forward)
          forward_.push_back(segment.start);
      }
    }
    std::ranges::sort(forward_);
  }

  GradientEstimate estimate() {
    read_calls();
    if (const double bytes = usual_sum(handed_); bytes > 0)
      return made(bytes, bytes, bytes, "the shapes of gradients that autograd accumulates");
    for (const Functor& functor : kOncePerStep) {
      if (functor.of_sgd && !only_sgd()) continue;
      if (GradientEstimate found = from_kernels(functor); found.bytes > Bytes{}) return found;
    }
    return {};
  }

 private:
  static GradientEstimate made(double bytes, double lower, double upper, std::string source) {
    const auto whole = [](double count) { return Bytes{static_cast<std::int64_t>(count)}; };
    return {whole(bytes), whole(lower), whole(upper), std::move(source)};
  }

  /// Whether PyTorch's annotations of updates name SGD and nothing else.
  bool only_sgd() const {
    constexpr std::string_view kUpdate = "Optimizer.step#", kSgd = "Optimizer.step#SGD.";
    bool found = false;
    for (const HostRecord& record : records_.trace.hosts) {
      const std::string_view name = records_.name(record);
      if (!name.starts_with(kUpdate)) continue;
      if (!name.starts_with(kSgd)) return false;
      found = true;
    }
    return found;
  }

  void read_calls() {
    const Trace& trace = records_.trace;
    std::map<std::int32_t, std::vector<Handed>> handed;
    for (const HostRecord& record : trace.hosts) {
      if (records_.name(record) != "torch::autograd::AccumulateGrad") continue;
      const std::int32_t step = steps_.at(record.start_ns);
      calls_[step].push_back(1);
      if (record.details == kNone) continue;
      const OpDetails& details = trace.op_details[record.details];
      const std::vector<Shape> shapes = read_shapes(trace.names[details.shapes]);
      if (shapes.empty() || shapes.front().empty()) continue;
      handed[step].push_back(
          {record.start_ns, product(shapes.front()) * bytes_named_in(trace.names[details.types])});
    }
    // Work outside of steps counts only where there are none.
    if (calls_.size() > 1) calls_.erase(-1);
    if (handed.size() > 1) handed.erase(-1);
    for (auto& [step, all] : handed) {
      std::ranges::sort(all, {}, &Handed::at);
      for (std::size_t i = 0; i < length_of_batch(all); ++i) handed_[step].push_back(all[i].bytes);
    }
  }

  /// Number of gradients of one micro-batch: all hand over the same ones, each behind a forward
  /// pass of its own.
  std::size_t length_of_batch(const std::vector<Handed>& all) const {
    for (std::size_t length = 1; length <= all.size() / 2; ++length) {
      const auto behind = all.begin() + static_cast<std::ptrdiff_t>(length);
      if (all.size() % length == 0 &&
          std::equal(behind, all.end(), all.begin(),
                     [](const Handed& a, const Handed& b) { return a.bytes == b.bytes; }) &&
          has_forward_between(all[length - 1].at, behind->at))
        return length;
    }
    return all.size();
  }

  bool has_forward_between(std::int64_t from, std::int64_t to) const {
    const auto next = std::ranges::lower_bound(forward_, from);
    return next != forward_.end() && *next < to;
  }

  static bool is_call_of(const Functor& functor, const DeviceEvent& event, std::string_view name) {
    if (functor.of_sgd && event.phase != Phase::update) return false;
    const auto has = [&](std::string_view word) { return name.find(word) != name.npos; };
    return has("multi_tensor_apply") && has(functor.name) && has(functor.lists);
  }

  GradientEstimate from_kernels(const Functor& functor) const {
    Sizes blocks, times;
    double element = 0;
    bool has_chunks = true;
    for (const DeviceEvent& event : records_.events) {
      const DeviceRecord& record = records_.trace.devices[event.record];
      const std::string_view name = records_.trace.names[record.name];
      if (event.step < 0 || !is_call_of(functor, event, name)) continue;
      element = bytes_named_in(name);
      has_chunks = has_chunks && record.grid > 0 && record.block == kChunkThreads;
      blocks[event.step].push_back(record.grid);
      times[event.step].push_back(static_cast<double>(record.duration_ns) * 1e-9);
    }
    if (times.empty()) return {};
    const double tensors = usual_sum(calls_), chunks = usual_sum(blocks);
    if (has_chunks && tensors > 0 && chunks > tensors) {
      const double each = kChunk * element;
      return made(each * (chunks - kEmptyShare * tensors), each * (chunks - tensors), each * chunks,
                  "the blocks of the optimizer's kernels");
    }
    return from_time(functor, median_sum(times), element);
  }

  GradientEstimate from_time(const Functor& functor, double seconds, double element) const {
    for (const std::string& name : graph_.device_names()) {
      const DeviceModel* const device = device_recorded_as(name);
      if (device == nullptr) continue;
      const double moved = seconds * device->memory_bandwidth.bytes_per_second * kBandwidthShare;
      const double elements = moved / (functor.accesses * element);
      return made(elements * element, elements * element * kMinOfTime,
                  elements * element * kMaxOfTime, "the time of the optimizer's kernels");
    }
    return {};
  }

  static double median_sum(const Sizes& sizes) {
    std::vector<double> sums;
    for (const auto& [step, all] : sizes) {
      double sum = 0;
      for (const double one : all) sum += one;
      sums.push_back(sum);
    }
    std::sort(sums.begin(), sums.end());
    return sums[sums.size() / 2];
  }

  const Records& records_;
  const Steps& steps_;
  const Graph& graph_;
  std::vector<std::int64_t> forward_;  ///< Starts of forward work on the host, sorted.
  Sizes calls_, handed_;               ///< Calls of AccumulateGrad, and the bytes of what they get.
};

}  // namespace

void estimate_gradients(const Program& program, Graph& graph) {
  graph.gradient_estimate() = Estimator(program, graph).estimate();
}

}  // namespace foretrace::infer_detail
