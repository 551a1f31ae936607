// Finds what torch.autocast would change in the work of ops whose shapes were recorded: the types
// of what the outermost ATen ops read and make (autocast_types.h) say which conversions it adds,
// and how much of what their kernels move becomes narrow, in the forward pass and, by the numbers
// that autograd gives them, in the backward pass.
//
// GPT-2 small and medium, BERT-base and ResNet-50 (traces/ground_truth.json) convert 270, 534, 278
// and 113 times a step under autocast; their recordings in FP32 and TF32 say so exactly.

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "infer/device/autocast_types.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Gradients that are added: of several readers of a value, or of several backward passes.
enum class Sums : std::uint8_t { none, of_readers, of_steps };

class AutocastFlow {
 public:
  AutocastFlow(const Records& records, const std::vector<Context>& contexts)
      : records_(records), trace_(records.trace), contexts_(contexts), types_(records.trace) {}

  std::vector<AutocastWork> find() {
    read_forward();
    if (types_.ops().empty()) return {};
    read_backward();
    std::vector<AutocastWork> found = narrowed_kernels();
    drop_frozen_weights();
    place_casts(kForward, 1);
    place_casts(kBackward, -1);
    for (const AutocastOp& op : types_.ops()) {
      for (const AutocastPass pass : {kForward, kBackward})
        add_casts(op.first[pass], op.casts[pass], found);
    }
    return merged(std::move(found));
  }

 private:
  static constexpr std::size_t kFar = 16;  ///< Ops between an op and its kernel; chosen.

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
        outermost_[i] = static_cast<std::uint32_t>(types_.ops().size());
        types_.read(trace_.hosts[context.op], *details);
      }
      if (outermost_[i] != kNone && details->sequence >= 0)
        forward_of_[details->sequence] = outermost_[i];
    }
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
      ++types_.ops()[node_[number]].products;
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

  /// Returns the share of what a kernel moves that becomes narrow. The kernel becomes the first of
  /// its op if it starts before others.
  float narrow_share(const DeviceEvent& event, std::uint32_t context) {
    const AutocastPass pass = outermost_[context] != kNone ? kForward : kBackward;
    const std::uint32_t number = pass == kForward ? outermost_[context] : node_[context];
    const Sums sums = pass == kForward ? Sums::none : sums_[context];
    if (number == kNone) return sums == Sums::of_steps ? 0 : 1;
    AutocastOp& op = types_.ops()[number];
    if (op.first[pass] == kNoTask || event.start < op.first_start[pass])
      op.first[pass] = event.task, op.first_start[pass] = event.start;
    if (sums == Sums::of_steps) return 0;
    return sums == Sums::of_readers ? op.narrow_sums : op.narrow;
  }

  /// An op with a gradient of its input and one product in its backward pass has none of its
  /// weights, and neither has one without a backward pass.
  void drop_frozen_weights() {
    for (AutocastOp& op : types_.ops()) {
      const bool frozen = op.products == 1 && op.has_gradient;
      if (!frozen && op.first[kBackward] != kNoTask) continue;
      op.casts[kBackward].weights = 0;
      op.casts[kBackward].count -= op.weight_casts;
    }
  }

  /// Hands the conversions of ops without kernels to the next op that has some.
  void place_casts(AutocastPass pass, int direction) {
    std::vector<AutocastOp>& ops = types_.ops();
    AutocastCasts carried;
    std::size_t far = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      AutocastOp& op = ops[direction > 0 ? i : ops.size() - 1 - i];
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

  static void add_casts(TaskId task, const AutocastCasts& casts, std::vector<AutocastWork>& to) {
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
  AutocastTypes types_;
  std::vector<std::uint32_t> outermost_;  ///< For each context, the outermost ATen op around it.
  std::vector<std::uint32_t> node_;       ///< For each context, the op whose gradient it computes.
  std::vector<Sums> sums_;                ///< For each context, the gradients that it adds.
  std::unordered_map<std::int64_t, std::uint32_t> forward_of_;  ///< Ops by sequence number.
};

}  // namespace

void find_autocast_work(const Records& records, const std::vector<Context>& contexts,
                        Graph& graph) {
  graph.autocast() = AutocastFlow(records, contexts).find();
}

}  // namespace foretrace::infer_detail
