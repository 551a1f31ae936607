#pragma once

// Data shared by the rules about memory: where each block was made and freed, and which op launched
// which work. memory.cc pairs the events and calls the rules in order:
//
//     memory.cc           allocator events -> blocks; who made and freed them, and when
//     memory_sites.cc     the context of an event on its thread: ops, source lines
//     memory_uses.cc      the use of a block, from where it was made and freed
//     memory_work.cc      which op launched which device tasks
//     memory_gradients.cc gradients that autograd adds to existing ones
//     memory_initial.cc   parameters that no event mentions
//     memory_access.cc    which device tasks write and read a block
//     memory_in_place.cc  the same, for ops that change their arguments
//     memory_mirror.cc    which works of a backward pass belong to which of a forward pass
//     memory_tensors.cc   who uses a block, where an execution trace has it

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

/// PyTorch's caching allocator gives out multiples of so many bytes (kMinBlockSize in its source).
inline constexpr std::int64_t kSmallestBlock = 512;
inline constexpr std::int64_t in_blocks(std::int64_t bytes) {
  return (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock;
}

/// Later than any event.
inline constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();

/// The context of an allocator event. It is empty on a thread without records around the event.
struct MemorySite {
  std::int64_t time = 0;
  std::uint32_t record = kNone;   ///< Index into Trace::memory; kNone if there is no such event.
  std::uint32_t context = kNone;  ///< Into HostTime::contexts: the innermost op.
  std::uint32_t op = kNone;       ///< Host record: the op that people recognise; see NamedOps.
  std::uint32_t unit = kNone;     ///< The same, but only if it is one operator or autograd node.
  std::uint32_t node = kNone;     ///< Host record: the node of autograd around it; see NamedOps.
  std::uint16_t thread = 0;
  Phase phase = Phase::none;

  bool exists() const { return record != kNone; }
};

/// Where an allocation of the graph with the same number was made and freed.
struct BlockSites {
  MemorySite made, freed;
};

/// Times at which something of each phase began, over all threads.
class PhaseTimes {
 public:
  void add(Phase phase, std::int64_t time) {
    begins_[static_cast<std::size_t>(phase)].push_back(time);
  }
  /// Call it after the last add().
  void sort();
  /// Whether an op of `phase` began after `after` and no later than `until`.
  bool began(Phase phase, std::int64_t after, std::int64_t until) const;
  /// When the first op of `phase` after `after` began; the greatest time if none did.
  std::int64_t next(Phase phase, std::int64_t after) const;

 private:
  std::vector<std::int64_t> begins_[5];
};

/// Whether an op only allocates memory: aten::empty and the like.
bool only_allocates(std::string_view op);
/// A call of autograd's engine, or a node of its graph.
bool is_backward_call(std::string_view op);
/// A call of autograd's engine that runs one node.
bool runs_node(std::string_view op);

/// For each context, the ops around it that represent the others; host records or kNone.
class NamedOps {
 public:
  explicit NamedOps(const HostTime& host);

  /// The outermost op with a namespace that does more than allocate: "aten::conv2d", where
  /// aten::cudnn_convolution calls aten::empty. It is the op that the program called.
  std::uint32_t op(std::uint32_t context) const { return all_[context].op; }
  /// Without such an op: the innermost range of the program, else the innermost op.
  std::uint32_t name(std::uint32_t context) const;
  /// The node of autograd around it, if recorded with the call of the engine; otherwise the
  /// outermost op of the backward pass.
  std::uint32_t node(std::uint32_t context) const { return all_[context].node; }
  /// Source lines that the profiler wrote beside the innermost op that has any.
  NameId stack(std::uint32_t context) const { return all_[context].stack; }

 private:
  struct Around {
    std::uint32_t op = kNone, plain = kNone, innermost = kNone, node = kNone;
    NameId stack{};
  };
  std::vector<Around> all_;
};

/// Looks up the context of a time on a thread.
class Surroundings {
 public:
  /// Stacks become `names`.
  Surroundings(const HostTime& host, Names& names);
  MemorySite at(std::uint32_t record, bool frees) const;
  /// The frames of Python around a time, innermost first, in the form of MemoryRecord::stack; or
  /// those that the profiler recorded with the op.
  NameId stack(const MemorySite& site);

 private:
  const Segment* segment_at(const MemorySite& site, bool frees) const;
  bool only_allocates(std::uint32_t context) const;
  void sort_frames();
  NameId written_stack(NameId recorded);
  NameId python_stack(std::uint16_t thread, std::int64_t time);
  NameId text_of(std::uint16_t thread, std::size_t frame);

  /// A Python frame and the one around it (number in `frames_` of its thread).
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
  std::vector<char> allocates_;      ///< For each name: whether it is an op that only allocates.
  std::vector<char> runs_backward_;  ///< For each thread: whether nearly all its ops are backward.
  std::vector<std::vector<Frame>> frames_;
  std::unordered_map<std::uint32_t, NameId> stacks_;  ///< Stacks that the profiler recorded.
};

/// Device tasks that one op launched itself, one after another.
struct OpWork {
  std::int64_t time = 0;  ///< Time of the first launch.
  std::uint32_t context =
      kNone;  ///< Context of the launching op, an index into HostTime::contexts.
  std::uint32_t first = 0, last = 0;  ///< Launches of the thread, into LaunchedWork::launches().
};

/// The work that each thread launched, by op and in order.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Records& records, const HostTime& host);

  struct Launch {
    std::int64_t time = 0;
    std::uint32_t event = kNone;  ///< Into Records::events.
    std::uint32_t work = 0;       ///< Into works() of the thread.
  };
  std::span<const OpWork> works(std::uint16_t thread) const { return works_[thread]; }
  std::span<const Launch> launches(std::uint16_t thread) const { return launches_[thread]; }
  /// Number of the first launch of the thread at or after `time`.
  std::uint32_t first_launch(std::uint16_t thread, std::int64_t time) const;

 private:
  std::vector<std::vector<OpWork>> works_;
  std::vector<std::vector<Launch>> launches_;
};

