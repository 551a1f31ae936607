#pragma once

// Derives facts about an allocation from its stack, as recorded in a memory snapshot: frames
// "file:line function", innermost first, joined by ';':
//
//     backward   the stack contains the autograd engine or a function named "backward"; or it is
//                empty although stacks were recorded: threads of the engine have no Python frames
//     forward    it contains a function named "forward", or torch.nn.Module's call, but none of the
//                above
//     update     it contains a function named "step" (or one of torch.optim) in a file about
//                optimizers, further in than any of the above
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
  bool has_engine = false;    ///< Some C++ frame names the autograd engine.
  bool builds_model = false;  ///< The program makes, moves or loads modules.
  bool of_optimizer = false;  ///< Some frame is in a file about optimizers.
  bool is_workspace = false;  ///< A kernel library keeps the block as its workspace.
  bool moves = false;         ///< The outermost operator copies to another device or type.
  NameId op{};                ///< The outermost operator named by C++ frames, "aten::ones".
  NameId place{};             ///< The innermost Python line: "rmsnorm.py:19 __init__".
};

/// Analyzes each distinct stack once.
class StackReader {
 public:
  explicit StackReader(Names& names) : names_(names) {}
  const StackFacts& read(NameId stack);

 private:
  StackFacts facts_of(std::string_view stack);

  Names& names_;
  std::unordered_map<std::uint32_t, StackFacts> known_;
};

/// Whether blocks with the stacks `repeated` are made by parts of one module call, as layers are:
/// all of them are made in a call within a call, and the outer call also makes some of `others`.
bool lie_within_one_call(const std::vector<std::string_view>& repeated,
                         const std::vector<std::string_view>& others);

}  // namespace foretrace::infer_detail
