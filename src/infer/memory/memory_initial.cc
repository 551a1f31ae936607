// Finds parameters that no allocator event mentions, because they existed before the recording. If
// shapes were recorded, the ops of a forward pass show them: each op that takes weights
// (convolution, linear, embedding, norms; running statistics included) has its own weights. They
// count
//
//     once        for each module with a known name; an embedding and a linear layer of the same
//                 shape, which models usually share, also count once
//     of a pass   the forward pass that takes most, because the first and the last may be cut off
//     only if     they fit into the memory in use when the recording began; if that was not
//                 recorded, only if autograd accumulates as many gradients as there are weights
//
// If no op shows its weights, the gradients that autograd adds to earlier ones do: for each, a
// gradient and a parameter of its size existed.
//
// If autograd adds to as many gradients as there are weights, and none of these gradients was made
// in the recording, they existed too, with the same size. The same holds for the states of an
// optimizer whose name implies their number (PyTorch's documentation: Adam and its kin keep two
// tensors for each parameter, RMSprop and Adagrad one, SGD one if it has momentum, which shows in
// its multiplications). Other memory is not attributed, and stays in Graph::initial_memory().

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

/// The range of an op's arguments that are weights, and the last of them that is trained.
struct WeightOp {
  std::string_view name;
  std::size_t first, last, last_trained;
};

constexpr std::array kWeightOps{
    WeightOp{"aten::conv1d", 1, 2, 2},           WeightOp{"aten::conv2d", 1, 2, 2},
    WeightOp{"aten::conv3d", 1, 2, 2},           WeightOp{"aten::convolution", 1, 2, 2},
    WeightOp{"aten::conv_transpose1d", 1, 2, 2}, WeightOp{"aten::conv_transpose2d", 1, 2, 2},
    WeightOp{"aten::conv_transpose3d", 1, 2, 2}, WeightOp{"aten::linear", 1, 2, 2},
    WeightOp{"aten::embedding", 0, 0, 0},        WeightOp{"aten::embedding_bag", 0, 0, 0},
    WeightOp{"aten::batch_norm", 1, 4, 2},       WeightOp{"aten::instance_norm", 1, 4, 2},
    WeightOp{"aten::layer_norm", 2, 3, 3},       WeightOp{"aten::group_norm", 2, 3, 3},
    WeightOp{"aten::rms_norm", 2, 2, 2},         WeightOp{"aten::prelu", 1, 1, 1}};

struct Weight {
  std::uint32_t op = kNone;  ///< Host record.
  std::size_t argument = 0;
  std::int64_t bytes = 0;
  bool trained = true;

  std::int64_t block_bytes() const { return in_blocks(bytes); }
};

struct Pass {
  std::vector<Weight> weights;
  std::int64_t bytes = 0;
};

class WeightFinder {
 public:
  WeightFinder(const Program& program, std::vector<BlockSites>& sites, Inference& result)
      : host_(program.host),
        steps_(program.steps),
        sites_(sites),
        result_(result),
        sums_(program.host) {}

  std::vector<WeightUse> find() {
    if (!find_device()) return {};
    if (!find_passes()) return find_by_gradients();
    const auto most =
        std::max_element(passes_.begin(), passes_.end(),
                         [](const Pass& a, const Pass& b) { return a.bytes < b.bytes; });
    const std::vector<Weight> weights = distinct(most->weights);
    if (!fits(weights)) return {};
    const std::size_t first = result_.graph.allocations().size();
    for (const Weight& weight : weights) add(weight, MemoryUse::parameter);
    std::string claimed = "parameters";
    if (has_old_gradients(weights)) {
      claimed += ", their gradients";
      for (const Weight& weight : weights) {
        if (weight.trained) add(weight, MemoryUse::gradient);
      }
    }
    claimed += claim_states(weights);
    result_.assumptions.push_back(fmt::format(
        "Memory from before the recording is inferred from the shapes of weights: {}.", claimed));
    return uses_of(weights, first);
  }

