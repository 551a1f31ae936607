#pragma once

// An execution trace records the tensors that each op read and wrote; a profiler's trace of the
// same run has the times. Linking adds the tensors to the profiler's trace.
//
// Ops are matched by the id of the record function, which newer versions of PyTorch write into both
// traces. If the ids are missing, or ops with equal ids have different names, the sequences of
// names on each thread are aligned instead.

#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// The host records of a profiler's trace that correspond to the ops of an execution trace.
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

/// Gives `profiled` the tensors of the matching ops and adds a note. If most ops do not match, the
/// execution trace belongs to another run: then adds only a note and returns false.
bool link_execution_trace(Trace& profiled, const Trace& execution, const OpMatch& match);

/// Links each execution trace of a folder with the profiler's trace of its rank and removes the
/// execution traces. If all are execution traces, only leaves out those without times that lie next
/// to others with times.
void link_execution_traces(std::vector<Trace>& traces, Notes& notes);

/// Links the traces with the execution trace, or the folder of execution traces, that the options
/// name. Throws TraceError if the path holds a trace of another kind.
void link_given_execution_trace(std::vector<Trace>& traces, const ImportOptions& options);

}  // namespace foretrace
