#pragma once

// Where in the program a task comes from: the source line of the user's own code, the op and the
// module around the call that made it. The same program gives the same names on another machine, in
// another run and after other tasks were added or taken away.
//
//     train.py(88): main            -> site   {"train.py", 88, "main"}
//       aten::item                  -> op     "aten::item"
//         aten::_local_scalar_dense
//           cudaStreamSynchronize   -> the task
//
// A kernel, copy or collective has the place of the call that launched it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/trace.h"

namespace foretrace {

struct CallSite {
  std::string file;  ///< As recorded, but without what differs between machines: "train.py".
  int line = 0;      ///< 0 where unknown.
  std::string function;
};

/// Of every task of an inferred graph. Linear in the records, once.
class CallSites {
 public:
  CallSites(const Trace& trace, const Graph& graph);

  /// The innermost frame of the user's own code around the call; nothing where no stack was
  /// recorded.
  std::optional<CallSite> site(TaskId task) const;
  /// Names of the ops around the call, outermost first, joined by '/': "aten::linear/aten::addmm".
  /// Empty where there is none.
  std::string_view op_path(TaskId task) const;
  /// Name of the outermost op around the call.
  std::string_view op(TaskId task) const;
  /// Name of the call that made a device task ("cudaLaunchKernel"), or of the task itself.
  std::string_view call(TaskId task) const;

 private:
  struct Frames;
  std::vector<std::uint32_t> of_task_;  ///< Into the lists of the two below.
  std::vector<std::optional<CallSite>> sites_;
  std::vector<std::string> op_paths_;
};

}  // namespace foretrace