 private:
  std::vector<WeightUse> find_by_gradients() {
    for (const std::vector<std::uint32_t>& blocks : sums_.passes(sites_)) {
      passes_.emplace_back();
      for (const std::uint32_t block : blocks) {
        const std::int64_t bytes = result_.graph.allocations()[block].bytes.count;
        passes_.back().weights.push_back({.op = sites_[block].freed.node, .bytes = bytes});
        passes_.back().bytes += bytes;
      }
    }
    if (passes_.empty()) return {};
    const std::vector<Weight> weights =
        std::max_element(passes_.begin(), passes_.end(), [](const Pass& a, const Pass& b) {
          return a.bytes < b.bytes;
        })->weights;
    if (!claim(2 * total_bytes(weights, true))) return {};
    for (const Weight& weight : weights) add(weight, MemoryUse::parameter);
    const std::size_t first = result_.graph.allocations().size();
    for (const Weight& weight : weights) add(weight, MemoryUse::gradient);
    result_.assumptions.push_back(
        fmt::format("Memory from before the recording is inferred from the gradients that autograd "
                    "accumulates: parameters, their gradients{}.",
                    claim_states(weights)));
    std::vector<WeightUse> uses = uses_of(weights, first);
    for (WeightUse& use : uses) use.writes = true;
    return uses;
  }

  std::string claim_states(const std::vector<Weight>& weights) {
    const std::size_t states = old_states(weights);
    if (states == 0) return {};
    for (const Weight& weight : weights) {
      for (std::size_t i = 0; weight.trained && i < states; ++i) {
        add(weight, MemoryUse::optimizer_state);
      }
    }
    return states == 1 ? ", and their size again for the optimizer"
                       : fmt::format(", and {} times their size for the optimizer", states);
  }

