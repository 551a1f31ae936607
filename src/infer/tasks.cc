// Turns segments of threads and device events into tasks. A call is cut where it stops working
// (calls.cc). The time in which it waits becomes no task, only a dependency that connect_hosts()
// adds.

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

class Builder {
 public:
  Builder(const HostTime& host, const Steps& steps, Records& records, Threads& threads,
          Inference& result)
      : host_(host),
        steps_(steps),
        records_(records),
        threads_(threads),
        result_(result),
        unrecorded_(result.graph.names().intern("(between records)")),
        waits_(result.graph.names().intern("(waits for thread)")) {}

  void build() {
    std::size_t segments = 0;
    for (const auto& thread : host_.segments) segments += thread.size();
    result_.graph.reserve(segments + records_.events.size() + records_.calls.size() + 1,
                          2 * records_.events.size() + records_.calls.size());
    begin_graph(records_.trace.rank, steps_, result_);
    threads_.tasks.resize(host_.segments.size());
    mark_handovers();
    for (std::size_t i = 0; i < host_.segments.size(); ++i) {
      if (host_.segments[i].empty() || threads_.roles[i] == ThreadRole::watches) continue;
      build_thread(static_cast<std::uint16_t>(i));
    }
    link_handovers();
    for (std::size_t i = 0; i < records_.streams.size(); ++i) build_stream(i);
  }

 private:
  void mark_handovers() {
    waiting_.resize(host_.segments.size());
    idle_.resize(host_.segments.size());
    for (std::size_t i = 0; i < threads_.handovers.size(); ++i) {
      const Handover& h = threads_.handovers[i];
      waiting_[h.waiter].emplace_back(h.segment, i);
      if (h.starts && h.first > 0) idle_[h.worker].push_back(h.first - 1);
    }
    for (auto& segments : idle_) std::sort(segments.begin(), segments.end());
    tasks_of_.resize(host_.segments.size());
  }

