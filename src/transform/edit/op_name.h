#pragma once

#include <string_view>

namespace foretrace {

/// Returns the name of an op without its namespaces and outer underscores: "softmax" for
/// "aten::softmax_", "linear" for "torch.nn.functional.linear".
inline std::string_view bare_op_name(std::string_view op) {
  const std::size_t colon = op.find_last_of(":.");
  if (colon != op.npos) op.remove_prefix(colon + 1);
  while (op.starts_with('_')) op.remove_prefix(1);
  while (op.ends_with('_')) op.remove_suffix(1);
  return op;
}

}  // namespace foretrace
