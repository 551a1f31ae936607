// Builds a graph from a memory snapshot alone, which shows what an allocator did, without tasks.
// Each device gets a host lane with a task from each event to the next, so that the history keeps
// its times. Every block in the history, or in the state at its end, is an allocation:
//
//     device 0   |aaaabbffcccc...    a task is named by what made its block; f frees one
//
// The use of a block follows from stacks (memory_stacks.h) and the rules on phases
// (memory_uses.cc). Blocks that the program made while it built its model, and that still exist
// when training updates it, are parameters; those of the optimizer are states. A free happens in
// the phase of the last allocation. Steps are those of Optimizer.step, if the snapshot has such
// annotations, or the period of the sizes. There are no device tasks, hence no accesses, and it is
// unknown how long the device worked: such a graph shows how much memory is needed, not how long a
// step takes.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "infer/memory/memory.h"
#include "infer/memory/memory_stacks.h"
#include "infer/memory/snapshot_weights.h"

namespace foretrace::infer_detail {
namespace {

class SnapshotGraph {
 public:
  SnapshotGraph(const Trace& trace, Inference& result)
      : trace_(trace),
        result_(result),
        graph_(result.graph),
        stacks_(graph_.names()),
        blocks_(graph_.allocations()) {}

  void build() {
    const Records records = order_records(trace_, result_.notes);
    order_events();
    charge_blocks();
    find_phases();
    steps_ = find_steps(records, {}, result_.notes, result_.assumptions);
    build_tasks(records.tolerance);
    const LaunchedWork work(records, HostTime{.trace = trace_});
    const EventLocator locator{
        .task = [&](const MemoryRecord&,
                    std::uint32_t number) { return std::pair(task_of_[number], 0ns); },
        .site = [&](std::uint32_t number, bool) { return site_of(number); },
        .stack = [](const MemorySite&) { return NameId{}; }};
    sites_ = pair_events(records, work, locator, graph_);
    set_sizes();
    infer_uses();
    add_initial_blocks();
    infer_initial_weights();
    set_first_levels();
    find_repetitions();
    add_notes();
  }

 private:
  /// Sorts the events of devices by time; events of one device stay in recorded order.
  void order_events() {
    for (std::uint32_t i = 0; i < trace_.memory.size(); ++i) {
      const MemoryRecord& record = trace_.memory[i];
      if (record.device >= 0 && record.bytes != 0) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace_.memory[a].time_ns < trace_.memory[b].time_ns;
    });
    position_.assign(trace_.memory.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[order_[i]] = static_cast<std::int64_t>(i);
    }
  }

  static bool makes(const MemoryRecord& record) {
    return record.action == MemoryAction::block && record.bytes > 0;
  }
  static bool frees(const MemoryRecord& record) {
    return record.bytes < 0 &&
           (record.action == MemoryAction::block || record.action == MemoryAction::free_requested);
  }

  /// Computes the counted size of each block: events carry the requested size, but the change of
  /// the level is the counted one.
  void charge_blocks() {
    charged_.assign(trace_.memory.size(), 0);
    std::map<std::int32_t, std::int64_t> levels;
    for (const std::uint32_t number : order_) {
      const MemoryRecord& record = trace_.memory[number];
      const auto before = levels.find(record.device);
      const std::int64_t asked = std::abs(record.bytes);
      charged_[number] = in_blocks(asked);
      if (record.total_allocated < 0) continue;
      if (before != levels.end() && before->second != record.total_allocated) {
        charged_[number] = std::max(asked, std::abs(record.total_allocated - before->second));
      }
      levels[record.device] = record.total_allocated;
    }
  }

