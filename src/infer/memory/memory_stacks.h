#pragma once

// Derives facts about an allocation from its stack. Stacks are those of a memory snapshot, frames
// "file:line function", innermost first, joined by ';':
//
//     backward   the autograd engine, or a function named "backward", is on it; or it is empty,
//                where stacks were recorded: the threads of the engine have no Python frames
//     forward    a function named "forward", or torch.nn.Module's call, and nothing of the above
//     update     a function named "step" (or of torch.optim) of a file about optimizers, further
//                in than any of the above
//
// Any other stack has no phase.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace::infer_detail {

struct StackFacts {
  Phase phase = Phase::none;
  bool is_empty = true;
  bool has_engine = false;    ///< Frames of C++ that name the autograd engine.
  bool builds_model = false;  ///< Makes, moves or loads modules.
  bool of_optimizer = false;  ///< Some frame is of a file about optimizers.
  bool is_workspace = false;  ///< A library of kernels keeps it for itself.
  bool moves = false;         ///< Innermost op is a copy to another device or type.
  NameId op{};                ///< The outermost operator that C++ frames name, "aten::ones".
  NameId place{};             ///< Innermost line of Python: "rmsnorm.py:19 __init__".
};

/// Reads each stack once.
class StackReader {
 public:
  explicit StackReader(Names& names) : names_(names) {}
  const StackFacts& read(NameId stack);

 private:
  StackFacts facts_of(std::string_view stack);

  Names& names_;
  std::unordered_map<std::uint32_t, StackFacts> known_;
};

/// Whether blocks with the stacks `repeated` are made by parts of one call of a module, as layers
/// are: all of them lie in a call within a call, and the outer one also makes some of `others`.
bool lie_within_one_call(const std::vector<std::string_view>& repeated,
                         const std::vector<std::string_view>& others);

}  // namespace foretrace::infer_detail
