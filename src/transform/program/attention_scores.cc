#include "transform/program/attention_scores.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "graph/select.h"
#include "transform/edit/block_size.h"
#include "transform/edit/op_name.h"

namespace foretrace {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Whether the output of `op` is scores wherever the op runs.
bool makes_scores(std::string_view op) {
  constexpr std::array<std::string_view, 3> kOps = {"softmax", "masked_fill", "baddbmm"};
  return is_one_of(op, kOps);
}

/// Whether the output of `op` is scores within attention; elsewhere it may be anything.
bool may_make_scores(std::string_view op) {
  constexpr std::array<std::string_view, 4> kOps = {"exp", "where", "bmm", "dropout"};
  return is_one_of(op, kOps);
}

/// Whether the output of `op` has a number, or a row of numbers, for each position.
bool is_by_position(std::string_view op) {
  constexpr std::array<std::string_view, 13> kOps = {
      "linear", "addmm", "mm",   "layer_norm", "native_layer_norm", "rms_norm",   "embedding",
      "gelu",   "relu",  "silu", "sigmoid",    "cross_entropy",     "log_softmax"};
  return is_one_of(op, kOps);
}

class ScoreFinder {
 public:
  explicit ScoreFinder(const Graph& graph)
      : graph_(graph), names_attention_("/(?i)atten|attn/", graph.names()) {}

  /// 1 for each allocation that holds scores.
  std::vector<char> find() {
    for (const Allocation& block : graph_.allocations()) knows_attention_ |= in_attention(block);
    const Sizes sizes = sizes_of_forward();
    std::vector<char> found;
    for (const Allocation& block : graph_.allocations()) {
      const std::int64_t size = asked_bytes(block);
      const bool by_size = sizes.scores.contains(size) && !sizes.others.contains(size);
      // Where blocks by position have that size, too, only op and place tell them apart.
      const bool by_place = sizes.sure.contains(size) && is_forward(block) && in_attention(block) &&
                            !is_by_position(bare_op_name(graph_.names()[block.op]));
      found.push_back(block.made_by != kNoTask && (by_size || by_place) ? 1 : 0);
    }
    return found;
  }

 private:
  /// Sizes of blocks that the forward pass makes as scores, that a softmax of attention makes, and
  /// that have numbers for positions.
  struct Sizes {
    std::set<std::int64_t> scores, sure, others;
  };

  Sizes sizes_of_forward() {
    Sizes sizes;
    for (const Allocation& block : graph_.allocations()) {
      if (!is_forward(block)) continue;
      const std::string_view op = bare_op_name(graph_.names()[block.op]);
      const bool here = !knows_attention_ || in_attention(block);
      if (made_as_scores(block)) sizes.scores.insert(asked_bytes(block));
      if (knows_attention_ && here && (makes_scores(op) || in_softmax(block)))
        sizes.sure.insert(asked_bytes(block));
      if (is_by_position(op) || !here) sizes.others.insert(asked_bytes(block));
    }
    return sizes;
  }

  bool is_forward(const Allocation& block) const {
    return block.made_by != kNoTask && graph_.task(block.made_by).phase == Phase::forward;
  }

  /// Whether the op and the place of a block of the forward pass are those of scores.
  bool made_as_scores(const Allocation& block) {
    const std::string_view op = bare_op_name(graph_.names()[block.op]);
    if (!knows_attention_) return makes_scores(op);
    return in_attention(block) && (makes_scores(op) || may_make_scores(op) || in_softmax(block));
  }

  /// Whether a softmax of the program's own asked for the block.
  bool in_softmax(const Allocation& block) const {
    std::string_view stack = graph_.names()[block.stack];
    std::string_view innermost = stack.substr(0, stack.find(';'));
    while (innermost.find(".py:") == std::string_view::npos && innermost.size() < stack.size()) {
      stack.remove_prefix(innermost.size() + 1);
      innermost = stack.substr(0, stack.find(';'));
    }
    return innermost.find("softmax") != std::string_view::npos &&
           innermost.find("log_softmax") == std::string_view::npos;
  }

  bool in_attention(const Allocation& block) {
    if (names_attention_(block.stack)) return true;
    return block.made_by != kNoTask && names_attention_(graph_.task(block.made_by).module);
  }

  const Graph& graph_;
  NameCondition names_attention_;
  bool knows_attention_ = false;
};

bool fits(const Allocation& block, std::optional<std::int64_t> length) {
  if (!length) return true;
  return asked_bytes(block) % (*length * *length) == 0;
}

}  // namespace

std::vector<char> attention_scores(const Graph& graph, std::optional<std::int64_t> length) {
  std::vector<char> scores = ScoreFinder(graph).find();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != 0 && !fits(graph.allocations()[i], length)) scores[i] = 0;
  }
  return scores;
}

}  // namespace foretrace
