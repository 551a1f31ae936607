#pragma once

// Data shared by the rules about memory: where each block was made and freed, and which op launched
// which work. memory.cc pairs the events and calls the rules in order:
//
//     memory.cc           turns allocator events into blocks: who made and freed them, and when
//     memory_sites.cc     the context of an event on its thread: ops, source lines
//     memory_uses.cc      the use of a block, inferred from where it was made and freed
//     memory_work.cc      which op launched which device tasks
//     memory_gradients.cc gradients that autograd adds to existing ones
//     memory_initial.cc   parameters that no event mentions
//     memory_access.cc    which device tasks write and read a block
//     memory_in_place.cc  accesses of ops that change their arguments
//     memory_mirror.cc    pairs the works of a forward pass with those of its backward pass
//     memory_tensors.cc   accesses to blocks as recorded in an execution trace

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "infer/passes.h"

namespace foretrace::infer_detail {

/// PyTorch's caching allocator hands out multiples of this many bytes (kMinBlockSize in its
/// source).
inline constexpr std::int64_t kSmallestBlock = 512;
inline constexpr std::int64_t in_blocks(std::int64_t bytes) {
  return (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock;
}

/// A time later than any event.
inline constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();

/// The context of an allocator event. It is empty on a thread without records around the event.
struct MemorySite {
  std::int64_t time = 0;
  std::uint32_t record = kNone;   ///< Index into Trace::memory; kNone if there is no such event.
  std::uint32_t context = kNone;  ///< Index into HostTime::contexts of the innermost op.
  std::uint32_t op = kNone;       ///< Host record of the op that users recognise; see NamedOps.
  std::uint32_t unit = kNone;     ///< The operator, or else the autograd node, it is in; or kNone.
  std::uint32_t node = kNone;     ///< Host record of the autograd node around it; see NamedOps.
  std::uint16_t thread = 0;
  Phase phase = Phase::none;

  bool exists() const { return record != kNone; }
};

/// Where the allocation of the graph with the same index was made and freed.
struct BlockSites {
  MemorySite made, freed;
};

/// The times at which ops of each phase began, over all threads.
class PhaseTimes {
 public:
  void add(Phase phase, std::int64_t time) {
    begins_[static_cast<std::size_t>(phase)].push_back(time);
  }
  /// Call it after the last add().
  void sort();
  /// Whether an op of `phase` began after `after` and no later than `until`.
  bool began(Phase phase, std::int64_t after, std::int64_t until) const;
  /// When the first op of `phase` after `after` began; kEver if none did.
  std::int64_t next(Phase phase, std::int64_t after) const;

 private:
  std::vector<std::int64_t> begins_[5];
};

/// Whether an op only allocates memory: aten::empty and the like.
bool only_allocates(std::string_view op);
/// Whether `op` is a call of autograd's engine, or a node of its graph.
bool is_backward_call(std::string_view op);
/// Whether `op` is a call of autograd's engine that runs one node.
bool runs_node(std::string_view op);

/// For each context, the surrounding ops that represent it; host records or kNone.
class NamedOps {
 public:
  explicit NamedOps(const HostTime& host);

  /// The outermost op with a namespace that does more than allocate, which is the op that the
  /// program called: "aten::conv2d", not the aten::cudnn_convolution or aten::empty inside it.
  std::uint32_t op(std::uint32_t context) const { return all_[context].op; }
  /// The op, or else the innermost range of the program, or else the innermost op of any kind.
  std::uint32_t name(std::uint32_t context) const;
  /// The autograd node around it, if recorded with the engine's call; otherwise the outermost op of
  /// the backward pass.
  std::uint32_t node(std::uint32_t context) const { return all_[context].node; }
  /// Source lines that the profiler recorded with the innermost op that has any.
  NameId stack(std::uint32_t context) const { return all_[context].stack; }

 private:
  struct EnclosingOps {
    std::uint32_t op = kNone, plain = kNone, innermost = kNone, node = kNone;
    NameId stack{};
  };
  std::vector<EnclosingOps> all_;
};

/// Looks up the context of a time on a thread.
class SiteFinder {
 public:
  /// Interns stacks in `names`.
  SiteFinder(const HostTime& host, Names& names);
  MemorySite at(std::uint32_t record, bool frees) const;
  /// The Python frames around a time, innermost first, in the form of MemoryRecord::stack; or the
  /// stack that the profiler recorded with the op.
  NameId stack(const MemorySite& site);

 private:
  const Segment* segment_at(const MemorySite& site, bool frees) const;
  bool only_allocates(std::uint32_t context) const;
  void sort_frames();
  NameId written_stack(NameId recorded);
  NameId python_stack(std::uint16_t thread, std::int64_t time);
  NameId text_of(std::uint16_t thread, std::size_t frame);

  /// A Python frame and the enclosing one (`outer`, an index into `frames_` of its thread).
  struct Frame {
    std::int64_t start = 0, finish = 0;
    std::uint32_t record = kNone;
    std::uint32_t outer = kNone;
    NameId text{};
    bool has_text = false;
  };

  const HostTime& host_;
  Names& names_;
  NamedOps ops_;
  std::vector<char> allocates_;      ///< By name: whether it is an op that only allocates.
  std::vector<char> runs_backward_;  ///< By thread: whether nearly all its ops are backward.
  std::vector<std::vector<Frame>> frames_;
  std::unordered_map<std::uint32_t, NameId> stacks_;  ///< Stacks that the profiler recorded.
};

/// The device tasks that one op launched itself, one after another.
struct OpWork {
  std::int64_t time = 0;  ///< Time of the first launch.
  std::uint32_t context =
      kNone;  ///< Context of the launching op, an index into HostTime::contexts.
  std::uint32_t first = 0, last = 0;  ///< Indices into LaunchedWork::launches() of the thread.
};

/// The work that each thread launched, by op and in order.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Records& records, const HostTime& host);

  struct Launch {
    std::int64_t time = 0;
    std::uint32_t event = kNone;  ///< Index into Records::events.
    std::uint32_t work = 0;       ///< Index into works() of the thread.
  };
  std::span<const OpWork> works(std::uint16_t thread) const { return works_[thread]; }
  std::span<const Launch> launches(std::uint16_t thread) const { return launches_[thread]; }
  /// Index of the first launch of the thread at or after `time`.
  std::uint32_t first_launch(std::uint16_t thread, std::int64_t time) const;

 private:
  std::vector<std::vector<OpWork>> works_;
  std::vector<std::vector<Launch>> launches_;
};

/// Bytes of each tensor argument of an op, from its recorded shapes and types; 0 for other
/// arguments.
std::vector<std::int64_t> input_bytes(const Trace& trace, std::uint32_t op);

/// Functions that locate an event: its task, the time since the task's start, and the context.
struct EventLocator {
  std::function<std::pair<TaskId, Nanoseconds>(const MemoryRecord&, std::uint32_t number)> task;
  std::function<MemorySite(std::uint32_t number, bool frees)> site;
  std::function<NameId(const MemorySite&)> stack;
};

/// memory.cc: adds an allocation for each block, and returns where they were made and freed. `work`
/// shows what can have used a block that has no address.
std::vector<BlockSites> pair_events(const Records& records, const LaunchedWork& work,
                                    const EventLocator& locator, Graph& graph);

/// memory_uses.cc: infers the use from the phases in which a block was made and freed.
MemoryUse use_by_phases(const PhaseTimes& times, const MemorySite& made, const MemorySite& freed);
/// If an update frees a parameter or a state, the last block of its size that the update made
/// replaces it.
void follow_replacements(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites);
void infer_uses(const Program& program, const std::vector<BlockSites>& sites,
                const LaunchedWork& work, std::vector<Allocation>& blocks);

/// memory_gradients.cc: nodes of autograd that add a gradient to an existing one and free it.
class GradientSums {
 public:
  explicit GradientSums(const HostTime& host);
  /// Whether such an autograd node frees the block.
  bool frees(const BlockSites& sites) const;
  /// Returns, for each backward pass, the blocks that such nodes free, in order of time.
  std::vector<std::vector<std::uint32_t>> passes(const std::vector<BlockSites>& sites) const;