  void find_phases() {
    std::size_t empty = 0, made = 0;
    bool has_engine = false;
    for (const std::uint32_t number : order_) {
      if (!makes(trace_.memory[number])) continue;
      const StackFacts& facts = stacks_.read(trace_.memory[number].stack);
      ++made;
      empty += facts.is_empty ? 1 : 0;
      has_engine |= facts.has_engine;
    }
    empty_is_backward_ = !has_engine && empty < made;
    std::vector<std::pair<std::int64_t, std::int64_t>> updates = annotated_updates();
    phases_.assign(trace_.memory.size(), Phase::none);
    Phase latest = Phase::none;
    auto update = updates.begin();
    for (const std::uint32_t number : order_) {
      const MemoryRecord& record = trace_.memory[number];
      while (update != updates.end() && update->second < record.time_ns) ++update;
      const bool in_update = update != updates.end() && update->first <= record.time_ns;
      if (makes(record)) {
        const StackFacts& facts = stacks_.read(record.stack);
        Phase phase = phase_of(facts);
        if (phase == Phase::none && in_update) phase = Phase::update;
        if (phase != Phase::none) latest = phase;
        if (phase == Phase::forward) first_forward_ = std::min(first_forward_, position_[number]);
        const bool is_plain = !facts.is_empty && !facts.builds_model && !facts.of_optimizer;
        phases_[number] = phase == Phase::none && is_plain ? Phase::forward : phase;
        if (phases_[number] != Phase::none) times_.add(phases_[number], position_[number]);
      } else if (frees(record)) {
        const Phase own = stacks_.read(record.stack).phase;
        phases_[number] = own != Phase::none ? own : latest;
      } else {
        phases_[number] = latest;
      }
    }
    times_.sort();
  }

  Phase phase_of(const StackFacts& facts) const {
    if (facts.is_empty) return empty_is_backward_ ? Phase::backward : Phase::none;
    return facts.phase;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> annotated_updates() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> updates;
    for (const HostRecord& record : trace_.hosts) {
      if (!trace_.names[record.name].starts_with("Optimizer.step")) continue;
      updates.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
    std::sort(updates.begin(), updates.end());
    return updates;
  }

  MemorySite site_of(std::uint32_t number) const {
    return {.time = position_[number], .record = number, .phase = phases_[number]};
  }

  void build_tasks(std::int64_t tolerance) {
    begin_graph(trace_.rank, steps_, result_);
    graph_.step_rule().source = steps_.source;
    task_of_.assign(trace_.memory.size(), kNoTask);
    std::map<std::int32_t, std::vector<std::uint32_t>> by_device;
    for (const std::uint32_t number : order_) {
      by_device[trace_.memory[number].device].push_back(number);
    }
    for (const auto& [device, events] : by_device) {
      build_lane(device, events);
      pin(task_of_[events.front()], tolerance, result_);
    }
  }

  void build_lane(std::int32_t device, const std::vector<std::uint32_t>& events) {
    const LaneId lane = graph_.add_lane({.name = "allocator of device " + std::to_string(device),
                                         .kind = LaneKind::host_thread,
                                         .rank = trace_.rank});
    const NameId nameless = graph_.names().intern("(allocates)"),
                 free = graph_.names().intern("(frees)");
    const NameId other = graph_.names().intern("(segment)");
    for (std::size_t i = 0; i < events.size(); ++i) {
      const MemoryRecord& record = trace_.memory[events[i]];
      const std::int64_t begin = std::max<std::int64_t>(record.time_ns, 0);
      const std::int64_t end =
          i + 1 < events.size() ? std::max(begin, trace_.memory[events[i + 1]].time_ns) : begin;
      Task task{.name = frees(record) ? free : other,
                .step = steps_.at(record.time_ns),
                .kind = TaskKind::host,
                .phase = phases_[events[i]]};
      if (makes(record)) {
        const StackFacts& facts = stacks_.read(record.stack);
        task.name = facts.op != NameId{} ? facts.op : facts.place;
        if (task.name == NameId{}) task.name = nameless;
      }
      task_of_[events[i]] = append_run(lane, begin, end, task, result_);
    }
  }

  void set_sizes() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const MemorySite& known = sites_[i].made.exists() ? sites_[i].made : sites_[i].freed;
      blocks_[i].requested = Bytes{std::abs(trace_.memory[known.record].bytes)};
      blocks_[i].bytes = Bytes{charged_[known.record]};
      // If the block is freed, the size counted at the free is the right one.
      if (sites_[i].freed.exists()) blocks_[i].bytes = Bytes{charged_[sites_[i].freed.record]};
      if (sites_[i].made.exists()) {
        blocks_[i].op = stacks_.read(trace_.memory[known.record].stack).op;
      }
    }
  }

