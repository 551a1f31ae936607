// What torch.autocast would change in the work of ops whose shapes were recorded. Its lists
// (graph/ops.h) decide by the outermost ATen op:
//
//     half     FP32 inputs are converted first, weights as well
//     full     inputs in half precision are converted first
//     others   nothing is converted; in FP32 if one of the inputs is
//
// In the backward pass gradients have the types of their values: what was converted is converted
// back, except inputs of the model and frozen weights, which have no gradient. Where an op has
// inputs of both types, the gradients of those in half precision are converted to it.
//
// Recordings do not name tensors. An input is the newest result with as many elements, or a part of
// the newest larger one that was split. A second input of the same size is one that nothing has
// read yet, such as the gate of a gated layer, or else the residual stream: the newest result of
// two such inputs. Tensors that no op made are in FP32: weights, and inputs of the model.
//
// GPT-2 small and medium, BERT-base and ResNet-50 (traces/ground_truth.json) convert 270, 534, 278
// and 113 times a step under autocast; their recordings in FP32 and TF32 say so exactly.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ops.h"
#include "infer/device/op_shapes.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Ops that hand on their input in another shape.
constexpr std::array<std::string_view, 17> kViews = {
    "view",    "unsafe_view", "reshape", "permute",   "transpose", "t",
    "squeeze", "unsqueeze",   "flatten", "unflatten", "detach",    "as_strided",
    "alias",   "contiguous",  "expand",  "expand_as", "view_as"};
/// Ops that hand on parts of their input.
constexpr std::array<std::string_view, 10> kSplits = {
    "split", "split_with_sizes", "chunk", "tensor_split", "unbind", "select",
    "slice", "narrow",           "index", "index_select"};
/// Ops whose result has another size than their inputs, which their shapes do not tell.
constexpr std::array<std::string_view, 14> kResized = {"cat",
                                                       "stack",
                                                       "mean",
                                                       "sum",
                                                       "max_pool2d",
                                                       "avg_pool2d",
                                                       "interpolate",
                                                       "adaptive_avg_pool2d",
                                                       "repeat",
                                                       "repeat_interleave",
                                                       "pad",
                                                       "unfold",
                                                       "upsample_nearest2d",
                                                       "amax"};

/// Something that an op reads.
struct Input {
  Shape shape;
  double elements = 0;
  bool half = false;  ///< As recorded.
};

/// The floating-point inputs of an op with their places among its arguments.
using Inputs = std::vector<std::pair<std::size_t, Input>>;

struct Casts {
  std::uint32_t count = 0;
  double weights = 0, elements = 0;

  void of_weight(double size) { ++count, weights += size; }
  void of_value(double size) { ++count, elements += size; }
  void add(const Casts& other) {
    count += other.count, weights += other.weights, elements += other.elements;
  }
};

enum Pass : std::uint8_t { kForward, kBackward };
/// Gradients that are added: of several readers of a value, or of several backward passes.
enum class Sums : std::uint8_t { none, of_readers, of_steps };

/// An outermost op of the forward pass.
struct Op {
  float narrow = 1;
  float narrow_sums = 1;  ///< Of the sums of its input's gradients.
  std::array<Casts, 2> casts{};
  std::array<TaskId, 2> first = {kNoTask, kNoTask};  ///< Its first kernels.
  std::array<std::int64_t, 2> first_start{};
  std::uint32_t weight_casts = 0;
  std::uint32_t products = 0;  ///< Matrix products of its backward pass.
  bool has_gradient = false;   ///< Of an input other than weights.
};

class AutocastFlow {
 public:
  AutocastFlow(const Records& records, const std::vector<Context>& contexts)
      : records_(records), trace_(records.trace), contexts_(contexts) {}

  std::vector<AutocastWork> find() {
    read_forward();
    if (ops_.empty()) return {};
    read_backward();
    std::vector<AutocastWork> found = narrowed_kernels();
    drop_frozen_weights();
    place_casts(kForward, 1);
    place_casts(kBackward, -1);
    for (const Op& op : ops_) {
      for (const Pass pass : {kForward, kBackward})
        add_casts(op.first[pass], op.casts[pass], found);
    }
    return merged(std::move(found));
  }

