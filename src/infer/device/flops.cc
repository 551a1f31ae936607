// Arithmetic of kernels, from the shapes of the op that launched them (record_shapes=True):
//
//     mm, addmm            [m, k] x [k, n]           2 m n k
//     bmm, baddbmm         [b, m, k] x [b, k, n]     2 b m n k
//     linear               [..., k] x [n, k]         2 ... n k
//     convolution          [b, c, ...] * [o, c/groups, r, s]
//                                                    2 (c/groups) r s for each output element
//
// The output size of a convolution follows from padding, stride and dilation if the op's values
// were recorded. An op may launch several kernels (layout, bias, reduction); the longest is assumed
// to do the arithmetic. Other ops keep 0, which means unknown. For tables of kernels there are
// also:
//
//     attention            [b, m, h, d], [b, n, h, d], [b, n, h, e]
//                                                    2 b h m n (d + e), half of it if causal;
//                                                    5 products instead of 2 for the gradients
//     convolution_backward [b, o, ...] and the weight: each gradient as many as the convolution
//
// Attention counts only if the op's values say whether it is causal.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "infer/device/op_shapes.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {

std::vector<Shape> read_shapes(std::string_view text) {
  std::vector<Shape> shapes;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') {
      if (++depth == 2) shapes.emplace_back();
    } else if (c == ']') {
      --depth;
    } else if (depth == 2 && (c == '-' || (c >= '0' && c <= '9'))) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
      if (error != std::errc{}) return {};
      shapes.back().push_back(value);
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
  }
  return shapes;
}

double product(const Shape& shape) {
  double all = 1;
  for (const double size : shape) all *= size;
  return all;
}

std::vector<std::string_view> read_texts(std::string_view list) {
  std::vector<std::string_view> texts;
  for (std::size_t i = 0; (i = list.find('"', i)) != list.npos;) {
    const std::size_t end = list.find('"', i + 1);
    if (end == list.npos) break;
    texts.push_back(list.substr(i + 1, end - i - 1));
    i = end + 1;
  }
  return texts;
}

std::string_view value_at(std::string_view text, std::size_t place) {
  const std::vector<std::string_view> texts = read_texts(text);
  return place < texts.size() ? texts[place] : std::string_view();
}

namespace {

/// Parses the values of an op, which are texts: ["", "[1, 1]", "True"]. Lists of numbers become
/// lists; other values become empty.
std::vector<Shape> read_values(std::string_view text) {
  std::vector<Shape> values;
  for (const std::string_view inner : read_texts(text)) {
    Shape& value = values.emplace_back();
    if (!inner.starts_with('[')) continue;
    const std::vector<Shape> lists = read_shapes("[" + std::string(inner) + "]");
    if (!lists.empty()) value = lists.front();
  }
  return values;
}

struct ProductWork {
  double flops = 0;
  double inner = 0;  ///< Of a matrix product.
};

ProductWork matrix_work(const Shape& a, const Shape& b, std::size_t dimensions) {
  if (a.size() != dimensions || b.size() != dimensions) return {};
  return {2 * product(a) * b.back(), a.back()};
}

/// aten::convolution(input, weight, bias, stride, padding, dilation, ...)
double convolution_flops(const std::vector<Shape>& shapes, const std::vector<Shape>& values) {
  if (shapes.size() < 2 || values.size() < 6) return 0;
  const Shape& input = shapes[0];
  const Shape& weight = shapes[1];
  const std::size_t spatial = input.size() < 3 ? 0 : input.size() - 2;
  if (spatial == 0 || weight.size() != input.size()) return 0;
  double places = input[0];
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto setting = [&](std::size_t which) {
      const Shape& list = values[which];
      return list.empty() ? 0.0 : list[std::min(i, list.size() - 1)];
    };
    const double stride = setting(3), padding = setting(4), dilation = setting(5);
    if (stride < 1 || dilation < 1) return 0;
    places *=
        std::floor((input[i + 2] + 2 * padding - dilation * (weight[i + 2] - 1) - 1) / stride) + 1;
  }
  return 2 * places * product(weight);
}

ProductWork op_work(std::string_view name, const std::vector<Shape>& shapes,
                    const std::vector<Shape>& values) {
  const auto at = [&](std::size_t i) { return i < shapes.size() ? shapes[i] : Shape{}; };
  if (name == "aten::mm") return matrix_work(at(0), at(1), 2);
  if (name == "aten::addmm" || name == "aten::_addmm_activation")
    return matrix_work(at(1), at(2), 2);
  if (name == "aten::bmm") return matrix_work(at(0), at(1), 3);
  if (name == "aten::baddbmm") return matrix_work(at(1), at(2), 3);
  if (name == "aten::linear") {
    const Shape weight = at(1);
    return weight.size() == 2 ? ProductWork{2 * product(at(0)) * weight[0], weight[1]}
                              : ProductWork{};
  }
  if (name == "aten::convolution" || name == "aten::_convolution") {
    return {.flops = convolution_flops(shapes, values)};
  }
  return {};
}

class FlopCounter {
 public:
  FlopCounter(const Records& records, const std::vector<Context>& contexts, Graph& graph)
      : records_(records), contexts_(contexts), graph_(graph) {}

  void count() {
    // Longest kernel of each op with arithmetic.
    std::unordered_map<std::uint32_t, TaskId> longest;
    for (const DeviceEvent& event : records_.events) {
      if (event.kind != TaskKind::kernel || event.call == kNone) continue;
      const std::uint32_t op = op_of(records_.calls[event.call]);
      if (op == kNone) continue;
      const auto [found, added] = longest.try_emplace(op, event.task);
      if (!added && duration(event.task) > duration(found->second)) found->second = event.task;
    }
    for (const auto& [op, task] : longest) set_work(task, work(op));
    count_captured();
  }

