// Ops that change their arguments. In PyTorch, an aten op whose name ends in '_' changes its first
// argument. Its size is known, but not its block, so it is assumed to be a block that
//
//     is as large, and was filled or changed by an earlier op and not read since,
//     is kept for the backward pass, if there is such a block, and
//     was filled last
//
//     out = norm(x); out += shortcut; relu_(out)     add_ and relu_ both change `out`
//
// An op may rarely change a block that was read before, because autograd would need the old value.

#include <algorithm>
#include <map>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

class ChangeFinder {
 public:
  ChangeFinder(const std::vector<BlockHistory>& histories, const std::vector<Allocation>& blocks)
      : histories_(histories),
        blocks_(blocks),
        changed_(histories.size(), 0),
        next_(histories.size(), 0) {
    order_.reserve(histories.size());
    for (std::uint32_t i = 0; i < histories.size(); ++i) order_.push_back(i);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(histories[a].last_write, a) < std::pair(histories[b].last_write, b);
    });
  }

  /// Returns the block that a work changes, or kNone. REQUIRES: works come in order.
  std::uint32_t changed_by(std::uint32_t work, std::int64_t time, std::int64_t bytes) {
    while (begun_ < order_.size() && histories_[order_[begun_]].last_write < work) {
      const std::uint32_t number = order_[begun_++];
      changed_[number] = histories_[number].last_write;
      candidates_[size_of(number)].push_back(number);
    }
    const auto found = candidates_.find(bytes);
    if (found == candidates_.end()) return kNone;
    std::vector<std::uint32_t>& numbers = found->second;
    std::erase_if(numbers, [&](std::uint32_t i) { return histories_[i].freed < time; });
    std::uint32_t best = kNone;
    for (auto i = numbers.rbegin(); i != numbers.rend(); ++i) {
      if (was_read(*i, work)) continue;
      if (is_kept(*i)) return take(*i, work);
      if (best == kNone) best = *i;
    }
    return best == kNone ? kNone : take(best, work);
  }

 private:
  std::int64_t size_of(std::uint32_t number) const {
    return blocks_[histories_[number].block].bytes.count;
  }
  bool is_kept(std::uint32_t number) const {
    return blocks_[histories_[number].block].use == MemoryUse::activation;
  }
  /// Whether the block was read between its last change and `work`.
  bool was_read(std::uint32_t number, std::uint32_t work) {
    const std::vector<std::uint32_t>& reads = histories_[number].reads;
    std::size_t& next = next_[number];
    while (next < reads.size() && reads[next] <= changed_[number]) ++next;
    return next < reads.size() && reads[next] < work;
  }
  std::uint32_t take(std::uint32_t number, std::uint32_t work) {
    changed_[number] = work;
    return number;
  }

  const std::vector<BlockHistory>& histories_;
  const std::vector<Allocation>& blocks_;
  std::vector<std::uint32_t> changed_;  ///< Last work that changed each block.
  std::vector<std::size_t> next_;       ///< For each block, the first entry of `reads` after that.
  std::vector<std::uint32_t> order_;
  std::size_t begun_ = 0;
  /// By size, in order of `last_write`.
  std::map<std::int64_t, std::vector<std::uint32_t>> candidates_;
};

/// Returns the size of the tensor that the innermost in-place op around a work changes, as an
/// allocator counts it; 0 if there is none. Outer ops count, because aten::clamp_min_ calls
/// aten::clamp_min.
std::int64_t changed_bytes(const HostTime& host, const OpWork& work) {
  constexpr int kMaxDepth = 64;
  int depth = 0;
  for (std::uint32_t at = work.context; at != kNone && depth < kMaxDepth;
       at = host.contexts[at].parent, ++depth) {
    const Context& context = host.contexts[at];
    if (context.op == kNone || context.phase == Phase::update) return 0;
    const std::string_view name = host.name(host.trace.hosts[context.op]);
    if (!name.starts_with("aten::")) return 0;
    if (!name.ends_with('_') || name.ends_with("__")) continue;
    const std::vector<std::int64_t> inputs = input_bytes(host.trace, context.op);
    return inputs.empty() ? 0 : in_blocks(inputs[0]);
  }
  return 0;
}

}  // namespace

std::vector<BlockChange> find_changes(const HostTime& host, std::span<const OpWork> works,
                                      const std::vector<BlockHistory>& histories,
                                      const std::vector<Allocation>& blocks) {
  ChangeFinder finder(histories, blocks);
  std::vector<BlockChange> found;
  for (std::uint32_t i = 0; i < works.size(); ++i) {
    const std::int64_t bytes = changed_bytes(host, works[i]);
    if (bytes <= 0) continue;
    const std::uint32_t number = finder.changed_by(i, works[i].time, bytes);
    if (number != kNone) found.push_back({histories[number].block, i});
  }
  return found;
}

}  // namespace foretrace::infer_detail
