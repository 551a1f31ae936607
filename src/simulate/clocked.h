#pragma once

#include <vector>

#include "foretrace/timeline.h"

namespace foretrace {

/// A task on a shared or priority lane that could have started earlier, and the one that it had to
/// let pass.
struct LetPass {
  TaskId task;
  TaskId passed;
};

/// The replay for graphs with shared or priority lanes. Fills start, finish and length; adds to
/// `let_pass`.
Timeline replay_clocked(const Graph& graph, std::vector<LetPass>& let_pass);

}  // namespace foretrace