 private:
  /// Likewise for work of graphs, by the ops of their captures.
  void count_captured() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<TaskId, ProductWork>> longest;
    if (records_.trace.captured.empty()) return;
    for (const DeviceEvent& event : records_.events) {
      const CapturedNode* const node =
          captured_node(records_.trace, records_.trace.devices[event.record]);
      if (node == nullptr || event.kind != TaskKind::kernel) continue;
      const ProductWork found = work(node->op, node->shapes, node->values);
      if (found.flops <= 0) continue;
      auto& [task, known] =
          longest.try_emplace({event.call, node->op_call}, event.task, found).first->second;
      if (duration(event.task) > duration(task)) task = event.task;
    }
    for (const auto& [call, found] : longest) set_work(found.first, found.second);
  }

  void set_work(TaskId id, const ProductWork& work) {
    Task& task = graph_.task(id);
    task.flops = work.flops;
    task.inner = static_cast<float>(work.inner);
  }

  Nanoseconds duration(TaskId task) const { return graph_.task(task).duration; }

  /// The innermost op with arithmetic around a call; a convolution launches from ops inside it.
  std::uint32_t op_of(const Call& call) {
    if (call.context == kNone) return kNone;
    for (std::uint32_t context = call.context; context != kNone;
         context = contexts_[context].parent) {
      const std::uint32_t op = contexts_[context].op;
      if (op == kNone) return kNone;
      if (work(op).flops > 0) return op;
    }
    return kNone;
  }

  ProductWork work(std::uint32_t op) {
    const HostRecord& record = records_.trace.hosts[op];
    if (record.details == kNone) return {};
    const OpDetails& details = records_.trace.op_details[record.details];
    return work(record.name, details.shapes, details.values);
  }

  ProductWork work(NameId op, NameId shapes, NameId values) {
    if (shapes == NameId{}) return {};
    const auto [found, added] = cached_.try_emplace({op, shapes, values});
    if (added) {
      const Names& names = records_.trace.names;
      found->second = op_work(names[op], read_shapes(names[shapes]), read_values(names[values]));
    }
    return found->second;
  }

  const Records& records_;
  const std::vector<Context>& contexts_;
  Graph& graph_;
  std::map<std::tuple<NameId, NameId, NameId>, ProductWork> cached_;
};

/// Where an op of attention has its query, and the value that says whether it is causal.
struct AttentionOp {
  std::string_view name;
  std::size_t query, causal;
  bool heads_first = false;  ///< [b, h, m, d]
};
constexpr AttentionOp kAttention[] = {
    {"aten::_flash_attention_forward", 0, 8},
    {"aten::_flash_attention_backward", 1, 11},
    {"aten::_efficient_attention_forward", 0, 9},
    {"aten::_efficient_attention_backward", 1, 14},
    {"aten::_scaled_dot_product_cudnn_attention", 0, 6, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true},
    {"aten::scaled_dot_product_attention", 0, 5, true}};

double attention_flops(const AttentionOp& op, const std::vector<Shape>& shapes,
                       std::string_view values) {
  if (shapes.size() < op.query + 3) return 0;
  const Shape& query = shapes[op.query];
  const Shape& key = shapes[op.query + 1];
  const Shape& value = shapes[op.query + 2];
  if (query.size() != 4 || key.size() != 4 || value.size() != 4) return 0;
  const std::string_view causal = value_at(values, op.causal);
  const bool is_causal = causal == "True" || causal == "1" || causal == "2";
  if (!is_causal && causal != "False" && causal != "0") return 0;
  const double keys = key[op.heads_first ? 2 : 1];
  const double products = op.query == 0 ? 2 : 5;
  return products * query[0] * query[1] * query[2] * keys * (query[3] + value[3]) *
         (is_causal ? .5 : 1);
}

/// aten::convolution_backward(gradient, input, weight, ..., transposed, ..., which gradients)
OtherWork convolution_gradients(const std::vector<Shape>& shapes, std::string_view values) {
  constexpr std::size_t kTransposed = 7, kWanted = 10;
  if (shapes.size() < 3 || shapes[0].size() < 3 || shapes[2].size() != shapes[0].size() ||
      value_at(values, kTransposed) != "False")
    return {};
  const std::string_view wanted = value_at(values, kWanted);
  const std::size_t kernels = wanted.starts_with("[True, True")                                ? 2
                              : wanted.starts_with("[True") || wanted.starts_with("[False, T") ? 1
                                                                                               : 0;
  Shape places = shapes[0];
  places[1] = 1;
  return {2 * product(places) * product(shapes[2]), kernels};
}

}  // namespace

void count_flops(const Records& records, const std::vector<Context>& contexts, Graph& graph) {
  FlopCounter(records, contexts, graph).count();
}

}  // namespace foretrace::infer_detail

namespace foretrace {

OtherWork other_work(std::string_view op, std::string_view shapes, std::string_view values) {
  using namespace infer_detail;
  if (op == "aten::convolution_backward") return convolution_gradients(read_shapes(shapes), values);
  const auto attention = std::ranges::find(kAttention, op, &AttentionOp::name);
  if (attention == std::end(kAttention)) return {};
  return {.flops = attention_flops(*attention, read_shapes(shapes), values)};
}

}  // namespace foretrace
