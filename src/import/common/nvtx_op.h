#pragma once

// Names that PyTorch gives to NVTX ranges (torch.autograd.profiler.emit_nvtx):
//
//     aten::add, seq = 12, op_id = 7, sizes = [[2, 3], [2, 3]], input_op_ids = [[6, 0]]
//     AddBackward0, stashed seq=12
//
// Ranges of the profiled program itself have only a name.

#include <cstdint>
#include <optional>
#include <string_view>

namespace foretrace {

struct NvtxOp {
  std::string_view name = {};
  std::int64_t sequence = -1;         ///< Links a forward op and its backward; -1 if none.
  std::int64_t record_function = -1;  ///< "op_id"; -1 if none.
  std::string_view sizes = {};        ///< JSON text; empty if none.
};

/// Parses the text of a range. The texts of the result are parts of `text`. Returns nullopt if the
/// range is not an op of PyTorch.
std::optional<NvtxOp> parse_nvtx_op(std::string_view text);

}  // namespace foretrace
