// Describes how long blocks are unused. A block is touched when it is made, by each task that reads
// or writes it, and when it is freed. Its content is only needed between two accesses by tasks, so
// only in these intervals can it be moved to the host and back.

#include <algorithm>
#include <map>
#include <tuple>

#include "foretrace/machine.h"
#include "report/memory/blocks.h"
#include "report/memory/swap_plan.h"

namespace foretrace {
namespace {

/// Smaller blocks are not worth a copy of their own (AutoSwap uses the same limit).
constexpr Bytes kLeastMoved{1'000'000};

struct Touch {
  Nanoseconds begin{0}, end{0};
  TaskId task = kNoTask;  ///< kNoTask: the block is made or freed.
};

struct Hideable {
  SwapCandidate candidate;
  std::uint32_t allocation = 0;
  TaskId before = kNoTask, after = kNoTask;
};

class IntervalAnalysis {
 public:
  IntervalAnalysis(const DeviceMemory& memory, const MemoryQuestion& question,
                   IntervalSection& section)
      : memory_(memory), question_(question), section_(section) {}

  void describe() {
    section_.out = question_.out, section_.in = question_.in;
    const AccessLists lists(memory_.graph);
    for (const TimedBlock& block : memory_.blocks) visit(block, lists.of(block.allocation));
    section_.known = section_.accesses > 0;
    if (!section_.known) return;
    section_.times = quantiles(std::move(times_));
    section_.bins = decades_.used();
    section_.candidates = std::ssize(hideable_);
    section_.best = best();
    sum_needs();
    plan();
  }

 private:
  void visit(const TimedBlock& block, std::span<const Access> accesses) {
    touches_.clear();
    for (const Access& access : accesses) {
      if (memory_.graph.removed(access.task)) continue;
      const std::uint32_t task = index(access.task);
      touches_.push_back(
          {memory_.timeline.start[task], memory_.timeline.finish[task], access.task});
    }
    if (touches_.empty()) return need(block, block.made, block.freed);
    std::sort(touches_.begin(), touches_.end(), [](const Touch& a, const Touch& b) {
      return std::tie(a.begin, a.task) < std::tie(b.begin, b.task);
    });
    const auto same = [](const Touch& a, const Touch& b) { return a.task == b.task; };
    touches_.erase(std::unique(touches_.begin(), touches_.end(), same), touches_.end());
    section_.accesses += std::ssize(touches_);
    note_needs(block);
    // The host runs ahead of the device, so it often frees a block before the last access runs.
    if (!block.was_there && block.made <= touches_.front().begin)
      touches_.insert(touches_.begin(), {block.made, block.made, kNoTask});
    if (!block.is_left && block.freed >= touches_.back().end)
      touches_.push_back({block.freed, block.freed, kNoTask});
    Nanoseconds end = touches_.front().end;
    for (std::size_t i = 1; i < touches_.size(); ++i) {
      add(block, touches_[i - 1], touches_[i], end);
      end = std::max(end, touches_[i].end);
    }
  }

  /// Notes that the block is needed from its first access to its last; from the beginning if it
  /// existed before the recording, and to the end if it is never freed.
  void note_needs(const TimedBlock& block) {
    Nanoseconds last = touches_.back().end;
    for (const Touch& touch : touches_) last = std::max(last, touch.end);
    need(block, block.was_there ? block.made : touches_.front().begin,
         block.is_left ? block.freed : last);
  }

  void need(const TimedBlock& block, Nanoseconds from, Nanoseconds to) {
    const Bytes bytes = memory_.allocation(block.allocation).bytes;
    needs_.push_back({from, bytes});
    needs_.push_back({std::max(from, to), Bytes{-bytes.count}});
  }