/// Bytes of each tensor argument of an op, from its recorded shapes and types; 0 for other
/// arguments.
std::vector<std::int64_t> input_bytes(const Trace& trace, std::uint32_t op);

/// Places of events: the task, the time since its start, and the context.
struct EventPlaces {
  std::function<std::pair<TaskId, Nanoseconds>(const MemoryRecord&, std::uint32_t number)> place;
  std::function<MemorySite(std::uint32_t number, bool frees)> site;
  std::function<NameId(const MemorySite&)> stack;
};

/// memory.cc: adds an allocation for each block, and returns where they were made and freed. `work`
/// shows what can have used a block that has no address.
std::vector<BlockSites> pair_events(const Records& records, const LaunchedWork& work,
                                    const EventPlaces& places, Graph& graph);

/// memory_uses.cc: from the phases in which a block was made and freed alone.
MemoryUse use_by_phases(const PhaseTimes& times, const MemorySite& made, const MemorySite& freed);
/// Where an update frees a parameter or a state, the block of its size that the update made last
/// takes its place.
void follow_replacements(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites);
void tell_uses(const Program& program, const std::vector<BlockSites>& sites,
               const LaunchedWork& work, std::vector<Allocation>& blocks);

/// memory_gradients.cc: nodes of autograd that add a gradient to an existing one and free it.
class GradientSums {
 public:
  explicit GradientSums(const HostTime& host);
  /// Whether such a node frees the block.
  bool frees(const BlockSites& sites) const;
  /// Blocks of each backward pass that are freed by such nodes, in order of time.
  std::vector<std::vector<std::uint32_t>> passes(const std::vector<BlockSites>& sites) const;

 private:
  std::vector<char> adds_;            ///< For each host record: whether it is such a node.
  std::vector<std::int64_t> begins_;  ///< Begins of the ops of a forward pass, in order.
};

/// An op takes a block as its weight, or changes it.
struct WeightUse {
  std::uint32_t block = 0;
  std::uint32_t op = kNone;  ///< Host record.
  bool writes = false;
};
/// memory_initial.cc: adds the blocks, which have no sites, and returns who takes them.
std::vector<WeightUse> find_weights(const Program& program, std::vector<BlockSites>& sites,
                                    Inference& result);
/// memory_tensors.cc: a block, and its accesses in an execution trace (indices into
/// Trace::tensors).
struct MeasuredUses {
  std::uint32_t block = 0;
  std::vector<std::uint32_t> tensors;
};
std::vector<MeasuredUses> measured_uses(const HostTime& host, const std::vector<BlockSites>& sites,
                                        const std::vector<Allocation>& blocks);

/// memory_mirror.cc: works [first, last) of a thread.
struct WorkRange {
  std::uint16_t thread = 0;
  std::uint32_t first = 0, last = 0;
};
/// For each work of `forward`, the matching one of `backward`.
std::vector<std::uint32_t> mirror_works(const HostTime& host, const LaunchedWork& work,
                                        const WorkRange& forward, const WorkRange& backward);

/// Whether nodes of autograd ran inside of another.
bool runs_passes(const HostTime& host, const LaunchedWork& work, const WorkRange& backward);

/// memory_in_place.cc: which block a piece of work changes.
struct BlockChange {
  std::uint32_t block = 0;
  std::uint32_t work = 0;  ///< Work of the thread.
};
/// Accesses of one thread to a block before that.
struct BlockHistory {
  std::uint32_t block = 0;
  std::uint32_t written = 0;           ///< The last work that fills it.
  std::vector<std::uint32_t> taken{};  ///< Works that read it, in order.
  std::int64_t freed = 0;              ///< The greatest time if never.
};
std::vector<BlockChange> find_changes(const HostTime& host, std::span<const OpWork> works,
                                      const std::vector<BlockHistory>& histories,
                                      const std::vector<Allocation>& blocks);

/// memory_access.cc
void find_accesses(const Program& program, const std::vector<BlockSites>& sites,
                   const LaunchedWork& work, const std::vector<WeightUse>& weights, Graph& graph);

}  // namespace foretrace::infer_detail
