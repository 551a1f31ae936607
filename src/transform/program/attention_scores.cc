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

  std::set<std::int64_t> sizes() {
    for (const Allocation& block : graph_.allocations()) knows_attention_ |= in_attention(block);
    std::set<std::int64_t> scores, others;
    for (const Allocation& block : graph_.allocations()) {
      if (block.made_by == kNoTask || graph_.task(block.made_by).phase != Phase::forward) continue;
      const std::string_view op = bare_op_name(graph_.names()[block.op]);
      const bool here = !knows_attention_ || in_attention(block);
      if (here && (makes_scores(op) || (knows_attention_ && may_make_scores(op))))
        scores.insert(asked_bytes(block));
      if (is_by_position(op) || !here) others.insert(asked_bytes(block));
    }
    std::erase_if(scores, [&](std::int64_t size) { return others.contains(size); });
    return scores;
  }

 private:
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
  const std::set<std::int64_t> sizes = ScoreFinder(graph).sizes();
  std::vector<char> scores(graph.allocations().size(), 0);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Allocation& block = graph.allocations()[i];
    scores[i] =
        block.made_by != kNoTask && sizes.contains(asked_bytes(block)) && fits(block, length);
  }
  return scores;
}

}  // namespace foretrace
