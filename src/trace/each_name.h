#pragma once

// Visits every place in a trace that contains a name.

#include "foretrace/trace.h"

namespace foretrace {

/// Calls `visit` with a reference to each NameId in the tables, so that `visit` may change it.
template <class Visit>
void each_name(Trace& trace, Visit&& visit) {
  for (HostRecord& record : trace.hosts) visit(record.name);
  for (DeviceRecord& record : trace.devices) visit(record.name);
  for (MemoryRecord& record : trace.memory) visit(record.stack);
  for (MemorySegment& segment : trace.segments) visit(segment.stack), visit(segment.pool);
  for (MemoryBlock& block : trace.blocks) visit(block.stack);
  for (TensorRecord& tensor : trace.tensors) visit(tensor.type), visit(tensor.shape);
  for (OpDetails& details : trace.op_details) {
    visit(details.shapes), visit(details.types), visit(details.values), visit(details.stack);
    visit(details.kernel);
  }
  for (CapturedNode& node : trace.captured) {
    for (NameId* const name :
         {&node.path, &node.op, &node.shapes, &node.types, &node.values, &node.module, &node.stack})
      visit(*name);
  }
  for (CollectiveDetails& details : trace.collectives) {
    visit(details.collective), visit(details.dtype), visit(details.group), visit(details.ranks);
  }
}

}  // namespace foretrace
