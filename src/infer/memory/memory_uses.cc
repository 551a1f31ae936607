// Infers the use of a block from where it is made and freed. The first rule that matches applies:
//
//     input            an op filled it by a copy of its size from the host
//     parameter        made before the first step, and alive at the end of the recording
//     workspace        made and freed inside one op, or one autograd node
//     optimizer_state  made in the update, and alive when the next update begins
//     gradient         made in the backward pass, and alive when that is over; or added by autograd
//                      to an existing gradient
//     activation       made in the forward pass, and alive when the backward pass begins; or alive
//                      before the recording and freed by the backward pass; or made while autograd
//                      was on and never freed, if the recording has no backward pass
//     temporary        made in any phase and freed before that phase is over
//
// A phase is over when an op of another phase begins. Between its ops, the thread of the autograd
// engine frees the values that the last node had saved, so the backward pass frees these blocks. A
// block that the recording cuts off gets the use of similar blocks, if all others of the same size,
// op and source line whose use is known agree. Otherwise it stays unknown.

#include <algorithm>
#include <map>
#include <tuple>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

std::int64_t end_of(const MemorySite& freed) { return freed.exists() ? freed.time : kEver; }

MemoryUse use_from_update(const PhaseTimes& times, std::int64_t made, std::int64_t freed) {
  const std::int64_t over =
      std::min(times.next(Phase::forward, made), times.next(Phase::backward, made));
  if (over == kEver) return freed == kEver ? MemoryUse::unknown : MemoryUse::temporary;
  if (freed <= over) return MemoryUse::temporary;
  const std::int64_t next_update = times.next(Phase::update, over);
  if (next_update == kEver) return freed == kEver ? MemoryUse::unknown : MemoryUse::temporary;
  return freed > next_update ? MemoryUse::optimizer_state : MemoryUse::temporary;
}

MemoryUse use_from_backward(const PhaseTimes& times, std::int64_t made, const MemorySite& freed) {
  if (freed.exists() && freed.phase == Phase::backward &&
      !times.began(Phase::update, made, freed.time)) {
    return MemoryUse::temporary;
  }
  const std::int64_t until = std::min(end_of(freed), kEver - 1);
  const bool survived =
      times.began(Phase::update, made, until) || times.began(Phase::forward, made, until);
  if (survived) return MemoryUse::gradient;
  if (!freed.exists()) return MemoryUse::unknown;
  // If it was freed by another thread after the last backward op, only the program itself held it.
  return times.began(Phase::backward, freed.time, kEver - 1) ? MemoryUse::temporary
                                                             : MemoryUse::gradient;
}

MemoryUse use_from_forward(const PhaseTimes& times, std::int64_t made, const MemorySite& freed) {
  const std::int64_t backward = times.next(Phase::backward, made);
  if (freed.exists()) {
    return freed.time > backward ? MemoryUse::activation : MemoryUse::temporary;
  }
  if (backward == kEver) return MemoryUse::unknown;
  // If it still exists when a later backward pass begins, no backward pass needs it.
  const std::int64_t update = times.next(Phase::update, backward);
  const bool outlived = update != kEver && times.next(Phase::backward, update) != kEver;
  return outlived ? MemoryUse::unknown : MemoryUse::activation;
}

class UseFinder {
 public:
  UseFinder(const Program& program, const std::vector<BlockSites>& sites, const LaunchedWork& work,
            std::vector<Allocation>& blocks)
      : program_(program),
        trace_(program.records.trace),
        sites_(sites),
        work_(work),
        blocks_(blocks),
        sums_(program.host) {
    for (const Context& context : program.host.contexts) {
      if (context.op == kNone) continue;
      times_.add(context.phase, trace_.hosts[context.op].start_ns);
    }
    times_.sort();
  }

  void infer() {
    for (std::size_t i = 0; i < sites_.size(); ++i) blocks_[i].use = use_of(blocks_[i], sites_[i]);
    follow_replacements(blocks_, sites_);
    infer_from_similar();
  }

 private:
  MemoryUse use_of(const Allocation& block, const BlockSites& sites) const {
    const MemorySite& made = sites.made;
    const std::int64_t freed = sites.freed.exists() ? sites.freed.time : kEver;
    if (!made.exists()) return use_by_phases(times_, made, sites.freed);
    if (is_parameter(made, freed)) return MemoryUse::parameter;
    if (is_copied_in(block, made, freed)) return MemoryUse::input;
    if (sums_.frees(sites)) return MemoryUse::gradient;
    if (is_inside(made, sites.freed)) return MemoryUse::workspace;
    const MemoryUse use = use_by_phases(times_, made, sites.freed);
    return use == MemoryUse::unknown && !sites.freed.exists() && is_saved(made)
               ? MemoryUse::activation
               : use;
  }

  bool is_parameter(const MemorySite& made, std::int64_t freed) const {
    return freed == kEver && !program_.steps.marks.empty() &&
           program_.steps.source != StepSource::period && made.phase != Phase::update &&
           made.phase != Phase::backward && made.time < program_.steps.marks.front().start;
  }

