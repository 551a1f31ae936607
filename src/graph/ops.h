#pragma once

// Names of PyTorch's ops, and the lists by which torch.autocast treats them (PyTorch documentation,
// "Automatic Mixed Precision package", op reference):
//
//     matrix products, convolutions, attention      half
//     softmax, norms, losses, sums, exp, log, pow   stay in FP32
//     all others                                    half if all their inputs are, else FP32

#include <cstdint>
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

/// full_kept: in FP32, and the op keeps its own output for the backward pass.
enum class AutocastList : std::uint8_t { other, half, full, full_kept };

AutocastList autocast_list_of(std::string_view op);

}  // namespace foretrace
