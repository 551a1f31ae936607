#include "foretrace/render.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/contains.h"
#include "foretrace/version.h"
#include "graph/few_steps.h"
#include "render/host_slices.h"

namespace foretrace {
namespace {

constexpr std::int64_t kNumbersPerRank = 10'000;  ///< Processes and devices of one rank.
constexpr std::int64_t kHostProcess = 9'000;      ///< Processes of devices have their ordinals.
/// First number for lanes that are not recorded streams.
constexpr std::int64_t kNewStream = 1'000;
constexpr std::uint16_t kNoTrack = 0xffff;

/// Returns the number at the end of a name: 7 for "stream 7" and for "rank 0 stream 7".
std::optional<std::int64_t> number_at_end(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  if (begin == name.size() || name.size() - begin > 5) return {};
  std::int64_t number = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return number;
}

/// The least and greatest rank of the lanes; 0 for an empty graph.
struct RankRange {
  explicit RankRange(const Graph& graph) {
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      const std::int32_t rank = graph.lane(static_cast<LaneId>(i)).rank;
      first = i == 0 ? rank : std::min(first, rank);
      last = std::max(last, rank);
    }
  }
  std::int32_t first = 0, last = 0;
};

/// Makes the threads and streams of the trace, one for each lane that runs something.
class LaneTracks {
 public:
  LaneTracks(const Graph& graph, Trace& trace)
      : graph_(graph),
        trace_(trace),
        first_rank_(RankRange(graph).first),
        threads_(graph.lane_count(), kNoTrack),
        streams_(graph.lane_count(), kNoTrack),
        numbers_(graph.lane_count()) {
    std::set<std::pair<std::int32_t, std::int64_t>> taken;
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      const Lane& lane = graph.lane(static_cast<LaneId>(i));
      if (is_host_lane(lane)) continue;
      numbers_[i] = number_at_end(lane.name).value_or(kNewStream + static_cast<std::int64_t>(i));
      if (!taken.insert({device(lane), numbers_[i]}).second) {
        numbers_[i] = kNewStream + static_cast<std::int64_t>(i);
        taken.insert({device(lane), numbers_[i]});
      }
    }
  }

  std::uint16_t thread(LaneId id) {
    std::uint16_t& track = threads_[index(id)];
    if (track != kNoTrack) return track;
    const Lane& lane = graph_.lane(id);
    trace_.threads.push_back(
        {kHostProcess + ranks_before(lane), std::int64_t{kNewStream} + index(id), lane.name});
    return track = static_cast<std::uint16_t>(trace_.threads.size() - 1);
  }

  std::uint16_t stream(LaneId id) {
    std::uint16_t& track = streams_[index(id)];
    if (track != kNoTrack) return track;
    trace_.streams.push_back({device(graph_.lane(id)), numbers_[index(id)]});
    return track = static_cast<std::uint16_t>(trace_.streams.size() - 1);
  }

 private:
  std::int64_t ranks_before(const Lane& lane) const {
    return kNumbersPerRank * (lane.rank - first_rank_);
  }
  std::int32_t device(const Lane& lane) const {
    return static_cast<std::int32_t>(ranks_before(lane)) + std::max(lane.device, 0);
  }

  const Graph& graph_;
  Trace& trace_;
  std::int32_t first_rank_;
  std::vector<std::uint16_t> threads_, streams_;  ///< By lane: index into the tables of the trace.
  std::vector<std::int64_t> numbers_;             ///< Number of each lane's stream.
};

CopyDirection direction_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::copy_in:
      return CopyDirection::in;
    case TaskKind::copy_out:
      return CopyDirection::out;
    case TaskKind::copy_on_device:
      return CopyDirection::on_device;
    case TaskKind::copy_peer:
      return CopyDirection::peer;
    default:
      return CopyDirection::none;
  }
}

DeviceKind kind_of(TaskKind kind) {
  if (kind == TaskKind::fill) return DeviceKind::fill;
  if (kind == TaskKind::transfer || direction_of(kind) != CopyDirection::none)
    return DeviceKind::copy;
  return DeviceKind::kernel;
}

class Rendering {
 public:
  Rendering(const Graph& graph, const Timeline& timeline, const Trace* recorded,
            std::vector<std::uint32_t>* record_of)
      : graph_(graph),
        timeline_(timeline),
        recorded_(recorded),
        record_of_(record_of),
        tracks_(graph, trace_),
        names_(graph.names().size()),
        correlation_(graph.task_count(), 0) {}

