// Describes how long blocks are unused. A block is accessed when it is made, by each task that
// reads or writes it, and when it is freed. Its content is only needed between two accesses by
// tasks, so only in these intervals can it be moved to the host and back.

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/memory/blocks.h"
#include "analysis/memory/swap_plan.h"
#include "foretrace/machine.h"

namespace foretrace {
namespace {

/// Smaller blocks are not worth a copy of their own (AutoSwap uses the same limit).
constexpr Bytes kMinMoved{1'000'000};

struct BlockAccess {
  Nanoseconds begin{0}, end{0};
  TaskId task = kNoTask;  ///< kNoTask: the block is made or freed.
};

struct SwappableInterval {
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
    section_.bins = histogram_.trimmed_bins();
    section_.candidates = std::ssize(swappable_);
    section_.best = best_swaps();
    sum_needs();
    plan();
  }

 private:
  void visit(const TimedBlock& block, std::span<const Access> accesses) {
    accesses_.clear();
    for (const Access& access : accesses) {
      if (memory_.graph.removed(access.task)) continue;
      const std::uint32_t task = index(access.task);
      accesses_.push_back(
          {memory_.timeline.start[task], memory_.timeline.finish[task], access.task});
    }
    if (accesses_.empty()) return add_need(block, block.made, block.freed);
    std::sort(accesses_.begin(), accesses_.end(), [](const BlockAccess& a, const BlockAccess& b) {
      return std::tie(a.begin, a.task) < std::tie(b.begin, b.task);
    });
    const auto same = [](const BlockAccess& a, const BlockAccess& b) { return a.task == b.task; };
    accesses_.erase(std::unique(accesses_.begin(), accesses_.end(), same), accesses_.end());
    section_.accesses += std::ssize(accesses_);
    note_needs(block);
    // The host runs ahead of the device, so it often frees a block before the last access runs.
    if (!block.was_there && block.made <= accesses_.front().begin)
      accesses_.insert(accesses_.begin(), {block.made, block.made, kNoTask});
    if (!block.is_left && block.freed >= accesses_.back().end)
      accesses_.push_back({block.freed, block.freed, kNoTask});
    Nanoseconds end = accesses_.front().end;
    for (std::size_t i = 1; i < accesses_.size(); ++i) {
      add_interval(block, accesses_[i - 1], accesses_[i], end);
      end = std::max(end, accesses_[i].end);
    }
  }

  /// Notes that the block is needed from its first access to its last; from the beginning if it
  /// existed before the recording, and to the end if it is never freed.
  void note_needs(const TimedBlock& block) {
    Nanoseconds last = accesses_.back().end;
    for (const BlockAccess& access : accesses_) last = std::max(last, access.end);
    add_need(block, block.was_there ? block.made : accesses_.front().begin,
             block.is_left ? block.freed : last);
  }

  void add_need(const TimedBlock& block, Nanoseconds from, Nanoseconds to) {
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

  void add_interval(const TimedBlock& block, const BlockAccess& before, const BlockAccess& after,
                    Nanoseconds begin) {
    if (!memory_.in_window(after.begin)) return;
    const Bytes bytes = memory_.allocation(block.allocation).bytes;
    const Nanoseconds interval = std::max(after.begin - begin, 0ns);
    const bool between_accesses = before.task != kNoTask && after.task != kNoTask;
    const bool fits = between_accesses && bytes <= swappable(interval, question_.out, question_.in);
    times_.push_back(interval);
    TimeBin& bin = histogram_.bin_of(interval);
    ++bin.count, bin.bytes += bytes, bin.hideable += fits;
    ++section_.intervals, section_.hideable += fits;
    if (!fits || bytes < kMinMoved) return;
    swappable_.push_back({{bytes, begin, after.begin}, block.allocation, before.task, after.task});
  }

  Nanoseconds copy_time(Bytes bytes) const {
    return time_for(bytes, question_.out) + time_for(bytes, question_.in);
  }

  /// Returns the intervals that are most worth swapping, by the bytes that are away times how long
  /// (AutoSwap's AOA). The same interval in several steps is one row.
  std::vector<SwapRow> best_swaps() const {
    using Key = std::tuple<NameId, NameId, NameId, NameId, std::int64_t>;
    std::map<Key, SwapRow> rows;
    for (const SwappableInterval& one : swappable_) {
      const Allocation& block = memory_.allocation(one.allocation);
      const Graph& graph = memory_.graph;
      SwapRow& row = rows[{block.op, block.stack, graph.task(one.before).name,
                           graph.task(one.after).name, block.bytes.count}];
      const Nanoseconds interval = one.candidate.end - one.candidate.begin;
      row.interval = row.times == 0 ? interval : std::min(row.interval, interval);
      if (++row.times > 1) continue;
      row.bytes = block.bytes, row.use = block.use, row.copies = copy_time(block.bytes);
      row.op = maker_of(graph, block), row.line = line_of(graph, block);
      row.before = graph.name(one.before), row.after = graph.name(one.after);
    }
    std::vector<SwapRow> all;
    for (auto& [key, row] : rows) all.push_back(std::move(row));
    const auto byte_time = [](const SwapRow& row) {
      return static_cast<double>(row.bytes.count) *
             static_cast<double>((row.interval - row.copies).count());
    };
    std::stable_sort(all.begin(), all.end(), [&](const SwapRow& a, const SwapRow& b) {
      return byte_time(a) > byte_time(b);
    });
    if (all.size() > question_.top) all.resize(question_.top);
    return all;
  }

  void plan() {
    std::vector<SwapCandidate> candidates;
    for (const SwappableInterval& one : swappable_) candidates.push_back(one.candidate);
    const SwapEstimate plan =
        plan_swaps(section_.needs, memory_.to, candidates, question_.out, question_.in);
    section_.bound = plan.bound, section_.planned = plan.planned;
    section_.moved = plan.moved, section_.moved_bytes = plan.moved_bytes;
  }

  const DeviceMemory& memory_;
  const MemoryQuestion& question_;
  IntervalSection& section_;
  std::vector<BlockAccess> accesses_;  ///< Accesses of the current block.
  std::vector<Nanoseconds> times_;
  TimeHistogram histogram_;
  std::vector<MemoryCurve::Point> needs_;  ///< Changes of the needed memory, not levels.
  std::vector<SwappableInterval> swappable_;
};

}  // namespace

void describe_intervals(const DeviceMemory& memory, const MemoryQuestion& question,
                        MemoryReport& report) {
  IntervalAnalysis(memory, question, report.intervals).describe();
}

}  // namespace foretrace