  void build_thread(std::uint16_t thread) {
    const Thread& recorded = records_.trace.threads[thread];
    const std::string number = std::to_string(recorded.id);
    std::string name = recorded.name.empty() ? "thread" : recorded.name;
    if (name.find(number) == name.npos) name += ' ' + number;
    Lane lane{.name = std::move(name), .kind = LaneKind::host_thread, .rank = records_.trace.rank};
    lane_ = result_.graph.add_lane(std::move(lane));
    thread_ = thread;
    const std::vector<Segment>& segments = host_.segments[thread];
    tasks_of_[thread].resize(segments.size(), {kNoTask, kNoTask});
    const bool helps = threads_.roles[thread] == ThreadRole::helps;
    std::size_t waiting = 0, idle = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      first_ = last_ = kNoTask;
      const bool is_idle = idle < idle_[thread].size() && idle_[thread][idle] == i;
      if (is_idle) ++idle;
      if (waiting < waiting_[thread].size() && waiting_[thread][waiting].first == i) {
        const std::size_t from = waiting;
        while (waiting < waiting_[thread].size() && waiting_[thread][waiting].first == i) ++waiting;
        build_wait(segments[i], from, waiting);
      } else if (segments[i].call != kNone) {
        build_call(segments[i], records_.calls[segments[i].call]);
      } else if (helps && segments[i].record == kNone) {
        gap_ = segments[i].finish - segments[i].start;
      } else if (!is_idle || segments[i].record != kNone) {
        add(segments[i], segments[i].start, segments[i].finish, plain_kind(segments[i]));
      }
      tasks_of_[thread][i] = {first_, last_};
    }
  }

  TaskKind plain_kind(const Segment& segment) const {
    return segment.context != kNone && host_.contexts[segment.context].input ? TaskKind::input
                                                                             : TaskKind::host;
  }

  TaskId add(const Segment& segment, std::int64_t start, std::int64_t finish, TaskKind kind) {
    Task task{
        .name = segment.record == kNone ? unrecorded_ : records_.trace.hosts[segment.record].name,
        .record = segment.record,
        .step = steps_.at(start),
        .kind = kind};
    task.gap = Nanoseconds(std::exchange(gap_, 0));
    if (segment.context != kNone) {
      const Context& context = host_.contexts[segment.context];
      task.module = context.module, task.layer = context.layer, task.phase = context.phase;
    }
    return add_task(start, finish, task);
  }

  TaskId add_task(std::int64_t start, std::int64_t finish, const Task& task) {
    const TaskId id = append_run(lane_, start, std::max(start, finish), task, result_);
    threads_.tasks[thread_].push_back(id);
    if (first_ == kNoTask) first_ = id;
    last_ = id;
    return id;
  }

  /// Builds a wait for other threads: the thread works until it hands work over, and again when the
  /// others are done.
  void build_wait(const Segment& segment, std::size_t from, std::size_t to) {
    std::int64_t handed_over = segment.finish, resumed = segment.start;
    for (std::size_t i = from; i < to; ++i) {
      const Handover& h = threads_.handovers[waiting_[thread_][i].second];
      handed_over =
          std::min(handed_over, h.starts ? host_.segments[h.worker][h.first].start : segment.start);
      resumed = std::max(resumed, host_.segments[h.worker][h.last].finish);
    }
    handed_over = std::clamp(handed_over, segment.start, segment.finish);
    resumed = std::clamp(resumed, handed_over, segment.finish);
    const TaskId before_task = add(segment, segment.start, handed_over, plain_kind(segment));
    const TaskId after_task = add_task(
        resumed, resumed, {.name = waits_, .step = steps_.at(resumed), .kind = TaskKind::sync});
    if (resumed < segment.finish) add(segment, resumed, segment.finish, plain_kind(segment));
    for (std::size_t i = from; i < to; ++i) {
      Handover& h = threads_.handovers[waiting_[thread_][i].second];
      h.before_task = before_task, h.after_task = after_task;
    }
  }

  /// Builds a call that launches nothing.
  void build_wait(const Segment& segment, Call& call) {
    if (!call.waits) return void(add(segment, segment.start, segment.finish, TaskKind::host));
    const std::int64_t from = std::clamp(call.released, segment.start, segment.finish);
    if (call.unknown_until > 0) {
      if (call.wait_task == kNoTask) call.wait_task = add(segment, from, from, TaskKind::sync);
      add(segment, from, segment.finish, TaskKind::unknown);
    } else if (call.wait_task == kNoTask) {
      call.wait_task = add(segment, from, segment.finish, TaskKind::sync);
    } else {
      add(segment, from, segment.finish, TaskKind::host);
    }
  }

  void build_call(const Segment& segment, Call& call) {
    const auto within = [&](std::int64_t time) {
      return std::clamp(time, segment.start, segment.finish);
    };
    if (call.launched.empty() && call.queue_event == kNone) return build_wait(segment, call);
    const std::int64_t launch = within(call.launch_start), done = within(call.launch_finish);
    std::int64_t from = segment.start;
    if (!call.held_by.empty() && call.held_task == kNoTask) {
      from = within(call.held_until);
      call.held_task = add(segment, from, from, TaskKind::sync);
    }
    if (launch > from && !call.queued) add(segment, from, launch, TaskKind::host);
    if (call.launch_task == kNoTask) {
      call.launch_task = add(segment, launch, done, TaskKind::launch);
      call.context = segment.context;
    } else if (done > launch) {
      add(segment, launch, done, TaskKind::host);
    }
    if (!call.waits) {
      if (segment.finish > done) add(segment, done, segment.finish, TaskKind::host);
      return;
    }
    if (segment.finish < call.finish) return;  // A later segment of the call contains the wait.
    call.wait_task =
        add(segment, std::max(done, within(call.released)), segment.finish, TaskKind::sync);
  }

  void link_handovers() {
    for (Handover& h : threads_.handovers) {
      for (std::size_t i = h.first; i <= h.last && h.first_task == kNoTask; ++i) {
        h.first_task = tasks_of_[h.worker][i].first;
      }
      for (std::size_t i = h.last + 1; i-- > h.first && h.last_task == kNoTask;) {
        h.last_task = tasks_of_[h.worker][i].second;
      }
    }
  }

  void build_stream(std::size_t number) {
    const auto [begin, end] = records_.streams[number];
    if (begin == end) return;
    const Stream& stream = records_.trace.streams[number];
    std::string name = "stream " + std::to_string(stream.id);
    if (several_devices()) name = fmt::format("device {} {}", stream.device, name);
    const LaneId lane = result_.graph.add_lane({.name = std::move(name),
                                                .kind = LaneKind::stream,
                                                .device = stream.device,
                                                .rank = records_.trace.rank});
    for (std::size_t i = begin; i < end; ++i) {
      DeviceEvent& event = records_.events[i];
      event.task = append_run(lane, event.start, event.finish, device_task(event), result_);
      event.step = result_.graph.task(event.task).step;
      event.phase = result_.graph.task(event.task).phase;
    }
  }

  bool several_devices() const {
    return std::any_of(
        records_.trace.streams.begin(), records_.trace.streams.end(),
        [&](const Stream& s) { return s.device != records_.trace.streams[0].device; });
  }

  Task device_task(const DeviceEvent& event) {
    const DeviceRecord& record = records_.trace.devices[event.record];
    Task task{.bytes = Bytes{record.bytes},
              .name = record.name,
              .record = event.record,
              .kind = event.kind};
    const Call* call = records_.call_of(event);
    if (call && call->launch_task != kNoTask) {
      const Task& launch = result_.graph.task(call->launch_task);
      task.module = launch.module, task.layer = launch.layer, task.phase = launch.phase;
      if (!steps_.by_device) task.step = steps_.at(call->start);
    }
    if (const CapturedNode* const captured = captured_node(records_.trace, record))
      task.module = captured->module;
    if (steps_.by_device) task.step = steps_.at(event.start);
    if (steps_.on_host_alone) task.step = -1;
    if (task.phase == Phase::none && event.kind == TaskKind::copy_in) task.phase = Phase::input;
    return task;
  }

  const HostTime& host_;
  const Steps& steps_;
  Records& records_;
  Threads& threads_;
  Inference& result_;
  NameId unrecorded_, waits_;
  LaneId lane_ = kNoLane;
  std::uint16_t thread_ = 0;
  std::int64_t gap_ = 0;  ///< Idle time before the next task.
  TaskId first_ = kNoTask, last_ = kNoTask;
  /// By thread: index of the segment, and of the handover.
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> waiting_;
  std::vector<std::vector<std::size_t>> idle_;  ///< Segments in which a worker waits for work.
  std::vector<std::vector<std::pair<TaskId, TaskId>>> tasks_of_;
};

}  // namespace

TaskId append_run(LaneId lane, std::int64_t start, std::int64_t finish, Task task,
                  Inference& result) {
  Timeline& recorded = result.recorded;
  task.duration = Nanoseconds(finish - start);
  recorded.start.emplace_back(start);
  recorded.finish.emplace_back(finish);
  recorded.length = std::max(recorded.length, Nanoseconds(finish));
  return result.graph.append(lane, task);
}

void begin_graph(std::int32_t rank, const Steps& steps, Inference& result) {
  Graph& graph = result.graph;
  const LaneId lane = graph.add_lane({.name = "(start)", .kind = LaneKind::origin, .rank = rank});
  const NameId name = graph.names().intern("start of the recording");
  append_run(lane, 0, 0, {.name = name, .kind = TaskKind::marker}, result);
  for (const MarkedStep& step : steps.marks) graph.steps().push_back({step.name});
}

void build_tasks(const HostTime& host, const Steps& steps, Records& records, Threads& threads,
                 Inference& result) {
  Builder(host, steps, records, threads, result).build();
}

}  // namespace foretrace::infer_detail