  Trace run() {
    describe_machine();
    if (record_of_ != nullptr) record_of_->assign(graph_.task_count(), kNone);
    if (recorded_ != nullptr) {
      trace_.names = recorded_->names.clone();
      trace_.op_details = recorded_->op_details;
    }
    const HostSlices slices = host_slices(graph_, timeline_, recorded_);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      for (const HostSlice& slice : slices[i]) add_host(static_cast<LaneId>(i), slice);
    }
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      const auto lane = static_cast<LaneId>(i);
      if (!is_host_lane(graph_.lane(lane))) add_lane(lane);
    }
    add_memory();
    set_tick();
    return std::move(trace_);
  }

 private:
  void describe_machine() {
    const RankRange ranks(graph_);
    trace_.format = "prediction";
    trace_.rank = recorded_ != nullptr ? recorded_->rank : ranks.first;
    trace_.world_size = recorded_ != nullptr ? recorded_->world_size : ranks.last + 1;
    if (recorded_ != nullptr) trace_.origin_ns = recorded_->origin_ns;
    trace_.metadata["producer"] = fmt::format("\"foretrace {}\"", kVersion);
    if (graph_.step_rule().recorded_mean > Nanoseconds(0))
      trace_.metadata[std::string(kFewStepsKey)] = few_steps_as_json(graph_.step_rule());
    trace_.metadata["distributedInfo"] =
        fmt::format("{{\"rank\": {}, \"world_size\": {}}}", trace_.rank, trace_.world_size);
    for (std::size_t i = 0; i < graph_.device_names().size(); ++i) {
      trace_.properties.push_back(
          device_named(graph_.device_names()[i], static_cast<std::int32_t>(i)));
    }
  }

  /// Returns the recorded device, unless it was replaced by a device of another name.
  Device device_named(const std::string& name, std::int32_t ordinal) const {
    Device device{.ordinal = ordinal, .name = name};
    if (recorded_ == nullptr) return device;
    for (const Device& known : recorded_->properties) {
      if (known.ordinal == ordinal && known.name == name) return known;
    }
    return device;
  }

  /// Translates a name of the graph to one of the trace.
  NameId name_of(NameId name) {
    NameId& known = names_[static_cast<std::size_t>(name)];
    if (known == NameId{}) known = trace_.names.intern(graph_.names()[name]);
    return known;
  }

  void add_host(LaneId lane, const HostSlice& slice) {
    HostRecord record{.start_ns = slice.start.count(),
                      .duration_ns = (slice.finish - slice.start).count(),
                      .details = slice.details,
                      .thread = tracks_.thread(lane),
                      .kind = slice.kind};
    const bool named = slice.task == kNoTask || slice.correlated();
    record.name = named ? trace_.names.intern(slice.name) : name_of(graph_.task(slice.task).name);
    if (slice.correlated()) record.correlation = ++last_correlation_;
    if (slice.launch != kNoTask) correlation_[index(slice.launch)] = last_correlation_;
    trace_.hosts.push_back(record);
    if (slice.waits) add_wait(slice);
  }

  /// Adds a sync record for one stream, or for the whole device if the call waits for several.
  void add_wait(const HostSlice& slice) {
    const std::vector<LaneId> lanes = awaited_lanes(graph_, slice.task);
    if (lanes.empty()) return;
    const bool one = lanes.size() == 1;
    trace_.syncs.push_back({.start_ns = slice.start.count(),
                            .duration_ns = (slice.finish - slice.start).count(),
                            .correlation = last_correlation_,
                            .stream = one ? tracks_.stream(lanes.front()) : kNone,
                            .kind = one ? SyncKind::stream : SyncKind::context});
  }

  void add_lane(LaneId lane) {
    std::vector<TaskId> tasks;
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      if (graph_.task(task).kind != TaskKind::marker) tasks.push_back(task);
    }
    // On shared and priority lanes the line order can differ from the order of starts.
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      return timeline_.start[index(a)] < timeline_.start[index(b)];
    });
    for (const TaskId task : tasks) add_device(lane, task);
  }

  void add_device(LaneId lane, TaskId id) {
    const Task& task = graph_.task(id);
    const Nanoseconds start = timeline_.start[index(id)];
    DeviceRecord record{.start_ns = start.count(),
                        .duration_ns = (timeline_.finish[index(id)] - start).count(),
                        .bytes = task.bytes.count,
                        .name = device_name(task),
                        .correlation = launch_of(id),
                        .stream = tracks_.stream(lane),
                        .kind = kind_of(task.kind),
                        .direction = direction_of(task.kind)};
    if (record.kind == DeviceKind::kernel) record.bytes = 0;
    record.pinned_host =
        record.kind == DeviceKind::copy && contains(trace_.names[record.name], "Pinned");
    if (record_of_ != nullptr)
      (*record_of_)[index(id)] = static_cast<std::uint32_t>(trace_.devices.size());
    trace_.devices.push_back(record);
  }

  NameId device_name(const Task& task) {
    const std::string_view plain = graph_.names()[task.name];
    if (task.kind == TaskKind::collective && !contains(plain, "ccl"))
      return trace_.names.intern("nccl " + std::string(plain));
    const std::string_view sign = copy_sign(direction_of(task.kind));
    if (contains(plain, sign)) return name_of(task.name);
    return trace_.names.intern(fmt::format("Memcpy {} ({})", sign, plain));
  }

  /// Returns the correlation id of the call that launched the task; 0 if none did.
  std::uint32_t launch_of(TaskId task) const {
    std::uint32_t correlation = 0;
    bool sure = false;
    graph_.each_wait(task, [&](const Dependency& wait) {
      const std::uint32_t of_call = correlation_[index(wait.before)];
      if (of_call == 0 || sure) return;
      sure = wait.provenance == Provenance::measured && wait.why == Rule::launch;
      if (sure || correlation == 0) correlation = of_call;
    });
    return correlation;
  }

  void add_memory() {
    std::map<std::int32_t, std::int64_t> levels;
    for (const MemoryEvent& event : memory_events(graph_, timeline_)) {
      const Allocation& block = graph_.allocations()[event.allocation];
      const auto [level, is_first] = levels.try_emplace(block.device);
      if (is_first) level->second = initial_memory(graph_, block.device).count;
      const std::int64_t change = event.frees ? -block.bytes.count : block.bytes.count;
      level->second += change;
      const LaneId lane = graph_.lane_of(event.frees ? block.freed_by : block.made_by);
      trace_.memory.push_back({.time_ns = event.time.count(),
                               .address = 512 * (std::uint64_t{event.allocation} + 1),
                               .bytes = change,
                               .total_allocated = level->second,
                               .thread = tracks_.thread(host_lane_for(lane)),
                               .device = static_cast<std::int16_t>(block.device)});
    }
  }

  LaneId host_lane_for(LaneId lane) const {
    if (is_host_lane(graph_.lane(lane))) return lane;
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      if (is_host_lane(graph_.lane(static_cast<LaneId>(i)))) return static_cast<LaneId>(i);
    }
    return lane;
  }

  /// Chooses a tick of 1 us if all times are whole microseconds, as in an unchanged recording of
  /// that resolution; otherwise 1 ns.
  void set_tick() {
    bool whole = true;
    const auto check = [&](std::int64_t time) { whole = whole && time % 1000 == 0; };
    const auto check_all = [&](const auto& records) {
      for (const auto& record : records) check(record.start_ns), check(record.duration_ns);
    };
    check_all(trace_.hosts);
    check_all(trace_.devices);
    check_all(trace_.syncs);
    for (const MemoryRecord& record : trace_.memory) check(record.time_ns);
    trace_.tick_ns = whole ? 1000 : 1;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  const Trace* recorded_;
  std::vector<std::uint32_t>* record_of_;  ///< nullptr if not requested.
  Trace trace_;
  LaneTracks tracks_;
  std::vector<NameId> names_;               ///< By NameId of the graph.
  std::vector<std::uint32_t> correlation_;  ///< Correlation ids of launches, by task.
  std::uint32_t last_correlation_ = 0;
};

}  // namespace

Trace render(const Graph& graph, const Timeline& timeline, const Trace* recorded,
             std::vector<std::uint32_t>* record_of) {
  return Rendering(graph, timeline, recorded, record_of).run();
}

}  // namespace foretrace
