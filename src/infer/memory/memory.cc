// Turns allocator events into allocations between the host tasks that made and freed them. With
// addresses the pairs are exact. Without (profilers of 2021), a free is matched with the youngest
// live allocation of its size that something can have used: outside the op that made it, a block is
// not freed before another op launched something. A block that is freed without having been
// allocated existed when the recording began.
//
// An event is tied to the task that its thread was executing, at the recorded offset from the start
// of that task, and keeps its position among all events, so that the replay of an unchanged graph
// makes and frees blocks in recorded order.

#include "infer/memory/memory.h"

#include <algorithm>
#include <map>
#include <set>

namespace foretrace::infer_detail {
namespace {

class BlockPairing {
 public:
  BlockPairing(const Records& records, const LaunchedWork& work, const EventLocator& locator,
               Graph& graph)
      : records_(records), trace_(records.trace), work_(work), locator_(locator), graph_(graph) {
    choose_actions();
  }

  std::vector<BlockSites> pair() {
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < trace_.memory.size(); ++i) {
      if (counts(trace_.memory[i])) order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace_.memory[a].time_ns < trace_.memory[b].time_ns;
    });
    for (position_ = 0; position_ < order.size(); ++position_) {
      const MemoryRecord& record = trace_.memory[order[position_]];
      note_level(record);
      if (record.bytes > 0) {
        allocate(order[position_], record);
      } else if (record.bytes < 0) {
        free(order[position_], record);
      }
    }
    set_initial_levels();
    name_ops();
    return std::move(sites_);
  }

 private:
  /// Decides which events count. Blocks are the memory that the program uses; for a program without
  /// its own allocator, the memory that it requests from the driver. Recorders can skip actions: if
  /// no completed free is recorded, the request to free counts.
  void choose_actions() {
    bool has_frees = false;
    for (const MemoryRecord& record : trace_.memory) {
      if (record.device < 0 || record.action != MemoryAction::block) continue;
      has_blocks_ = true;
      has_frees |= record.bytes < 0;
    }
    requests_free_ = !has_frees;
  }
  bool counts(const MemoryRecord& record) const {
    if (record.device < 0) return false;
    if (has_blocks_) {
      return record.action == MemoryAction::block ||
             (requests_free_ && record.action == MemoryAction::free_requested);
    }
    return record.action == MemoryAction::segment_alloc ||
           record.action == MemoryAction::segment_free;
  }

  using Key = std::pair<std::int32_t, std::uint64_t>;

  Key key_of(const MemoryRecord& record) const {
    const auto size = static_cast<std::uint64_t>(std::abs(record.bytes));
    return {record.device, record.address ? record.address : size};
  }

  void note_level(const MemoryRecord& record) {
    if (record.total_allocated < 0) return;
    levels_.try_emplace(record.device, record.total_allocated - record.bytes);
  }

  void allocate(std::uint32_t number, const MemoryRecord& record) {
    live_[key_of(record)].push_back(sites_.size());
    Allocation block{.bytes = Bytes{record.bytes}, .device = record.device};
    sites_.push_back({.made = locator_.site(number, false), .freed = {}});
    make(block, number, record);
    graph_.allocations().push_back(block);
  }

  void make(Allocation& block, std::uint32_t number, const MemoryRecord& record) {
    std::tie(block.made_by, block.made_after) = locator_.task(record, number);
    block.made_order = static_cast<std::uint32_t>(position_);
    block.stack = record.stack != NameId{} ? record.stack : locator_.stack(sites_.back().made);
    if (record.stream != kNone) streams_.emplace_back(sites_.size() - 1, record.stream);
  }

  void free(std::uint32_t number, const MemoryRecord& record) {
    const MemorySite site = locator_.site(number, true);
    std::vector<std::size_t>& live = live_[key_of(record)];
    const auto chosen = choose(live, record, site);
    std::size_t block = sites_.size();
    if (chosen == live.end()) {
      graph_.allocations().push_back({.bytes = Bytes{-record.bytes}, .device = record.device});
      sites_.emplace_back();
    } else {
      block = *chosen;
      live.erase(chosen);
    }
    Allocation& freed = graph_.allocations()[block];
    std::tie(freed.freed_by, freed.freed_after) = locator_.task(record, number);
    freed.freed_order = static_cast<std::uint32_t>(position_);
    sites_[block].freed = site;
  }

  using Live = std::vector<std::size_t>;

  /// Returns live.end() for a block from before the recording. The first free of a size is such a
  /// block if it comes too early for all live ones: typically the batch of the step before, freed
  /// when the next has just arrived.
  Live::iterator choose(Live& live, const MemoryRecord& record, const MemorySite& site) {
    constexpr std::ptrdiff_t kMaxTried = 16;
    if (live.empty()) return live.end();
    if (record.address != 0) return std::prev(live.end());
    const bool first = freed_.insert(key_of(record)).second;
    for (auto i = live.end(); i != live.begin() && live.end() - i < kMaxTried;) {
      if (may_be_used(sites_[*--i].made, site)) return i;
    }
    return first ? live.end() : std::prev(live.end());
  }