  /// Returns false unless there is one device, because shapes do not show where a tensor is.
  bool find_device() {
    const std::vector<Allocation>& blocks = result_.graph.allocations();
    if (blocks.empty()) return false;
    device_ = blocks[0].device;
    if (std::any_of(blocks.begin(), blocks.end(),
                    [&](const Allocation& b) { return b.device != device_; })) {
      return false;
    }
    std::int64_t known = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Allocation& block = blocks[i];
      if (block.made_by == kNoTask) known += block.bytes.count;
      if (sums_.frees(sites_[i])) continue;  // A new gradient that is added to an existing one.
      is_made_[static_cast<std::size_t>(block.use)] |= block.made_by != kNoTask;
    }
    const std::vector<Bytes>& initial = result_.graph.initial_memory();
    const auto number = static_cast<std::size_t>(device_);
    if (device_ >= 0 && number < initial.size()) {
      unclaimed_ = initial[number].count - known;
    }
    return !is_made_[static_cast<std::size_t>(MemoryUse::parameter)];
  }

  /// Finds the outermost ops with weights, by the forward pass that they belong to.
  bool find_passes() {
    const Trace& trace = host_.trace;
    std::vector<const WeightOp*> kinds(trace.names.size(), nullptr);
    for (const WeightOp& op : kWeightOps) {
      kinds[static_cast<std::size_t>(trace.names.find(op.name))] = &op;
    }
    kinds[0] = nullptr;
    std::vector<char> inside(host_.contexts.size(), 0);
    std::vector<std::pair<std::int64_t, std::uint32_t>> ops;
    std::vector<std::int64_t> ends;  // Times at which a pass is over.
    for (std::size_t i = 0; i < host_.contexts.size(); ++i) {
      const Context& context = host_.contexts[i];
      if (context.parent != kNone) inside[i] = inside[context.parent];
      if (context.op == kNone) continue;
      const HostRecord& op = trace.hosts[context.op];
      if (context.phase == Phase::backward) ends.push_back(op.start_ns);
      if (context.phase != Phase::forward || inside[i] != 0) continue;
      if (kinds[static_cast<std::size_t>(op.name)] == nullptr) continue;
      inside[i] = 1;
      modules_[context.op] = context.module;
      ops.emplace_back(op.start_ns, context.op);
    }
    for (const MarkedStep& step : steps_.marks) ends.push_back(step.start);
    std::sort(ops.begin(), ops.end());
    std::sort(ends.begin(), ends.end());
    fill_passes(ops, ends, kinds);
    return !passes_.empty();
  }

  void fill_passes(const std::vector<std::pair<std::int64_t, std::uint32_t>>& ops,
                   const std::vector<std::int64_t>& ends,
                   const std::vector<const WeightOp*>& kinds) {
    std::int64_t until = std::numeric_limits<std::int64_t>::min();
    for (const auto& [time, op] : ops) {
      if (time >= until) {
        const auto end = std::upper_bound(ends.begin(), ends.end(), time);
        until = end == ends.end() ? std::numeric_limits<std::int64_t>::max() : *end;
        passes_.emplace_back();
      }
      const WeightOp& kind = *kinds[static_cast<std::size_t>(host_.trace.hosts[op].name)];
      const std::vector<std::int64_t> bytes = input_bytes(host_.trace, op);
      for (std::size_t i = kind.first; i <= kind.last && i < bytes.size(); ++i) {
        if (bytes[i] <= 0) continue;
        passes_.back().weights.push_back({op, i, bytes[i], i <= kind.last_trained});
        passes_.back().bytes += bytes[i];
      }
    }
    std::erase_if(passes_, [](const Pass& pass) { return pass.weights.empty(); });
  }

  /// Returns the weights without those that share their memory with another.
  std::vector<Weight> distinct(const std::vector<Weight>& weights) const {
    std::set<std::tuple<NameId, std::size_t, std::int64_t>> of_module;
    std::multiset<std::int64_t> embedded;
    std::vector<Weight> kept;
    for (const Weight& weight : weights) {
      const std::string_view op = host_.name(host_.trace.hosts[weight.op]);
      const NameId module = module_of(weight.op);
      if (module != NameId{} && !of_module.emplace(module, weight.argument, weight.bytes).second) {
        continue;
      }
      if (op.starts_with("aten::embedding")) embedded.insert(weight.bytes);
      const auto same = embedded.find(weight.bytes);
      if (op == "aten::linear" && weight.argument == 1 && same != embedded.end()) {
        embedded.erase(same);
        continue;
      }
      kept.push_back(weight);
    }
    return kept;
  }

  NameId module_of(std::uint32_t op) const {
    const auto found = modules_.find(op);
    return found == modules_.end() ? NameId{} : found->second;
  }

  static std::int64_t total_bytes(const std::vector<Weight>& weights, bool trained_only) {
    std::int64_t bytes = 0;
    for (const Weight& weight : weights) {
      if (weight.trained || !trained_only) bytes += weight.block_bytes();
    }
    return bytes;
  }

  bool fits(const std::vector<Weight>& weights) {
    count_accumulations();
    const std::int64_t bytes = total_bytes(weights, false);
    if (unclaimed_) return claim(bytes);
    const auto trained = static_cast<std::size_t>(std::count_if(
        weights.begin(), weights.end(), [](const Weight& weight) { return weight.trained; }));
    return trained > 0 && trained == accumulations_;
  }

  bool claim(std::int64_t bytes) {
    if (!unclaimed_) return true;
    if (bytes > *unclaimed_) return false;
    *unclaimed_ -= bytes;
    return true;
  }

  /// Counts the gradients that one backward pass accumulates, and how many of them are added in
  /// place.
  void count_accumulations() {
    std::map<std::uint32_t, bool> adds;  // By node: whether it adds.
    std::vector<std::uint32_t> around(host_.contexts.size(), kNone);
    for (std::size_t i = 0; i < host_.contexts.size(); ++i) {
      const Context& context = host_.contexts[i];
      if (context.parent != kNone) around[i] = around[context.parent];
      if (context.op == kNone) continue;
      const std::string_view name = host_.name(host_.trace.hosts[context.op]);
      if (name == "torch::autograd::AccumulateGrad") {
        around[i] = context.op;
        adds.try_emplace(context.op, false);
      } else if (around[i] != kNone && name == "aten::add_") {
        adds[around[i]] = true;
      }
    }
    if (passes_.empty() || adds.size() % passes_.size() != 0) return;
    accumulations_ = adds.size() / passes_.size();
    const auto in_place = static_cast<std::size_t>(
        std::count_if(adds.begin(), adds.end(), [](const auto& node) { return node.second; }));
    additions_ = in_place / passes_.size();
  }

  bool has_old_gradients(const std::vector<Weight>& weights) {
    const auto trained = static_cast<std::size_t>(std::count_if(
        weights.begin(), weights.end(), [](const Weight& weight) { return weight.trained; }));
    if (is_made_[static_cast<std::size_t>(MemoryUse::gradient)]) return false;
    return trained > 0 && additions_ == trained && claim(total_bytes(weights, true));
  }

  /// Number of tensors that the optimizer keeps for each parameter; 0 if unknown.
  std::size_t old_states(const std::vector<Weight>& weights) {
    if (is_made_[static_cast<std::size_t>(MemoryUse::optimizer_state)]) return 0;
    std::size_t multiplications = 0, updates = 0, foreach = 0;
    std::string_view optimizer;
    for (const HostRecord& record : host_.trace.hosts) {
      const std::string_view name = host_.name(record);
      if (!name.starts_with("Optimizer.step#")) continue;
      ++updates;
      optimizer = name.substr(15, name.find('.', 15) - 15);
    }
    for (const Context& context : host_.contexts) {
      if (context.phase != Phase::update || context.op == kNone) continue;
      const std::string_view name = host_.name(host_.trace.hosts[context.op]);
      if (name == "aten::mul_") ++multiplications;
      if (name == "aten::_foreach_mul_") ++foreach;
    }
    const auto trained = static_cast<std::size_t>(std::count_if(
        weights.begin(), weights.end(), [](const Weight& weight) { return weight.trained; }));
    std::size_t states = states_of(optimizer);
    if (optimizer == "SGD" && (multiplications >= trained * updates || foreach >= updates)) {
      states = 1;
    }
    if (updates == 0 || states == 0) return 0;
    const auto bytes = static_cast<std::int64_t>(states) * total_bytes(weights, true);
    return claim(bytes) ? states : 0;
  }

  static std::size_t states_of(std::string_view optimizer) {
    struct OptimizerStates {
      std::string_view name;
      std::size_t states;
    };
    constexpr OptimizerStates kOptimizers[] = {{"Adam", 2},    {"AdamW", 2},  {"NAdam", 2},
                                               {"RAdam", 2},   {"Adamax", 2}, {"Adadelta", 2},
                                               {"Adagrad", 1}, {"RMSprop", 1}};
    for (const OptimizerStates& known : kOptimizers) {
      if (known.name == optimizer) return known.states;
    }
    return 0;
  }

  void add(const Weight& weight, MemoryUse use) {
    result_.graph.allocations().push_back({.bytes = Bytes{weight.block_bytes()},
                                           .requested = Bytes{weight.bytes},
                                           .device = device_,
                                           .op = host_.trace.hosts[weight.op].name,
                                           .use = use});
    sites_.emplace_back();
  }

  /// Returns the uses of `weights` by all passes that take the same weights in the same order.
  std::vector<WeightUse> uses_of(const std::vector<Weight>& weights, std::size_t first) const {
    std::vector<WeightUse> uses;
    for (const Pass& pass : passes_) {
      const std::vector<Weight> used = distinct(pass.weights);
      if (used.size() != weights.size()) continue;
      for (std::size_t i = 0; i < used.size(); ++i) {
        if (used[i].bytes != weights[i].bytes || used[i].argument != weights[i].argument) break;
        uses.push_back({static_cast<std::uint32_t>(first + i), used[i].op});
      }
    }
    return uses;
  }

  const HostTime& host_;
  const Steps& steps_;
  std::vector<BlockSites>& sites_;
  Inference& result_;
  GradientSums sums_;
  std::int32_t device_ = 0;
  /// Initial memory that is not attributed yet; nullopt if not recorded.
  std::optional<std::int64_t> unclaimed_;
  std::array<bool, 8> is_made_{};  ///< By use: whether blocks made in the recording have it.
  std::vector<Pass> passes_;
  std::map<std::uint32_t, NameId> modules_;
  std::size_t accumulations_ = 0, additions_ = 0;
};

}  // namespace

std::vector<WeightUse> find_weights(const Program& program, std::vector<BlockSites>& sites,
                                    Inference& result) {
  return WeightFinder(program, sites, result).find();
}

}  // namespace foretrace::infer_detail
