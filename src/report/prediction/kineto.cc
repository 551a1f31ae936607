// The predicted timeline as PyTorch's profiler would have recorded it. What a trace file can say
// about causes is written as the profiler writes it: correlation ids for launches, synchronization
// records for waits of the host, and calls that wait drawn for as long as they wait. So Foretrace
// and other readers of such traces find the causes again.

#include <algorithm>
#include <map>
#include <optional>

#include "foretrace/report.h"
#include "foretrace/version.h"
#include "report/prediction/kineto_host.h"
#include "report/prediction/kineto_layout.h"
#include "trace/kineto_arguments.h"
#include "trace/kineto_file.h"

namespace foretrace {
namespace {

std::string_view category_of(TaskKind kind) {
  if (kind == TaskKind::fill) return "gpu_memset";
  return moves_bytes(kind) && kind != TaskKind::collective ? "gpu_memcpy" : "kernel";
}

/// Readers tell the direction of a copy by its name.
std::string_view sign_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::copy_in:
      return "HtoD";
    case TaskKind::copy_out:
      return "DtoH";
    case TaskKind::copy_on_device:
      return "DtoD";
    case TaskKind::copy_peer:
      return "PtoP";
    default:
      return "";
  }
}

class Export {
 public:
  Export(const Graph& graph, const Timeline& timeline, const Trace* recorded, KinetoFile& file)
      : graph_(graph),
        timeline_(timeline),
        recorded_(recorded),
        file_(file),
        layout_(graph),
        names_(graph.names()) {
    if (recorded) recorded_names_.emplace(recorded->names);
  }

