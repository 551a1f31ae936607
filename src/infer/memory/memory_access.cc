// Finds which device tasks use a block:
//
//     writes   by the tasks that the op that requested the block launched after the request: the
//              innermost op around it that launched anything, or else the next op that did
//     reads    by the next ops that took a tensor of its size, until one writes such a block; if
//              shapes were not recorded, or no op took one, by the next op that launched anything
//     changes  an op that changes a block in place reads and writes it; see memory_in_place.cc
//     saved    the backward node with the sequence number of a forward op reads what that op read
//              and wrote, as far as it still exists; if both consist of very many ops, in reverse
//              order, see memory_mirror.cc
//     freed    a block that the backward pass frees was read by the node that frees it
//     weights  the ops that take a parameter read it
//     update   the optimizer reads gradients, and reads and writes parameters and states, with the
//              first and last kernel that took a tensor of their size, or else its first and last
//
// If an execution trace has the arguments and results of an op, they are used instead.
//
// An op can only use a block that the host has allocated when it launches. The device may lag far
// behind, because frees on the same stream are safe.

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

class AccessFinder {
 public:
  AccessFinder(const Program& program, const std::vector<BlockSites>& sites,
               const LaunchedWork& work, Graph& graph)
      : records_(program.records),
        host_(program.host),
        sites_(sites),
        work_(work),
        graph_(graph),
        has_backward_reader_(sites.size(), 0) {
    used_blocks_.resize(host_.segments.size());
    for (std::size_t t = 0; t < used_blocks_.size(); ++t) {
      used_blocks_[t].resize(work.works(static_cast<std::uint16_t>(t)).size());
    }
  }