 private:
  std::vector<char> adds_;            ///< By host record: whether it is such a node.
  std::vector<std::int64_t> begins_;  ///< Sorted start times of the ops of forward passes.
};

/// A use of a weight: an op reads a block as its weight, or changes it.
struct WeightUse {
  std::uint32_t block = 0;
  std::uint32_t op = kNone;  ///< Host record.
  bool writes = false;
};
/// memory_initial.cc: adds the blocks of weights, which have no sites, and returns the ops that use
/// them.
std::vector<WeightUse> find_weights(const Program& program, std::vector<BlockSites>& sites,
                                    Inference& result);
/// memory_tensors.cc: a block and its accesses in an execution trace, as indices into
/// Trace::tensors.
struct MeasuredUses {
  std::uint32_t block = 0;
  std::vector<std::uint32_t> tensors;
};
std::vector<MeasuredUses> measured_uses(const HostTime& host, const std::vector<BlockSites>& sites,
                                        const std::vector<Allocation>& blocks);

/// memory_mirror.cc: a range [first, last) of works of a thread.
struct WorkRange {
  std::uint16_t thread = 0;
  std::uint32_t first = 0, last = 0;
};
/// Returns, for each work of `forward`, the matching work of `backward`.
std::vector<std::uint32_t> mirror_works(const HostTime& host, const LaunchedWork& work,
                                        const WorkRange& forward, const WorkRange& backward);

/// Whether autograd nodes ran inside another autograd node.
bool runs_passes(const HostTime& host, const LaunchedWork& work, const WorkRange& backward);

/// memory_in_place.cc: a work that changes a block in place.
struct BlockChange {
  std::uint32_t block = 0;
  std::uint32_t work = 0;  ///< Index of the work in its thread.
};
/// The accesses of one thread to a block before an in-place change.
struct BlockHistory {
  std::uint32_t block = 0;
  std::uint32_t last_write = 0;        ///< The last work that fills it.
  std::vector<std::uint32_t> reads{};  ///< Works that read it, in order.
  std::int64_t freed = 0;              ///< kEver if never freed.
};
std::vector<BlockChange> find_changes(const HostTime& host, std::span<const OpWork> works,
                                      const std::vector<BlockHistory>& histories,
                                      const std::vector<Allocation>& blocks);

/// memory_access.cc
void find_accesses(const Program& program, const std::vector<BlockSites>& sites,
                   const LaunchedWork& work, const std::vector<WeightUse>& weights, Graph& graph);

}  // namespace foretrace::infer_detail