  /// Whether a copy from the host as large as the block fills it. A copy has the requested size;
  /// the block may be a little larger.
  bool is_copied_in(const Allocation& block, const MemorySite& made, std::int64_t freed) const {
    if (made.op == kNone || made.phase == Phase::update) return false;
    const HostRecord& op = trace_.hosts[made.op];
    const std::int64_t until = std::min(freed, op.start_ns + op.duration_ns);
    const auto launches = work_.launches(made.thread);
    constexpr int kMax = 4;  // A copy of a new block is among the first tasks launched.
    std::uint32_t at = work_.first_launch(made.thread, made.time);
    for (int i = 0; i < kMax && at < launches.size(); ++i, ++at) {
      if (launches[at].time > until) return false;
      const DeviceEvent& event = program_.records.events[launches[at].event];
      if (event.kind != TaskKind::copy_in) continue;
      const std::int64_t bytes = trace_.devices[event.record].bytes;
      if (bytes > 0 && bytes <= block.bytes.count && block.bytes.count - bytes < kMaxRounding) {
        return bytes * 2 > block.bytes.count || block.bytes.count <= kSmallestBlock;
      }
    }
    return false;
  }

  bool is_inside(const MemorySite& made, const MemorySite& freed) const {
    if (made.unit == kNone || !freed.exists() || freed.thread != made.thread) return false;
    const HostRecord& op = trace_.hosts[made.unit];
    // With coarse clocks, an op that ends in the tick of the event may be followed by the op that
    // the event belongs to.
    return freed.time < op.start_ns + op.duration_ns || freed.unit == made.unit;
  }

  /// Whether autograd may save the block: PyTorch numbers the ops that autograd may have to go back
  /// to.
  bool is_saved(const MemorySite& made) const {
    if (made.op == kNone || made.phase != Phase::forward) return false;
    if (times_.began(Phase::backward, -1, kEver - 1)) return false;
    const std::uint32_t details = trace_.hosts[made.op].details;
    return details != kNone && trace_.op_details[details].sequence > 0;
  }

  void infer_from_similar() {
    using Key = std::tuple<std::int64_t, NameId, NameId, Phase>;
    const auto key_of = [&](std::size_t i) {
      const Allocation& block = blocks_[i];
      return Key{block.bytes.count, block.op, block.stack, sites_[i].made.phase};
    };
    std::map<Key, MemoryUse> known;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (blocks_[i].use == MemoryUse::unknown || blocks_[i].op == NameId{}) continue;
      const auto [found, is_new] = known.try_emplace(key_of(i), blocks_[i].use);
      if (!is_new && found->second != blocks_[i].use) found->second = MemoryUse::unknown;
    }
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (blocks_[i].use != MemoryUse::unknown || blocks_[i].op == NameId{}) continue;
      const auto found = known.find(key_of(i));
      if (found != known.end()) blocks_[i].use = found->second;
    }
  }

  /// Bytes by which a block may exceed the request: the allocator takes large blocks from the
  /// device in units of 2 MB (kRoundLarge in its source).
  static constexpr std::int64_t kMaxRounding = std::int64_t{2} << 20;

  const Program& program_;
  const Trace& trace_;
  const std::vector<BlockSites>& sites_;
  const LaunchedWork& work_;
  std::vector<Allocation>& blocks_;
  GradientSums sums_;
  PhaseTimes times_;
};

}  // namespace

MemoryUse use_by_phases(const PhaseTimes& times, const MemorySite& made, const MemorySite& freed) {
  if (!made.exists()) {
    return freed.phase == Phase::backward ? MemoryUse::activation : MemoryUse::unknown;
  }
  switch (made.phase) {
    case Phase::update:
      return use_from_update(times, made.time, end_of(freed));
    case Phase::backward:
      return use_from_backward(times, made.time, freed);
    case Phase::forward:
      return use_from_forward(times, made.time, freed);
    default:
      return MemoryUse::unknown;
  }
}

namespace {

/// An allocation or free in an update.
struct UpdateEvent {
  std::uint32_t order;
  std::uint32_t block;
  bool frees;
};

std::vector<UpdateEvent> events_of_updates(const std::vector<Allocation>& blocks,
                                           const std::vector<BlockSites>& sites) {
  std::vector<UpdateEvent> events;
  const auto in_update = [](const MemorySite& site) {
    return site.exists() && site.phase == Phase::update;
  };
  for (std::uint32_t i = 0; i < sites.size(); ++i) {
    if (in_update(sites[i].made)) events.push_back({blocks[i].made_order, i, false});
    if (in_update(sites[i].freed)) events.push_back({blocks[i].freed_order, i, true});
  }
  std::sort(events.begin(), events.end(),
            [](const UpdateEvent& a, const UpdateEvent& b) { return a.order < b.order; });
  return events;
}

}  // namespace

void follow_replacements(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites) {
  // For each device and size: blocks made by an update, youngest last, until they are freed or
  // their use is known.
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::uint32_t>> made;
  for (const UpdateEvent& event : events_of_updates(blocks, sites)) {
    const Allocation& block = blocks[event.block];
    // The allocator may round equal requests up to different sizes.
    const std::int64_t size = (block.requested > Bytes{} ? block.requested : block.bytes).count;
    std::vector<std::uint32_t>& alike = made[{block.device, size}];
    if (!event.frees) {
      alike.push_back(event.block);
      continue;
    }
    // Blocks that an update makes and frees itself are young.
    constexpr std::size_t kMaxTried = 64;
    for (std::size_t i = 0; i < std::min(kMaxTried, alike.size()); ++i) {
      const auto at = alike.end() - 1 - static_cast<std::ptrdiff_t>(i);
      if (*at != event.block) continue;
      alike.erase(at);
      break;
    }
    if (block.use != MemoryUse::parameter && block.use != MemoryUse::optimizer_state) continue;
    if (alike.empty()) continue;
    blocks[alike.back()].use = block.use;
    alike.pop_back();
  }
}

void infer_uses(const Program& program, const std::vector<BlockSites>& sites,
                const LaunchedWork& work, std::vector<Allocation>& blocks) {
  UseFinder(program, sites, work, blocks).infer();
}

}  // namespace foretrace::infer_detail