  void infer_uses() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      blocks_[i].use = sites_[i].made.exists()
                           ? use_of(sites_[i])
                           : use_by_phases(times_, sites_[i].made, sites_[i].freed);
    }
    follow_replacements(blocks_, sites_);
  }

  MemoryUse use_of(const BlockSites& sites) {
    const StackFacts& facts = stacks_.read(trace_.memory[sites.made.record].stack);
    if (facts.is_workspace) return MemoryUse::workspace;
    const std::int64_t freed = sites.freed.exists() ? sites.freed.time : kEver;
    const bool building = facts.builds_model && phase_of(facts) == Phase::none;
    if (building && freed > first_update_after(sites.made.time)) {
      return facts.of_optimizer ? MemoryUse::optimizer_state : MemoryUse::parameter;
    }
    if (facts.moves && phase_of(facts) == Phase::none && !facts.builds_model) {
      return MemoryUse::input;
    }
    return use_by_phases(times_, sites.made, sites.freed);
  }

  /// Returns when a block built by `time` has been updated: the update after the next forward and
  /// backward pass.
  std::int64_t first_update_after(std::int64_t time) const {
    const std::int64_t forward = std::max(first_forward_, time);
    if (forward == kEver) return kEver - 1;
    const std::int64_t backward = times_.next(Phase::backward, forward);
    return std::min(backward == kEver ? kEver : times_.next(Phase::update, backward), kEver - 1);
  }

  /// Adds the blocks that no event mentions, which existed all the time.
  void add_initial_blocks() {
    std::set<std::pair<std::int32_t, std::uint64_t>> mentioned;
    for (const std::uint32_t number : order_) {
      const MemoryRecord& record = trace_.memory[number];
      if (makes(record) || frees(record)) mentioned.emplace(record.device, record.address);
    }
    for (const MemoryBlock& block : trace_.blocks) {
      if (block.state == BlockState::inactive || block.bytes <= 0) continue;
      const std::int32_t device = trace_.segments[block.segment].device;
      if (mentioned.contains({device, block.address})) continue;
      const StackFacts& facts = stacks_.read(block.stack);
      blocks_.push_back({.bytes = Bytes{block.bytes},
                         .requested = Bytes{block.requested_bytes},
                         .device = device,
                         .op = facts.op,
                         .stack = block.stack,
                         .use = use_of_initial(facts)});
    }
  }

  void infer_initial_weights() {
    const bool trains = std::any_of(blocks_.begin(), blocks_.end(), [](const Allocation& block) {
      return block.use == MemoryUse::gradient || block.use == MemoryUse::optimizer_state;
    });
    const bool is_forward_only = !trains && first_forward_ != kEver &&
                                 !times_.began(Phase::backward, -1, kEver - 1) &&
                                 !times_.began(Phase::update, -1, kEver - 1);
    if (is_forward_only) keep_for_backward();
    if (!infer_weights(blocks_, sites_, first_forward_, is_forward_only)) return;
    result_.assumptions.push_back(
        is_forward_only
            ? "Blocks from before the forward passes that outlive them are assumed to be "
              "parameters."
            : "Blocks from before the history are assumed to be parameters if gradients have their "
              "size.");
  }

  /// A pass that keeps what it made does so for a backward pass that is not in the history; caches
  /// of a model that only infers have the same types and grow alike.
  void keep_for_backward() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const BlockSites& sites = sites_[i];
      if (blocks_[i].use == MemoryUse::unknown && sites.made.exists() &&
          sites.made.phase == Phase::forward && !sites.freed.exists())
        blocks_[i].use = MemoryUse::activation;
    }
  }

  /// Whether the level is lower after the event. A request to free a block is followed by the event
  /// that frees it, unless the recorder left such events out.
  bool gives_back(const MemoryRecord& record) const {
    if (record.bytes >= 0 || record.action != MemoryAction::free_requested) return frees(record);
    return std::none_of(order_.begin(), order_.end(), [&](std::uint32_t number) {
      const MemoryRecord& other = trace_.memory[number];
      return other.device == record.device && other.action == MemoryAction::block &&
             other.bytes < 0;
    });
  }

  void set_first_levels() {
    std::vector<Bytes>& initial = graph_.initial_memory();
    initial.clear();
    std::set<std::int32_t> seen;
    for (const std::uint32_t number : order_) {
      const MemoryRecord& record = trace_.memory[number];
      constexpr std::int32_t kMaxDevices = 64;
      if (record.total_allocated < 0 || record.device >= kMaxDevices) continue;
      if (!seen.insert(record.device).second) continue;
      const auto device = static_cast<std::size_t>(record.device);
      if (initial.size() <= device) initial.resize(device + 1);
      std::int64_t before = record.total_allocated;
      if (makes(record)) before -= charged_[number];
      if (gives_back(record)) before += charged_[number];
      initial[device] = Bytes{std::max<std::int64_t>(before, 0)};
    }
  }

  static MemoryUse use_of_initial(const StackFacts& facts) {
    if (facts.is_workspace) return MemoryUse::workspace;
    if (facts.of_optimizer && (facts.phase == Phase::update || facts.builds_model)) {
      return MemoryUse::optimizer_state;
    }
    if (facts.builds_model && facts.phase == Phase::none) return MemoryUse::parameter;
    return facts.phase == Phase::backward ? MemoryUse::gradient : MemoryUse::unknown;
  }

  /// Finds steps by the repetition of sizes, on the device with most blocks.
  void find_repetitions() {
    if (!steps_.marks.empty() || blocks_.empty()) return;
    std::map<std::int32_t, std::size_t> made;
    for (const Allocation& block : blocks_) ++made[block.device];
    const std::int32_t device =
        std::max_element(made.begin(), made.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    const std::vector<MemoryEvent> events = memory_events(graph_, result_.recorded);
    const MemoryPeriod period = memory_period(graph_, events, device);
    if (period.length == 0 || is_of_layers(period, events, device)) return;
    std::vector<TaskId> makers;
    for (const MemoryEvent& event : events) {
      const Allocation& block = blocks_[event.allocation];
      if (block.device == device && !event.frees) makers.push_back(block.made_by);
    }
    mark_repetitions(period, makers);
    result_.assumptions.push_back(fmt::format(
        "Steps are found by the sizes of {} blocks that are made again in the same order.",
        period.length));
  }

  bool is_of_layers(const MemoryPeriod& period, const std::vector<MemoryEvent>& events,
                    std::int32_t device) const {
    std::vector<std::string_view> repeated, others;
    std::size_t made = 0;
    for (const MemoryEvent& event : events) {
      if (event.frees || blocks_[event.allocation].device != device) continue;
      const std::size_t number = made++;
      if (event.allocation >= sites_.size()) continue;
      const MemoryRecord& record = trace_.memory[sites_[event.allocation].made.record];
      const bool within =
          number >= period.first && number < period.first + period.length * period.repetitions;
      (within ? repeated : others).push_back(trace_.names[record.stack]);
    }
    return lie_within_one_call(repeated, others);
  }

  void mark_repetitions(const MemoryPeriod& period, const std::vector<TaskId>& makers) {
    graph_.step_rule().source = StepSource::period;
    std::int32_t step = -1;
    TaskId task = makers[period.first];
    for (std::size_t i = 0; i < period.repetitions; ++i) {
      const std::size_t next = period.first + (i + 1) * period.length;
      const TaskId end = next < makers.size() ? makers[next] : kNoTask;
      graph_.steps().push_back({"repetition " + std::to_string(i + 1)});
      ++step;
      for (; task != kNoTask && task != end; task = graph_.next(task)) {
        graph_.task(task).step = step;
      }
    }
  }

  void add_notes() {
    result_.assumptions.push_back(
        "A memory snapshot shows what the allocator did, not what ran: memory can be predicted "
        "from it, but not time; its times are those of the history.");
    const auto unknown = std::count_if(blocks_.begin(), blocks_.end(), [](const Allocation& block) {
      return block.use == MemoryUse::unknown;
    });
    if (unknown > 0) {
      result_.notes.add(Severity::info, "blocks of unknown use", {}, unknown);
    }
  }

  const Trace& trace_;
  Inference& result_;
  Graph& graph_;
  Steps steps_;
  StackReader stacks_;
  std::vector<Allocation>& blocks_;
  std::vector<BlockSites> sites_;
  PhaseTimes times_;  ///< By position.
  std::int64_t first_forward_ = kEver;
  bool empty_is_backward_ = false;
  std::vector<std::uint32_t> order_;  ///< Indices into Trace::memory.
  // By index into Trace::memory:
  std::vector<std::int64_t> position_;  ///< Position in order_.
  std::vector<std::int64_t> charged_;   ///< Sizes as the allocator counted them.
  std::vector<Phase> phases_;
  std::vector<TaskId> task_of_;
};

}  // namespace

void build_snapshot(const Trace& trace, Inference& result) {
  if (trace.memory.empty()) {
    throw TraceError(
        "must have a history, but is a snapshot of the allocator's state alone; call "
        "torch.cuda.memory._record_memory_history() before the part to be recorded");
  }
  SnapshotGraph(trace, result).build();
}

}  // namespace foretrace::infer_detail