  void write() {
    const HostSlices slices = host_slices(graph_, timeline_, recorded_);
    correlation_.assign(graph_.task_count(), 0);
    for (std::size_t i = 0; i < slices.size(); ++i) write_host(static_cast<LaneId>(i), slices[i]);
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      const auto lane = static_cast<LaneId>(i);
      if (!is_host_lane(graph_.lane(lane))) write_device(lane);
    }
    write_memory();
    layout_.write_names(file_, graph_);
  }

 private:
  void write_host(LaneId lane, const std::vector<HostSlice>& slices) {
    const Track track = layout_.track(lane);
    if (!slices.empty()) layout_.use(lane);
    for (const HostSlice& slice : slices) {
      if (slice.correlated()) {
        ++last_correlation_;
        std::string arguments = "\"correlation\": " + std::to_string(last_correlation_);
        file_.complete("cuda_runtime", json_string(slice.name), track, slice.start, slice.finish,
                       arguments);
        if (slice.launch != kNoTask) {
          correlation_[index(slice.launch)] = last_correlation_;
          if (launches_something(slice.launch))
            file_.arrow(false, last_correlation_, track, slice.start);
        }
        if (slice.waits) write_waits(slice);
      } else {
        file_.complete(slice.category,
                       slice.task == kNoTask ? json_string(slice.name)
                                             : names_.string(graph_.task(slice.task).name),
                       track, slice.start, slice.finish, arguments_of(slice));
      }
    }
  }

  /// Valid until the next call.
  std::string_view arguments_of(const HostSlice& slice) {
    arguments_.clear();
    if (slice.details == kNone) return {};
    const auto json = [&](NameId id) -> const std::string& { return recorded_names_->value(id); };
    add_op_details(recorded_->op_details[slice.details], json, arguments_);
    return arguments_.text();
  }

  bool launches_something(TaskId launch) const {
    bool found = false;
    graph_.each_dependent(launch, [&](const Dependency& wait) {
      found = found || runs_on_device(graph_.task(wait.after).kind);
    });
    return found;
  }

  /// A host call waits for one stream, or for the device.
  void write_waits(const HostSlice& slice) {
    const std::vector<LaneId> lanes = awaited_lanes(graph_, slice.task);
    if (lanes.empty()) return;
    const LaneId lane = lanes.front();
    const bool one = lanes.size() == 1;
    const Track track = layout_.wait_track_for(lane, slice.start, slice.finish);
    const std::string kind = one ? "Stream Sync" : "Context Sync";
    file_.complete("cuda_sync", json_string(kind), track, slice.start, slice.finish,
                   "\"cuda_sync_kind\": \"" + kind +
                       "\", \"stream\": " + (one ? std::to_string(layout_.stream(lane)) : "-1") +
                       ", \"correlation\": " + std::to_string(last_correlation_) +
                       ", \"device\": " + std::to_string(layout_.device(lane)) +
                       ", \"context\": 1");
  }

  void write_device(LaneId lane) {
    std::vector<TaskId> tasks;
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      if (graph_.task(task).kind != TaskKind::marker) tasks.push_back(task);
    }
    // In line is not always in order of start: shared and priority lanes.
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      return timeline_.start[index(a)] < timeline_.start[index(b)];
    });
    for (const TaskId task : tasks) write_device_task(lane, task);
  }

  void write_device_task(LaneId lane, TaskId id) {
    const Task& task = graph_.task(id);
    const Nanoseconds start = timeline_.start[index(id)];
    const Nanoseconds finish = timeline_.finish[index(id)];
    const Track track = layout_.track_for(lane, start, finish);
    const std::int64_t correlation = launch_of(id);
    std::string arguments = "\"device\": " + std::to_string(layout_.device(lane)) +
                            ", \"context\": 1, \"stream\": " + std::to_string(layout_.stream(lane));
    if (correlation != 0) arguments += ", \"correlation\": " + std::to_string(correlation);
    if (task.bytes.count > 0) arguments += ", \"bytes\": " + std::to_string(task.bytes.count);
    file_.complete(category_of(task.kind), device_name(task), track, start, finish, arguments);
    if (correlation != 0) file_.arrow(true, correlation, track, start);
  }

  std::string device_name(const Task& task) {
    const std::string_view plain = graph_.names()[task.name];
    const std::string_view sign = sign_of(task.kind);
    if (task.kind == TaskKind::collective && plain.find("ccl") == std::string_view::npos) {
      return json_string("nccl " + std::string(plain));
    }
    if (sign.empty() || plain.find(sign) != std::string_view::npos) return names_.string(task.name);
    return json_string("Memcpy " + std::string(sign) + " (" + std::string(plain) + ")");
  }

  std::int64_t launch_of(TaskId task) const {
    std::int64_t correlation = 0;
    bool sure = false;
    graph_.each_wait(task, [&](const Dependency& wait) {
      const std::int64_t of_call = correlation_[index(wait.before)];
      if (of_call == 0 || sure) return;
      sure = wait.provenance == Provenance::measured && wait.why == Rule::launch;
      if (sure || correlation == 0) correlation = of_call;
    });
    return correlation;
  }

  void write_memory() {
    std::map<std::int32_t, std::int64_t> levels;
    for (const MemoryEvent& event : memory_events(graph_, timeline_)) {
      const Allocation& block = graph_.allocations()[event.allocation];
      const auto [level, is_first] = levels.try_emplace(block.device);
      if (is_first) level->second = initial_memory(graph_, block.device).count;
      const std::int64_t change = event.frees ? -block.bytes.count : block.bytes.count;
      level->second += change;
      const LaneId lane = graph_.lane_of(event.frees ? block.freed_by : block.made_by);
      arguments_.clear();
      arguments_.add_number("Bytes", change);
      arguments_.add_number("Addr", 512 * (std::int64_t{event.allocation} + 1));
      arguments_.add_number("Total Allocated", level->second);
      arguments_.add_number("Device Type", block.device < 0 ? 0 : 1);
      arguments_.add_number("Device Id", block.device);
      file_.instant("cpu_instant_event", "\"[memory]\"", layout_.track(host_lane_for(lane)),
                    event.time, arguments_.text());
    }
  }

  LaneId host_lane_for(LaneId lane) const {
    if (is_host_lane(graph_.lane(lane))) return lane;
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      if (is_host_lane(graph_.lane(static_cast<LaneId>(i)))) return static_cast<LaneId>(i);
    }
    return lane;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  const Trace* recorded_;
  KinetoFile& file_;
  KinetoLayout layout_;
  KinetoNames names_;                          ///< Of the graph.
  std::optional<KinetoNames> recorded_names_;  ///< Of `recorded_`.
  KinetoArguments arguments_;
  std::vector<std::int64_t> correlation_;  ///< Of launches, by task.
  std::int64_t last_correlation_ = 0;
};

std::pair<std::int32_t, std::int32_t> rank_and_world(const Graph& graph) {
  std::int32_t first = 0, last = 0;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const std::int32_t rank = graph.lane(static_cast<LaneId>(i)).rank;
    first = i == 0 ? rank : std::min(first, rank);
    last = std::max(last, rank);
  }
  return {first, last + 1};
}

void write_header(const Graph& graph, KinetoFile& file) {
  file.member("schemaVersion", "1");
  file.member("displayTimeUnit", "\"ms\"");
  file.member("baseTimeNanoseconds", "0");
  file.member("producer", json_string("foretrace " + std::string(kVersion)));
  std::string devices;
  for (std::size_t i = 0; i < graph.device_names().size(); ++i) {
    devices += (i == 0 ? "{\"id\": " : ", {\"id\": ") + std::to_string(i) +
               ", \"name\": " + json_string(graph.device_names()[i]) + "}";
  }
  file.member("deviceProperties", "[" + devices + "]");
  const auto [rank, world_size] = rank_and_world(graph);
  file.member("distributedInfo", "{\"rank\": " + std::to_string(rank) +
                                     ", \"world_size\": " + std::to_string(world_size) + "}");
  file.begin_events();
}

}  // namespace

void write_kineto(const Graph& graph, const Timeline& timeline, const std::string& path,
                  const Trace* recorded) {
  KinetoFile file(path);
  write_header(graph, file);
  Export(graph, timeline, recorded, file).write();
  file.close();
}

}  // namespace foretrace
