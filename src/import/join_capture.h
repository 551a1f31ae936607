#pragma once

// Replayed graphs hold kernels without ops; recordings of their capture hold ops without kernels.
// Joining gives each kernel of a replay the ops of the launch that became its node: by the graph
// and the order in it, and where the recorder of the capture names kernels, these must be the same.
//
//     step of 8,155 + 37 tokens -> the least captured size that holds them: 8,192
//     launches of graphs 1 2 3  -> roots 1 2 3 of that capture, or its only root each time
//     kernels under a launch    -> launches in the root, in order

#include <string>
#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// Joins the trace with the captures that the options name. Throws TraceError if these are of
/// another rank or other sizes, or differ from the trace in graphs, work or order. Otherwise joins
/// it with those beside it: in `capture_traces` or, with a list of captures, in its own folder. If
/// they do not fit, only adds a note. Kernels that are joined, and those that are not, are counted
/// in notes. A trace of several need not have captures of its rank: vLLM captures rank 0 alone.
void join_captures(Trace& trace, const ImportOptions& options, bool is_of_several = false);

/// Removes recordings of captures that lie beside traces which launch graphs.
void leave_out_captures(std::vector<Trace>& traces, Notes& notes);

}  // namespace foretrace
