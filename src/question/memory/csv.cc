#include <ostream>

#include "analysis/memory/blocks.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"

namespace foretrace {
namespace {

/// Writes the task that made or freed a block; empty if that was not recorded.
void write_task(const Graph& graph, TaskId task, std::ostream& out) {
  out << ',';
  if (task != kNoTask) out << csv_text(graph.name(task));
}

void write_maker(const Graph& graph, const Allocation& block, std::ostream& out) {
  out << ',';
  if (block.made_by == kNoTask) {
    out << ",,,";
    return;
  }
  const Task& task = graph.task(block.made_by);
  const auto step = static_cast<std::size_t>(task.step);
  if (task.step >= 0 && step < graph.steps().size()) out << csv_text(graph.steps()[step].name);
  out << ',' << to_string(task.phase) << ',' << csv_text(graph.names()[task.module]) << ',';
  if (task.layer >= 0) out << task.layer;
}

}  // namespace

void write_csv(const MemoryReport& report, const Graph& graph, std::ostream& out) {
  out << "block,device,bytes,requested_bytes,use,made_ns,freed_ns,lifetime_ns,was_there,is_left,"
         "accesses,step,phase,module,layer,op,stack,made_by,freed_by\n";
  const AccessLists accesses(graph);
  for (const TimedBlock& timed : report.timed_blocks) {
    const Allocation& block = graph.allocations()[timed.allocation];
    out << timed.allocation << ',' << block.device << ',' << block.bytes.count << ',';
    if (block.requested > Bytes{}) out << block.requested.count;
    out << ',' << to_string(block.use) << ',' << timed.made.count() << ',' << timed.freed.count()
        << ',' << (timed.freed - timed.made).count() << ',' << timed.was_there << ','
        << timed.is_left << ',' << accesses.of(timed.allocation).size();
    write_maker(graph, block, out);
    out << ',' << csv_text(graph.names()[block.op]) << ',' << csv_text(graph.names()[block.stack]);
    write_task(graph, block.made_by, out);
    write_task(graph, block.freed_by, out);
    out << '\n';
  }
}

}  // namespace foretrace
