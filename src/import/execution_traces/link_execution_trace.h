#pragma once

// An execution trace has what each op read and wrote; a profiler's trace of the same run has the
// times. Linked, the profiler's trace has both.
//
// Ops are matched by the record function's id, which newer versions of PyTorch write into both;
// where they do not, or where the names of equal ids differ, by aligning the sequences of names on
// each thread.

#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// The host record of a profiler's trace that an op of an execution trace is.
struct OpMatch {
  std::vector<std::uint32_t>
      hosts;  ///< Indexed by host record of the execution trace; kNone without a match.
  std::int64_t matched = 0;
  bool by_ids = false;

  double share() const {
    return hosts.empty() ? 0 : static_cast<double>(matched) / static_cast<double>(hosts.size());
  }
};
OpMatch match_ops(const Trace& profiled, const Trace& execution);

bool is_execution_trace(const Trace& trace);

/// Gives `profiled` the tensors of the ops that match, and reports it in its notes. If most ops do
/// not match, this is another run: then only the notes say so. True if they were linked.
bool link_execution_trace(Trace& profiled, const Trace& execution, const OpMatch& match);

/// Links each execution trace of a folder with the profiler's trace of its rank, and leaves out the
/// execution traces. Does nothing if all are of one kind.
void link_execution_traces(std::vector<Trace>& traces, Notes& notes);

/// Links the traces with the execution trace, or the folder of them, that the options name. Throws
/// TraceError if it is not one.
void link_given_execution_trace(std::vector<Trace>& traces, const ImportOptions& options);

}  // namespace foretrace