  void find(const std::vector<WeightUse>& weights) {
    find_devices();
    for (std::uint32_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].made.exists()) find_writers(i);
    }
    for (std::uint32_t i = 0; i < sites_.size(); ++i) find_readers(i);
    if (has_shapes_) find_changed();
    for (const WeightUse& weight : weights) find_reads_of_weight(weight);
    find_saved();
    for (std::uint32_t i = 0; i < sites_.size(); ++i) find_last_reader(i);
    find_updates();
    for (const MeasuredUses& uses : measured_uses(host_, sites_, graph_.allocations()))
      add_measured(uses);
    remove_duplicates();
  }

 private:
  struct LastWrite {
    std::uint16_t thread = 0;
    /// Last work of the thread that writes it; kNone if none does.
    std::uint32_t last_work = kNone;
  };

  /// Decides whether all blocks and events are on one device. Profilers of AMD number devices
  /// differently for kernels and for allocators, so if there is one of each they are the same.
  void find_devices() {
    const std::vector<Allocation>& blocks = graph_.allocations();
    one_device_ = std::all_of(blocks.begin(), blocks.end(),
                              [&](const Allocation& b) { return b.device == blocks[0].device; });
    for (const DeviceEvent& event : records_.events) {
      one_device_ &= device_of(event) == device_of(records_.events[0]);
    }
    has_shapes_ = std::any_of(host_.trace.op_details.begin(), host_.trace.op_details.end(),
                              [](const OpDetails& details) { return details.shapes != NameId{}; });
  }
  std::int32_t device_of(const DeviceEvent& event) const {
    return host_.trace.streams[event.stream].device;
  }

  bool exists_at(std::uint32_t block, std::int64_t time) const {
    const BlockSites& sites = sites_[block];
    if (sites.made.exists() && time < sites.made.time) return false;
    return !sites.freed.exists() || time <= sites.freed.time;
  }

  /// Records that a work uses an existing block; returns false if it cannot. If an op launches very
  /// many tasks, the first and the last represent all.
  bool add_accesses(std::uint32_t block, std::uint16_t thread, std::uint32_t number, bool writes,
                    Provenance provenance = Provenance::inferred) {
    const OpWork& work = work_.works(thread)[number];
    bool any = false;
    for (std::uint32_t i = work.first; i < work.last; ++i) {
      if (i == work.first + kMaxLaunches) i = std::max(i, work.last - kMaxLaunches);
      any |= add_access(work_.launches(thread)[i], block, writes, provenance);
    }
    if (any) used_blocks_[thread][number].push_back(block);
    return any;
  }

  bool add_access(const LaunchedWork::Launch& launch, std::uint32_t block, bool writes,
                  Provenance provenance) {
    const DeviceEvent& event = records_.events[launch.event];
    const std::int32_t device = graph_.allocations()[block].device;
    if (!one_device_ && device_of(event) != device) return false;
    if (!exists_at(block, launch.time)) return false;
    // A copy from the host only writes a device block; a copy to it only reads one.
    if (event.kind == (writes ? TaskKind::copy_out : TaskKind::copy_in)) return false;
    graph_.accesses().push_back({block, event.task, writes, provenance});
    if (!writes && graph_.task(event.task).phase == Phase::backward) {
      has_backward_reader_[block] = 1;
    }
    return true;
  }

  std::int64_t finish_of(std::uint32_t record) const {
    const HostRecord& host = host_.trace.hosts[record];
    return host.start_ns + host.duration_ns;
  }

  void find_writers(std::uint32_t block) {
    const MemorySite& made = sites_[block].made;
    const auto launches = work_.launches(made.thread);
    const std::uint32_t first = work_.first_launch(made.thread, made.time);
    last_writes_.resize(sites_.size());
    if (first == launches.size() || !exists_at(block, launches[first].time)) return;
    const std::int64_t until = writing_op_finish(made, launches[first].time);
    const auto works = work_.works(made.thread);
    const std::uint32_t begin = launches[first].work;
    std::uint32_t last = begin;
    for (std::uint32_t i = begin; i < works.size() && i < begin + kMaxAhead; ++i) {
      if (i > begin && (works[i].time > until || !exists_at(block, works[i].time))) break;
      add_accesses(block, made.thread, last = i, true);
    }
    last_writes_[block] = {made.thread, last};
    if (!has_shapes_) return;
    writes_of_size_.emplace(made.thread, last, graph_.allocations()[block].bytes.count);
  }

  /// Returns the finish of the innermost op around the request that is still open at `launch`.
  std::int64_t writing_op_finish(const MemorySite& made, std::int64_t launch) const {
    int depth = 0;
    for (std::uint32_t at = made.context; at != kNone && depth < kMaxDepth;
         at = host_.contexts[at].parent, ++depth) {
      const std::uint32_t op = host_.contexts[at].op;
      if (op == kNone) break;
      if (finish_of(op) >= launch) return finish_of(op);
      if (op == made.unit) break;
    }
    return launch;
  }

  /// Returns the input sizes of the innermost op around a work whose shapes were recorded.
  const std::vector<std::int64_t>& inputs_of(const OpWork& work) {
    static const std::vector<std::int64_t> nothing;
    if (!has_shapes_) return nothing;
    int depth = 0;
    for (std::uint32_t at = work.context; at != kNone && depth < kMaxDepth;
         at = host_.contexts[at].parent, ++depth) {
      const std::uint32_t op = host_.contexts[at].op;
      if (op == kNone) break;
      const std::uint32_t details = host_.trace.hosts[op].details;
      if (details == kNone) continue;
      const NameId shapes = host_.trace.op_details[details].shapes;
      const NameId types = host_.trace.op_details[details].types;
      if (shapes == NameId{} || types == NameId{}) continue;
      const auto [found, is_new] =
          inputs_.try_emplace(std::uint64_t{static_cast<std::uint32_t>(shapes)} << 32U |
                              static_cast<std::uint32_t>(types));
      if (is_new) found->second = input_bytes(host_.trace, op);
      if (!found->second.empty()) return found->second;
    }
    return nothing;
  }

  bool takes(const OpWork& work, std::int64_t block_bytes) {
    const std::vector<std::int64_t>& inputs = inputs_of(work);
    return std::any_of(inputs.begin(), inputs.end(), [&](std::int64_t bytes) {
      return bytes > 0 && in_blocks(bytes) == block_bytes;
    });
  }

  void find_readers(std::uint32_t block) {
    if (last_writes_.empty() || last_writes_[block].last_work == kNone) return;
    const std::uint16_t thread = last_writes_[block].thread;
    const std::int64_t bytes = graph_.allocations()[block].bytes.count;
    const auto works = work_.works(thread);
    const std::uint32_t next = last_writes_[block].last_work + 1;
    bool any = false;
    for (std::uint32_t i = next; has_shapes_ && i < works.size() && i < next + kMaxAhead; ++i) {
      if (!exists_at(block, works[i].time)) break;
      if (takes(works[i], bytes) && add_accesses(block, thread, i, false)) any = true;
      if (writes_of_size_.contains({thread, i, bytes})) break;
    }
    // Gradients and states wait for the update; the next op does not read them.
    const MemoryUse use = graph_.allocations()[block].use;
    if (use == MemoryUse::optimizer_state || use == MemoryUse::gradient) return;
    // Skips works that cannot read the block, such as copies from the host.
    for (std::uint32_t i = next; !any && i < works.size() && i < next + kMaxAhead; ++i) {
      if (!exists_at(block, works[i].time)) break;
      any = add_accesses(block, thread, i, false);
    }
  }

  /// Finds ops that change blocks in place, which read and write them.
  void find_changed() {
    std::vector<std::vector<BlockHistory>> histories(used_blocks_.size());
    std::vector<std::uint32_t> number(sites_.size(), kNone);
    for (std::uint32_t i = 0; i < last_writes_.size(); ++i) {
      if (last_writes_[i].last_work == kNone) continue;
      std::vector<BlockHistory>& of_thread = histories[last_writes_[i].thread];
      number[i] = static_cast<std::uint32_t>(of_thread.size());
      of_thread.push_back({.block = i,
                           .last_write = last_writes_[i].last_work,
                           .freed = sites_[i].freed.exists()
                                        ? sites_[i].freed.time
                                        : std::numeric_limits<std::int64_t>::max()});
    }
    for (std::uint16_t thread = 0; thread < used_blocks_.size(); ++thread) {
      for (std::uint32_t work = 0; work < used_blocks_[thread].size(); ++work) {
        for (const std::uint32_t block : used_blocks_[thread][work]) {
          if (number[block] == kNone || last_writes_[block].thread != thread) continue;
          if (work > last_writes_[block].last_work)
            histories[thread][number[block]].reads.push_back(work);
        }
      }
      for (const BlockChange& change :
           find_changes(host_, work_.works(thread), histories[thread], graph_.allocations())) {
        add_accesses(change.block, thread, change.work, false);
        add_accesses(change.block, thread, change.work, true);
      }
    }
  }

  void find_reads_of_weight(const WeightUse& weight) {
    const HostRecord& op = host_.trace.hosts[weight.op];
    const auto [from, to] = works_in(op.thread, op.start_ns, op.start_ns + op.duration_ns);
    for (std::uint32_t i = from; i < std::min(to, from + kMaxAhead); ++i) {
      add_accesses(weight.block, op.thread, i, false);
      if (weight.writes) add_accesses(weight.block, op.thread, i, true);
    }
  }

  struct Span {
    std::uint32_t op = kNone;
    std::uint16_t thread = 0;
    std::int64_t start = 0, finish = 0;
  };

  /// Finds, for each sequence number, the op that created the autograd node, and the node. Ops
  /// before the creating one carry the number, too, so the last to begin is chosen; of nested
  /// nodes, the outermost.
  void find_saved() {
    std::map<std::int64_t, std::pair<Span, Span>> nodes;
    for (const Context& context : host_.contexts) {
      if (context.op == kNone) continue;
      const HostRecord& host = host_.trace.hosts[context.op];
      if (host.details == kNone) continue;
      const std::int64_t sequence = host_.trace.op_details[host.details].sequence;
      if (sequence < 0) continue;
      auto& [forward, backward] = nodes[sequence];
      const Span span{context.op, host.thread, host.start_ns, host.start_ns + host.duration_ns};
      if (context.phase == Phase::backward) {
        if (backward.op == kNone || span.start < backward.start) backward = span;
      } else if (forward.op == kNone || span.start >= forward.start) {
        forward = span;
      }
    }
    for (const auto& [sequence, both] : nodes) {
      if (both.first.op != kNone && both.second.op != kNone)
        find_saved_reads(both.first, both.second);
    }
  }

  /// Returns the range of a thread's works in a span of time.
  std::pair<std::uint32_t, std::uint32_t> works_in(std::uint16_t thread, std::int64_t start,
                                                   std::int64_t finish) const {
    const auto works = work_.works(thread);
    const auto from = std::partition_point(works.begin(), works.end(),
                                           [&](const OpWork& w) { return w.time < start; });
    const auto to =
        std::partition_point(from, works.end(), [&](const OpWork& w) { return w.time <= finish; });
    return {static_cast<std::uint32_t>(from - works.begin()),
            static_cast<std::uint32_t>(to - works.begin())};
  }

  void find_saved_reads(const Span& forward, const Span& backward) {
    const auto [from, to] = works_in(forward.thread, forward.start, forward.finish);
    const auto [first, last] = works_in(backward.thread, backward.start, backward.finish);
    if (from == to || first == last) return;
    if (to - from > kMaxAhead || last - first > kMaxAhead) {
      find_saved_reads_in_order({forward.thread, from, to}, {backward.thread, first, last});
      return;
    }
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = from; i < to; ++i) {
      blocks.insert(blocks.end(), used_blocks_[forward.thread][i].begin(),
                    used_blocks_[forward.thread][i].end());
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    for (const std::uint32_t block : blocks) {
      if (!is_saved(block)) continue;
      for (std::uint32_t i = first; i < last; ++i) add_accesses(block, backward.thread, i, false);
    }
  }

  /// Handles an op and a node of many works each. A node that first runs a forward pass again uses
  /// the blocks of the pass at its start.
  void find_saved_reads_in_order(const WorkRange& forward, const WorkRange& backward) {
    const bool again = runs_passes(host_, work_, backward);
    const std::vector<std::uint32_t> mirrored =
        again ? std::vector<std::uint32_t>(forward.last - forward.first, backward.first)
              : mirror_works(host_, work_, forward, backward);
    for (std::uint32_t i = forward.first; i < forward.last; ++i) {
      // A copy, because add_accesses() appends to such lists.
      const std::vector<std::uint32_t> blocks = used_blocks_[forward.thread][i];
      for (const std::uint32_t block : blocks) {
        if (is_saved(block))
          add_accesses(block, backward.thread, mirrored[i - forward.first], false);
      }
    }
  }

  bool is_saved(std::uint32_t block) const {
    const MemoryUse use = graph_.allocations()[block].use;
    return use == MemoryUse::activation || use == MemoryUse::parameter;
  }

  /// Counts the node that frees a block as a reader, or else the last work before the free.
  void find_last_reader(std::uint32_t block) {
    const MemorySite& freed = sites_[block].freed;
    if (!freed.exists() || freed.phase != Phase::backward) return;
    const MemoryUse use = graph_.allocations()[block].use;
    if (use != MemoryUse::activation && use != MemoryUse::gradient) return;
    const std::int64_t start =
        freed.node == kNone ? freed.time : host_.trace.hosts[freed.node].start_ns;
    const auto [from, to] = works_in(freed.thread, start, freed.time);
    if (to - from > kMaxAhead) {
      // At its end, a node with this much work frees blocks that any part of it may have read.
      if (!has_backward_reader_[block]) add_accesses(block, freed.thread, to - 1, false);
    } else if (to > from) {
      for (std::uint32_t i = from; i < to; ++i) add_accesses(block, freed.thread, i, false);
    } else if (to > 0) {
      add_accesses(block, freed.thread, to - 1, false);
    }
  }

  bool updates(const OpWork& work) const {
    return work.context != kNone && host_.contexts[work.context].phase == Phase::update;
  }

  /// Finds the stretches of update works on each thread. Blocks are visited in the order in which
  /// they were made, while they exist.
  void find_updates() {
    std::vector<std::uint32_t> updated;
    for (std::uint32_t i = 0; i < sites_.size(); ++i) {
      const MemoryUse use = graph_.allocations()[i].use;
      if (use == MemoryUse::optimizer_state || use == MemoryUse::gradient ||
          use == MemoryUse::parameter) {
        updated.push_back(i);
      }
    }
    const auto made = [&](std::uint32_t block) {
      return sites_[block].made.exists() ? sites_[block].made.time : -1;
    };
    std::stable_sort(updated.begin(), updated.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return made(a) < made(b); });
    for (std::uint16_t thread = 0; thread < used_blocks_.size(); ++thread) {
      const auto works = work_.works(thread);
      std::vector<std::uint32_t> live;
      auto next = updated.begin();
      for (std::uint32_t i = 0; i < works.size();) {
        const std::uint32_t from = i;
        while (i < works.size() && updates(works[i])) ++i;
        if (i == from) {
          ++i;
          continue;
        }
        while (next != updated.end() && made(*next) <= works[from].time) live.push_back(*next++);
        std::erase_if(live, [&](std::uint32_t b) { return !exists_at(b, works[from].time); });
        update(thread, from, i, live);
      }
    }
  }

  void update(std::uint16_t thread, std::uint32_t from, std::uint32_t to,
              const std::vector<std::uint32_t>& blocks) {
    std::map<std::int64_t, std::pair<std::uint32_t, std::uint32_t>> by_size;
    const auto works = work_.works(thread);
    for (std::uint32_t i = from; i < to; ++i) {
      for (const std::int64_t bytes : inputs_of(works[i])) {
        if (bytes <= 0) continue;
        const auto [found, is_new] = by_size.try_emplace(in_blocks(bytes), i, i);
        if (!is_new) found->second.second = i;
      }
    }
    for (const std::uint32_t block : blocks) {
      const Allocation& allocation = graph_.allocations()[block];
      const auto sized = by_size.find(allocation.bytes.count);
      const auto [first, last] = sized == by_size.end() ? std::pair(from, to - 1) : sized->second;
      add_accesses(block, thread, first, false);
      add_accesses(block, thread, last, allocation.use != MemoryUse::gradient);
    }
  }

  void add_measured(const MeasuredUses& uses) {
    for (const std::uint32_t number : uses.tensors) {
      const TensorRecord& tensor = host_.trace.tensors[number];
      const HostRecord& op = host_.trace.hosts[tensor.host];
      const auto [from, to] = works_in(op.thread, op.start_ns, op.start_ns + op.duration_ns);
      for (std::uint32_t i = from; i < std::min(to, from + kMaxAhead); ++i) {
        add_accesses(uses.block, op.thread, i, tensor.is_output, Provenance::measured);
      }
    }
  }

  /// Removes duplicates. If a block has measured accesses, they replace all inferred ones. Sorts by
  /// block, then by task, writes first.
  void remove_duplicates() {
    std::vector<Access>& all = graph_.accesses();
    const AccessLists lists(graph_);
    all.clear();
    std::vector<Access> of_block;
    for (std::uint32_t block = 0; block < sites_.size(); ++block) {
      const auto recorded = lists.of(block);
      of_block.assign(recorded.begin(), recorded.end());
      const auto measured = [](const Access& a) { return a.provenance == Provenance::measured; };
      if (std::any_of(of_block.begin(), of_block.end(), measured)) {
        std::erase_if(of_block, [&](const Access& a) { return !measured(a); });
      }
      const auto key = [](const Access& a) {
        return std::uint64_t{index(a.task)} << 1U | (a.writes ? 0U : 1U);
      };
      std::sort(of_block.begin(), of_block.end(),
                [&](const Access& a, const Access& b) { return key(a) < key(b); });
      const auto end =
          std::unique(of_block.begin(), of_block.end(),
                      [&](const Access& a, const Access& b) { return key(a) == key(b); });
      all.insert(all.end(), of_block.begin(), end);
    }
  }

  static constexpr int kMaxDepth = 64;
  static constexpr std::uint32_t kMaxAhead = 32;
  static constexpr std::uint32_t kMaxLaunches = 16;

  const Records& records_;
  const HostTime& host_;
  const std::vector<BlockSites>& sites_;
  const LaunchedWork& work_;
  Graph& graph_;
  bool one_device_ = false;
  std::vector<char> has_backward_reader_;  ///< Indexed by block.
  std::vector<LastWrite> last_writes_;
  /// Thread, work, and bytes of the block it writes.
  std::set<std::tuple<std::uint16_t, std::uint32_t, std::int64_t>> writes_of_size_;
  /// By thread and work.
  std::vector<std::vector<std::vector<std::uint32_t>>> used_blocks_;
  bool has_shapes_ = false;
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> inputs_;  ///< By shapes and types.
};

}  // namespace

void find_accesses(const Program& program, const std::vector<BlockSites>& sites,
                   const LaunchedWork& work, const std::vector<WeightUse>& weights, Graph& graph) {
  AccessFinder(program, sites, work, graph).find(weights);
}

}  // namespace foretrace::infer_detail
