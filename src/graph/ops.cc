#include "graph/ops.h"

#include <algorithm>
#include <iterator>

namespace foretrace {

AutocastList autocast_list_of(std::string_view op) {
  op = bare_op_name(op);
  constexpr std::string_view kHalf[] = {
      "addbmm",       "addmm",    "addmv",   "addr",    "baddbmm",   "bmm",
      "chain_matmul", "einsum",   "linear",  "matmul",  "multi_dot", "mm",
      "mv",           "LSTMCell", "GRUCell", "RNNCell", "prelu"};
  constexpr std::string_view kKept[] = {"softmax", "log_softmax", "exp",       "expm1",
                                        "tan",     "rsqrt",       "reciprocal"};
  constexpr std::string_view kFull[] = {"acos",
                                        "asin",
                                        "cdist",
                                        "cosh",
                                        "cosine_similarity",
                                        "cross_entropy",
                                        "cumprod",
                                        "cumsum",
                                        "dist",
                                        "erfinv",
                                        "group_norm",
                                        "native_group_norm",
                                        "layer_norm",
                                        "native_layer_norm",
                                        "kl_div",
                                        "log",
                                        "log10",
                                        "log1p",
                                        "log2",
                                        "norm",
                                        "normalize",
                                        "pdist",
                                        "pow",
                                        "prod",
                                        "renorm",
                                        "rpow",
                                        "sinh",
                                        "softmin",
                                        "softplus",
                                        "sum"};
  const auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  if (in(kHalf) || op.starts_with("conv") || op.find("convolution") != op.npos ||
      op.starts_with("scaled_dot_product")) {
    return AutocastList::half;
  }
  if (in(kKept)) return AutocastList::full_kept;
  if (in(kFull) || op.ends_with("_loss") || op.starts_with("binary_cross_entropy"))
    return AutocastList::full;
  return AutocastList::other;
}

}  // namespace foretrace