 private:
  /// A tensor that an op made.
  struct Result {
    double elements = 0;  ///< 0: unknown.
    bool half = false;
    bool split = false;   ///< Stands for parts of `elements`.
    bool joined = false;  ///< Made of two tensors of this size.
    bool read = false;
    std::uint32_t op = kNone;
  };
  static constexpr std::size_t kNoResult = static_cast<std::size_t>(-1);
  static constexpr std::size_t kKept = 256;  ///< Results that are searched at most; chosen.
  static constexpr double kParts = 64;       ///< That a result is split into at most; chosen.
  static constexpr std::size_t kFar = 16;    ///< Ops between an op and its kernel; chosen.

  std::string_view name_of(std::uint32_t record) const {
    return trace_.names[trace_.hosts[record].name];
  }
  const OpDetails* details_of(std::uint32_t record) const {
    const std::uint32_t details = trace_.hosts[record].details;
    return details == kNone ? nullptr : &trace_.op_details[details];
  }

  /// Whether the context is that of an op, rather than inside of one.
  bool begins_op(const Context& context) const {
    return context.op != kNone &&
           (context.parent == kNone || contexts_[context.parent].op != context.op);
  }

  void read_forward() {
    outermost_.assign(contexts_.size(), kNone);
    std::uint32_t thread = kNone;
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      const Context& context = contexts_[i];
      if (context.op == kNone || context.phase == Phase::update) continue;
      if (context.parent != kNone) outermost_[i] = outermost_[context.parent];
      if (!begins_op(context)) continue;
      const OpDetails* const details = details_of(context.op);
      if (details == nullptr) continue;
      // A backward pass records no numbers for ATen's ops, except where it computes again.
      const bool computes = context.phase != Phase::backward || details->sequence >= 0;
      if (outermost_[i] == kNone && computes && name_of(context.op).starts_with("aten::")) {
        if (trace_.hosts[context.op].thread != thread) results_.clear();
        thread = trace_.hosts[context.op].thread;
        outermost_[i] = static_cast<std::uint32_t>(ops_.size());
        ops_.emplace_back();
        read(context.op, *details);
      }
      if (outermost_[i] != kNone && details->sequence >= 0)
        forward_of_[details->sequence] = outermost_[i];
    }
  }

  const Inputs& inputs_of(const OpDetails& details) {
    const auto [found, added] =
        inputs_.try_emplace(std::uint64_t{static_cast<std::uint32_t>(details.shapes)} << 32 |
                            static_cast<std::uint32_t>(details.types));
    if (!added) return found->second;
    const std::vector<Shape> shapes = read_shapes(trace_.names[details.shapes]);
    const std::vector<std::string_view> types = read_texts(trace_.names[details.types]);
    for (std::size_t i = 0; i < std::min(shapes.size(), types.size()); ++i) {
      const bool half = types[i].ends_with("Half") || types[i].ends_with("BFloat16");
      if (shapes[i].empty() || !(half || types[i] == "float")) continue;
      const double elements = product(shapes[i]);
      if (elements > 0 && elements < 1e15)
        found->second.push_back({i, {shapes[i], elements, half}});
    }
    return found->second;
  }

  void read(std::uint32_t record, const OpDetails& details) {
    const Inputs& inputs = inputs_of(details);
    if (inputs.empty()) return;
    const std::string_view name = name_of(record), bare = bare_op_name(name);
    if (is_one_of(kViews, bare)) return read_view(inputs);
    if (is_one_of(kSplits, bare)) return read_split(inputs);
    if (bare == "to" || bare == "to_copy")
      return convert(inputs, value_at(trace_.names[details.values], 1));
    switch (autocast_list_of(name)) {
      case AutocastList::half:
        return read_half(inputs, bare);
      case AutocastList::full:
      case AutocastList::full_kept:
        return read_full(inputs, bare);
      case AutocastList::other:
        return read_other(inputs, bare, name.ends_with('_'));
    }
  }

  Op& op() { return ops_.back(); }

  void add_result(double elements, bool half, bool split = false, bool joined = false) {
    if (results_.size() >= 2 * kKept) results_.erase(results_.begin(), results_.begin() + kKept);
    results_.push_back({.elements = elements,
                        .half = half,
                        .split = split,
                        .joined = joined,
                        .op = static_cast<std::uint32_t>(ops_.size() - 1)});
  }

  static bool fits(const Result& result, double elements) {
    if (!result.split || result.elements <= elements) return result.elements == elements;
    return result.elements <= kParts * elements && std::fmod(result.elements, elements) == 0;
  }

  /// Returns the newest result of this size for which `wanted` holds.
  template <class Wanted>
  std::size_t newest(double elements, const Wanted& wanted) const {
    for (std::size_t i = results_.size(); i-- > 0;) {
      const bool unknown = results_[i].elements == 0 && i + 1 == results_.size();
      if ((unknown || fits(results_[i], elements)) && wanted(results_[i])) return i;
    }
    return kNoResult;
  }

  /// The result that is an input; see above. `other` is the one that another input of this size is.
  std::size_t result_of(double elements, std::size_t other = kNoResult) const {
    if (other == kNoResult) return newest(elements, [](const Result&) { return true; });
    if (results_[other].split && results_[other].elements > elements) return other;
    const auto wanted = [&](bool Result::*is, bool value) {
      return newest(elements, [&](const Result& result) {
        return &result != &results_[other] && result.*is == value;
      });
    };
    const std::size_t unread = wanted(&Result::read, false);
    if (unread != kNoResult) return unread;
    const std::size_t stream = wanted(&Result::joined, true);
    if (stream != kNoResult) return stream;
    const auto oldest = std::ranges::find_if(
        results_, [&](const Result& result) { return fits(result, elements); });
    return oldest == results_.end() ? other : static_cast<std::size_t>(oldest - results_.begin());
  }

  /// An input with its result, and whether it would be in half precision.
  struct Read {
    const Input* input;
    std::size_t result = kNoResult;
    bool half = false;
  };

  std::vector<Read> read_all(const Inputs& inputs) {
    std::vector<Read> reads;
    for (const auto& [place, input] : inputs) {
      std::size_t other = kNoResult;
      for (const Read& read : reads) {
        if (read.input->elements == input.elements && read.result != kNoResult) other = read.result;
      }
      const std::size_t result = result_of(input.elements, other);
      const bool half = input.half || (result != kNoResult && results_[result].half);
      reads.push_back({&input, result, half});
    }
    for (const Read& read : reads) {
      if (read.result != kNoResult) results_[read.result].read = true;
    }
    return reads;
  }

  void read_view(const Inputs& inputs) {
    const double elements = inputs.front().second.elements;
    const std::size_t result = result_of(elements);
    const bool half = result != kNoResult && results_[result].half;
    op().narrow = half || inputs.front().second.half ? 1 : 0;
    if (result != kNoResult && results_[result].elements != elements) add_result(elements, half);
  }

  void read_split(const Inputs& inputs) {
    const std::vector<Read> reads = read_all(inputs);
    op().narrow = reads.front().half ? 1 : 0;
    add_result(reads.front().input->elements, reads.front().half, true);
  }

  /// aten::to(tensor, type, ...)
  void convert(const Inputs& inputs, std::string_view type) {
    constexpr std::string_view kFloat = "6", kHalf = "5", kBFloat16 = "15";
    const Read read = read_all(inputs).front();
    const bool to_half = type == kHalf || type == kBFloat16;
    const bool half = to_half || (read.half && type != kFloat);
    op().narrow = half ? 1 : 0;
    if (half == read.half) return;
    cast(read);
    add_result(read.input->elements, half);
  }

  /// Converts a value, and its gradient back.
  void cast(const Read& read) {
    op().casts[kForward].of_value(read.input->elements);
    if (read.result != kNoResult) op().casts[kBackward].of_value(read.input->elements);
  }

  void read_half(const Inputs& inputs, std::string_view bare) {
    const bool has_weights = bare == "linear" || bare == "addmm" || bare.starts_with("conv");
    const std::size_t value = bare == "addmm" ? 1 : 0;
    Inputs values;
    for (const auto& [place, input] : inputs) {
      if (has_weights ? place == value : true) values.push_back({place, input});
    }
    const std::vector<Read> reads = read_all(values);
    for (const Read& read : reads) {
      if (read.half) continue;
      op().narrow_sums = 0;
      if (!has_weights && read.result == kNoResult && &read != &reads.front()) {
        cast_weight(read.input->elements);
      } else {
        cast(read);
      }
    }
    op().has_gradient = !reads.empty() && reads.front().result != kNoResult;
    for (const auto& [place, input] : inputs) {
      if (has_weights && place != value && place <= 2 && !input.half) cast_weight(input.elements);
    }
    add_result(size_of_product(inputs, bare), true);
  }

  void cast_weight(double elements) {
    ++op().weight_casts;
    for (Casts& casts : op().casts) casts.of_weight(elements);
  }

  static double size_of_product(const Inputs& inputs, std::string_view bare) {
    const auto at = [&](std::size_t i) {
      return i < inputs.size() ? inputs[i].second.shape : Shape{1};
    };
    const auto rows = [&](std::size_t i) { return product(at(i)) / at(i).back(); };
    if (bare == "linear") return rows(0) * at(1).front();
    if (bare == "addmm" || bare == "baddbmm") return rows(1) * at(2).back();
    if (bare == "mm" || bare == "bmm" || bare == "matmul") return rows(0) * at(1).back();
    if (bare.starts_with("scaled_dot_product")) return rows(0) * at(2).back();
    return 0;
  }

  void read_full(const Inputs& inputs, std::string_view bare) {
    op().narrow = op().narrow_sums = 0;
    for (const Read& read : read_all(inputs)) {
      if (!read.half) continue;
      if (!read.input->half) cast(read);
      op().narrow_sums = 1;
    }
    if (bare.ends_with("loss")) return;
    const bool smaller = bare == "sum" || bare == "prod" || bare == "norm";
    add_result(smaller ? 0 : inputs.front().second.elements, false);
  }

  void read_other(const Inputs& inputs, std::string_view bare, bool in_place) {
    // Not promoted: the parameters and statistics of batch norms stay in FP32.
    const bool follows_first = in_place || bare.ends_with("batch_norm");
    const std::vector<Read> reads = read_all(inputs);
    const auto largest =
        std::ranges::max_element(reads, {}, [](const Read& read) { return read.input->elements; });
    bool half = std::ranges::all_of(reads, &Read::half);
    if (follows_first) half = reads.front().half;
    if (bare == "embedding") half = false;
    double narrow = half ? largest->input->elements : 0, all = largest->input->elements;
    for (const Read& read : reads) {
      all += read.input->elements;
      if (!read.half) continue;
      narrow += read.input->elements;
      // The gradient has the type of the result.
      if (!half && !read.input->half && read.result != kNoResult)
        ops_[results_[read.result].op].casts[kBackward].of_value(read.input->elements);
    }
    op().narrow = static_cast<float>(narrow / all);
    op().narrow_sums = half ? 1 : 0;
    const bool joined = std::ranges::count_if(reads, [&](const Read& read) {
                          return read.input->elements == largest->input->elements;
                        }) > 1;
    const bool resized = is_one_of(kResized, bare) || bare == "embedding";
    add_result(resized ? 0 : largest->input->elements, half, false, joined);
  }

  void read_backward() {
    node_.assign(contexts_.size(), kNone);
    sums_.assign(contexts_.size(), Sums::none);
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      const Context& context = contexts_[i];
      if (context.phase != Phase::backward || context.op == kNone) continue;
      if (context.parent != kNone)
        node_[i] = node_[context.parent], sums_[i] = sums_[context.parent];
      if (begins_op(context)) read_gradient(i);
    }
  }

  void read_gradient(std::size_t number) {
    const Context& context = contexts_[number];
    const OpDetails* const details = details_of(context.op);
    const auto found = details == nullptr ? forward_of_.end() : forward_of_.find(details->sequence);
    if (found != forward_of_.end()) node_[number] = found->second;
    const std::string_view name = name_of(context.op);
    if (name.find("AccumulateGrad") != name.npos) sums_[number] = Sums::of_steps;
    if (name == "aten::add" || name == "aten::add_") {
      // Where a value has several readers, their gradients are added outside of the nodes.
      const std::uint32_t around = context.parent == kNone ? kNone : contexts_[context.parent].op;
      if (around != kNone && name_of(around).starts_with("autograd::engine"))
        sums_[number] = Sums::of_readers;
    }
    if (node_[number] != kNone && (name == "aten::mm" || name == "aten::bmm"))
      ++ops_[node_[number]].products;
  }

  std::vector<AutocastWork> narrowed_kernels() {
    std::vector<AutocastWork> found;
    for (const DeviceEvent& event : records_.events) {
      if (event.kind != TaskKind::kernel || event.call == kNone) continue;
      const std::uint32_t context = records_.calls[event.call].context;
      if (context == kNone) continue;
      const float narrow = narrow_share(event, context);
      if (narrow < 1) found.push_back({.task = event.task, .narrow = narrow});
    }
    return found;
  }

  /// Of a kernel, which becomes the first of its op if it starts before others.
  float narrow_share(const DeviceEvent& event, std::uint32_t context) {
    const Pass pass = outermost_[context] != kNone ? kForward : kBackward;
    const std::uint32_t number = pass == kForward ? outermost_[context] : node_[context];
    const Sums sums = pass == kForward ? Sums::none : sums_[context];
    if (number == kNone) return sums == Sums::of_steps ? 0 : 1;
    Op& op = ops_[number];
    if (op.first[pass] == kNoTask || event.start < op.first_start[pass])
      op.first[pass] = event.task, op.first_start[pass] = event.start;
    if (sums == Sums::of_steps) return 0;
    return sums == Sums::of_readers ? op.narrow_sums : op.narrow;
  }

  /// An op with a gradient of its input and one product in its backward pass has none of its
  /// weights, and neither has one without a backward pass.
  void drop_frozen_weights() {
    for (Op& op : ops_) {
      const bool frozen = op.products == 1 && op.has_gradient;
      if (!frozen && op.first[kBackward] != kNoTask) continue;
      op.casts[kBackward].weights = 0;
      op.casts[kBackward].count -= op.weight_casts;
    }
  }

  /// Hands the conversions of ops without kernels to the next op that has some.
  void place_casts(Pass pass, int direction) {
    Casts carried;
    std::size_t far = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      Op& op = ops_[direction > 0 ? i : ops_.size() - 1 - i];
      if (carried.count > 0 && ++far > kFar) carried = {};
      if (op.first[pass] == kNoTask) {
        if (op.casts[pass].count > 0 && carried.count == 0) far = 0;
        carried.add(op.casts[pass]);
      } else {
        op.casts[pass].add(std::exchange(carried, {}));
        far = 0;
      }
    }
  }

  static void add_casts(TaskId task, const Casts& casts, std::vector<AutocastWork>& to) {
    constexpr double kMost = 1e18;  // No device has as much memory; chosen.
    if (task == kNoTask || casts.count == 0) return;
    to.push_back({.task = task,
                  .casts = casts.count,
                  .weights = static_cast<std::int64_t>(std::min(casts.weights, kMost)),
                  .elements = static_cast<std::int64_t>(std::min(casts.elements, kMost))});
  }

  static std::vector<AutocastWork> merged(std::vector<AutocastWork> found) {
    std::ranges::sort(found, {}, &AutocastWork::task);
    std::vector<AutocastWork> merged;
    for (const AutocastWork& work : found) {
      if (merged.empty() || merged.back().task != work.task) {
        merged.push_back(work);
        continue;
      }
      AutocastWork& same = merged.back();
      same.narrow = std::min(same.narrow, work.narrow);
      same.casts += work.casts, same.weights += work.weights, same.elements += work.elements;
    }
    return merged;
  }

  const Records& records_;
  const Trace& trace_;
  const std::vector<Context>& contexts_;
  std::vector<Op> ops_;
  std::vector<Result> results_;
  std::vector<std::uint32_t> outermost_;  ///< For each context, the outermost ATen op around it.
  std::vector<std::uint32_t> node_;       ///< For each context, the op whose gradient it computes.
  std::vector<Sums> sums_;                ///< For each context, the gradients that it adds.
  std::unordered_map<std::int64_t, std::uint32_t> forward_of_;  ///< Ops by sequence number.
  std::unordered_map<std::uint64_t, Inputs> inputs_;            ///< By the names of their texts.
};

}  // namespace

void find_autocast_work(const Records& records, const std::vector<Context>& contexts,
                        Graph& graph) {
  graph.autocast() = AutocastFlow(records, contexts).find();
}

}  // namespace foretrace::infer_detail