  /// Whether any work between the op that made a block and its free could have used it.
  bool may_be_used(const MemorySite& made, const MemorySite& freed) const {
    if (made.unit == kNone || made.unit == freed.unit) return true;
    const HostRecord& op = trace_.hosts[made.unit];
    const std::int64_t over = op.start_ns + op.duration_ns;
    if (made.thread == freed.thread && freed.time < over) return true;
    const auto launches = work_.launches(freed.thread);
    // Copies from the host use no existing block.
    for (std::uint32_t i = work_.first_launch(freed.thread, over); i < launches.size(); ++i) {
      if (launches[i].time > freed.time) break;
      if (records_.events[launches[i].event].kind != TaskKind::copy_in) return true;
    }
    return false;
  }

  /// Sets the memory in use when the recording began, including blocks that are freed in it.
  void set_initial_levels() {
    std::vector<Bytes>& initial = graph_.initial_memory();
    for (const auto& [device, level] : levels_) {
      if (device < 0 || device >= 64) continue;
      const auto number = static_cast<std::size_t>(device);
      if (initial.size() <= number) initial.resize(number + 1);
      initial[number] = Bytes{std::max<std::int64_t>(level, 0)};
    }
  }

  void name_ops() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const std::uint32_t op = sites_[i].made.op;
      if (op != kNone) graph_.allocations()[i].op = trace_.hosts[op].name;
    }
    std::vector<LaneId> lanes(trace_.streams.size(), kNoLane);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto [begin, end] = records_.streams[i];
      if (begin != end) lanes[i] = graph_.lane_of(records_.events[begin].task);
    }
    for (const auto& [block, stream] : streams_) {
      if (stream < lanes.size()) graph_.allocations()[block].stream = lanes[stream];
    }
  }

  const Records& records_;
  const Trace& trace_;
  const LaunchedWork& work_;
  const EventLocator& locator_;
  Graph& graph_;
  bool has_blocks_ = false, requests_free_ = false;
  std::size_t position_ = 0;
  std::vector<BlockSites> sites_;
  /// Block, and index into Trace::streams.
  std::vector<std::pair<std::size_t, std::uint32_t>> streams_;
  std::map<Key, std::vector<std::size_t>> live_;
  std::set<Key> freed_;  ///< Sizes that were freed, for events without addresses.
  std::map<std::int32_t, std::int64_t> levels_;  ///< Level before the first event of each device.
};

}  // namespace

std::vector<BlockSites> pair_events(const Records& records, const LaunchedWork& work,
                                    const EventLocator& locator, Graph& graph) {
  return BlockPairing(records, work, locator, graph).pair();
}

namespace {

/// Finds the task that a thread was executing at an event. Events come in order of time, so each
/// search starts at the task found last.
class TaskLocator {
 public:
  TaskLocator(const Threads& threads, const Inference& result)
      : threads_(threads), result_(result), at_(threads.tasks.size(), 0) {}

  /// Returns the task, and the time since its start.
  std::pair<TaskId, Nanoseconds> at(const MemoryRecord& record) {
    const std::vector<TaskId>& tasks = threads_.tasks[record.thread];
    const auto starts = [&](std::size_t i) {
      return i < tasks.size() && result_.recorded.start[index(tasks[i])].count() <= record.time_ns;
    };
    std::size_t& begin = at_[record.thread];
    std::size_t hop = 1;
    while (starts(begin + hop)) begin += hop, hop *= 2;
    for (; hop > 0; hop /= 2) {
      if (starts(begin + hop)) begin += hop;
    }
    if (!starts(begin)) return {tasks.empty() ? kOrigin : tasks.front(), 0ns};
    const Nanoseconds after =
        Nanoseconds(record.time_ns) - result_.recorded.start[index(tasks[begin])];
    return {tasks[begin], std::min(after, result_.graph.task(tasks[begin]).duration)};
  }

 private:
  const Threads& threads_;
  const Inference& result_;
  std::vector<std::size_t> at_;  ///< By thread: index of the task found last.
};

}  // namespace

void connect_memory(const Program& program, const Threads& threads, Inference& result) {
  if (program.host.trace.memory.empty()) return;
  const LaunchedWork work(program.records, program.host);
  SiteFinder site_finder(program.host, result.graph.names());
  TaskLocator tasks(threads, result);
  const EventLocator locator{
      .task = [&](const MemoryRecord& record, std::uint32_t) { return tasks.at(record); },
      .site = [&](std::uint32_t number, bool frees) { return site_finder.at(number, frees); },
      .stack = [&](const MemorySite& site) { return site_finder.stack(site); }};
  std::vector<BlockSites> sites = pair_events(program.records, work, locator, result.graph);
  infer_uses(program, sites, work, result.graph.allocations());
  const std::vector<WeightUse> weights = find_weights(program, sites, result);
  find_accesses(program, sites, work, weights, result.graph);
}

}  // namespace foretrace::infer_detail