  /// Sums the changes up to the level of needed memory in the window.
  void sum_needs() {
    const auto order = [](const MemoryCurve::Point& a, const MemoryCurve::Point& b) {
      return std::tie(a.time, a.allocated) < std::tie(b.time, b.allocated);
    };
    std::sort(needs_.begin(), needs_.end(), order);
    std::vector<MemoryCurve::Point>& curve = section_.needs;
    curve.push_back({memory_.from, memory_.unnamed});
    for (const MemoryCurve::Point& change : needs_) {
      if (change.time > memory_.to) break;
      const Bytes level = curve.back().allocated + change.allocated;
      if (change.time > curve.back().time) curve.push_back({change.time, {}});
      curve.back().allocated = level;
    }
    for (const MemoryCurve::Point& point : curve)
      section_.needed = std::max(section_.needed, point.allocated);
  }

  void add(const TimedBlock& block, const Touch& before, const Touch& after, Nanoseconds begin) {
    if (!memory_.in_window(after.begin)) return;
    const Bytes bytes = memory_.allocation(block.allocation).bytes;
    const Nanoseconds interval = std::max(after.begin - begin, 0ns);
    const bool between_accesses = before.task != kNoTask && after.task != kNoTask;
    const bool fits = between_accesses && bytes <= swappable(interval, question_.out, question_.in);
    times_.push_back(interval);
    TimeBin& bin = decades_.at(interval);
    ++bin.count, bin.bytes += bytes, bin.hideable += fits;
    ++section_.intervals, section_.hideable += fits;
    if (!fits || bytes < kLeastMoved) return;
    hideable_.push_back({{bytes, begin, after.begin}, block.allocation, before.task, after.task});
  }

  Nanoseconds copies(Bytes bytes) const {
    return time_for(bytes, question_.out) + time_for(bytes, question_.in);
  }

  /// Returns the intervals that are most worth swapping, by the bytes that are away times how long
  /// (AutoSwap's AOA). The same interval in several steps is one row.
  std::vector<SwapRow> best() const {
    using Key = std::tuple<NameId, NameId, NameId, NameId, std::int64_t>;
    std::map<Key, SwapRow> rows;
    for (const Hideable& one : hideable_) {
      const Allocation& block = memory_.allocation(one.allocation);
      const Graph& graph = memory_.graph;
      SwapRow& row = rows[{block.op, block.stack, graph.task(one.before).name,
                           graph.task(one.after).name, block.bytes.count}];
      const Nanoseconds interval = one.candidate.end - one.candidate.begin;
      row.interval = row.times == 0 ? interval : std::min(row.interval, interval);
      if (++row.times > 1) continue;
      row.bytes = block.bytes, row.use = block.use, row.copies = copies(block.bytes);
      row.op = maker_of(graph, block), row.line = line_of(graph, block);
      row.before = graph.name(one.before), row.after = graph.name(one.after);
    }
    std::vector<SwapRow> all;
    for (auto& [key, row] : rows) all.push_back(std::move(row));
    const auto worth = [](const SwapRow& row) {
      return static_cast<double>(row.bytes.count) *
             static_cast<double>((row.interval - row.copies).count());
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const SwapRow& a, const SwapRow& b) { return worth(a) > worth(b); });
    if (all.size() > question_.top) all.resize(question_.top);
    return all;
  }

  void plan() {
    std::vector<SwapCandidate> candidates;
    for (const Hideable& one : hideable_) candidates.push_back(one.candidate);
    const SwapEstimate plan =
        plan_swaps(section_.needs, memory_.to, candidates, question_.out, question_.in);
    section_.bound = plan.bound, section_.planned = plan.planned;
    section_.moved = plan.moved, section_.moved_bytes = plan.moved_bytes;
  }

  const DeviceMemory& memory_;
  const MemoryQuestion& question_;
  IntervalSection& section_;
  std::vector<Touch> touches_;  ///< Accesses of the current block.
  std::vector<Nanoseconds> times_;
  Decades decades_;
  std::vector<MemoryCurve::Point> needs_;  ///< Changes of the needed memory, not levels.
  std::vector<Hideable> hideable_;
};

}  // namespace

void describe_intervals(const DeviceMemory& memory, const MemoryQuestion& question,
                        MemoryReport& report) {
  IntervalAnalysis(memory, question, report.intervals).describe();
}

}  // namespace foretrace
