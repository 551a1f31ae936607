#pragma once

// Where in the program a task comes from: the source line of the user's own code, the op and the
// module around the call that made it. The same program gives the same names on another machine, in
// another run, and after other tasks were added or deleted.
//
//     train.py(88): main            -> site   {"train.py", 88, "main"}
//       aten::item                  -> op     "aten::item"
//         aten::_local_scalar_dense
//           cudaStreamSynchronize   -> the task
//
// A kernel, copy or collective has the place of the call that launched it. Frames come from a
// profiler's Python records, or from the stacks that it keeps with ops. Work launched by autograd's
// threads has no frame of its own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/trace.h"

namespace foretrace {

struct CallSite {
  /// As recorded, but without the folders that differ between machines: "train.py".
  std::string file;
  int line = 0;  ///< 0 if unknown.
  std::string function;
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

/// "train.py:88 main"
std::string to_text(const CallSite& site);

/// Knows the call site of every task of an inferred graph. Construction is about linear in the
/// records. A task without a record in the trace has no place.
class CallSites {
 public:
  CallSites(const Trace& trace, const Graph& graph);

  /// The innermost frame of the user's own code around the call, or of a package if there is none.
  /// Returns nullopt if no stack was recorded.
  std::optional<CallSite> site(TaskId task) const;
  /// Names of the ops around the call, outermost first, joined by '/': "aten::linear/aten::addmm".
  /// Empty if there is none.
  std::string_view op_path(TaskId task) const;
  /// Name of the outermost op around the call.
  std::string_view op(TaskId task) const;
  struct ShapedOp {
    std::string_view name, shapes;
    std::string_view values;  ///< As recorded: ["", "[1, 1]", "True"].
  };
  /// The innermost op around the call whose shapes were recorded; without one, the innermost op and
  /// no shapes.
  ShapedOp shaped_op(TaskId task) const;
  /// Name of the call that made a device task ("cudaLaunchKernel"), or of the task itself.
  std::string_view call(TaskId task) const;

 private:
  /// Indices into the lists below.
  struct Location {
    std::uint32_t site = kNone, path = 0, op = 0, call = 0, shaped = 0, shapes = 0, values = 0;
  };
  const Location& location(TaskId task) const;

  std::vector<Location> of_task_;
  std::vector<CallSite> sites_;
  std::vector<std::string> paths_;
  std::vector<std::string> names_;  ///< Holds names of ops and calls, and shapes.
};

}  // namespace foretrace
