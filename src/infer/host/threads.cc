// Threads that wait for other threads. While the main thread is inside backward(), it shows one
// long stretch without records, and the autograd thread is busy only within it: the main thread
// started it and waits for it. This shape alone is the evidence, so it works for any pair of
// threads. If both threads of a pair fit, the one with step markers is the waiter. A thread that
// only sleeps (a watchdog) does not fit, because the work of others begins and ends at any time
// during its sleep.

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/wording.h"
#include "infer/passes.h"
#include "trace/launch_call.h"
#include "trace/step_name.h"

namespace foretrace::infer_detail {
namespace {

/// A pause shorter than this, in ns, does not count as a wait for another thread. Chosen.
constexpr std::int64_t kMinWait = 50'000;

// Share of a pause that the work of another thread must fill to count as awaited. Chosen.

/// In the thread with the steps: three tenths, because it may keep working before it waits.
constexpr std::int64_t kTenthsFilled = 3;
/// In other threads: half, and all but a fifth or this many ns.
constexpr std::int64_t kMaxLeft = 200'000;
constexpr std::int64_t kPartLeft = 5;

/// A few threads may begin by themselves. Chosen.
constexpr std::int64_t kManyUnstarted = 4;

bool is_busy(const Segment& segment) { return segment.record != kNone; }

/// Whether a thread can hand work over or receive it. Threads that make calls but launch nothing (a
/// watchdog that queries events) do neither. Where ops are not recorded, launches are all that the
/// autograd thread shows.
bool takes_part(const Trace& trace, const std::vector<Segment>& thread) {
  return std::any_of(thread.begin(), thread.end(), [&](const Segment& segment) {
    if (!is_busy(segment)) return false;
    const HostRecord& record = trace.hosts[segment.record];
    return !is_call(record.kind) || launches_kernel(trace.names[record.name]);
  });
}

/// A score; the thread of a pair with the greater one is more likely the waiter.
std::int64_t waiter_score(const HostTime& host, std::size_t thread) {
  std::int64_t markers = 0, backward = 0, records = 0;
  for (const Segment& segment : host.segments[thread]) {
    if (!is_busy(segment)) continue;
    ++records;
    const HostRecord& record = host.trace.hosts[segment.record];
    if (host.name(record).starts_with(kProfilerStep)) ++markers;
    if (segment.context != kNone && host.contexts[segment.context].phase == Phase::backward) {
      ++backward;
    }
  }
  if (markers > 0) return std::int64_t{1} << 60;
  return backward * 2 > records ? -records : records;
}

/// Whether a burst of the worker fits a pause of the waiter. The rest of the pause may be work of
/// the waiter: of any length for the thread with the steps, short for others.
bool fits(bool main, std::int64_t burst, std::int64_t stretch) {
  if (main) return burst * 10 >= stretch * kTenthsFilled;
  return stretch - burst <= std::max(stretch / kPartLeft, kMaxLeft) && burst * 2 >= stretch;
}

bool is_backward(const HostTime& host, const std::vector<Segment>& thread, std::size_t segment) {
  if (segment >= thread.size() || thread[segment].context == kNone) return false;
  return host.contexts[thread[segment].context].phase == Phase::backward;
}

using Position = std::vector<Segment>::const_iterator;

bool starts_before(const Segment& segment, std::int64_t time) { return segment.start < time; }

/// Returns the last segment in the worker's burst that begins at `first`; nullopt if the burst
/// continues beyond the wait.
std::optional<Position> last_of_burst(const HostTime& host, const Handover& found, Position first,
                                      std::int64_t tolerance) {
  const std::vector<Segment>& waiter = host.segments[found.waiter];
  const std::vector<Segment>& worker = host.segments[found.worker];
  const Segment& waiting = waiter[found.segment];
  auto last = std::prev(std::lower_bound(first, worker.end(), waiting.finish, starts_before));
  const bool runs_on = is_busy(*last) && last->finish > waiting.finish + tolerance;
  if (runs_on || (std::next(last) != worker.end() && is_busy(*last) && is_busy(*std::next(last)) &&
                  last->finish >= waiting.finish - tolerance)) {
    if (!is_backward(host, waiter, found.segment + 1)) return {};
  }
  if (runs_on && last == first) return {};
  if (runs_on) --last;
  while (last > first && !is_busy(*last)) --last;
  return last;
}

/// Finds the burst of the worker in segment `found.segment` of the waiter. The worker must be idle
/// at both ends of the segment, unless the waiter runs a piece of the same backward pass there: the
/// autograd engine returns gradients on the CPU to the thread that waits for it.
bool find_burst(const HostTime& host, std::int64_t tolerance, Handover& found, bool main) {
  const std::vector<Segment>& waiter = host.segments[found.waiter];
  const std::vector<Segment>& worker = host.segments[found.worker];
  const Segment& waiting = waiter[found.segment];
  auto first =
      std::lower_bound(worker.begin(), worker.end(), waiting.start - tolerance, starts_before);
  if (first != worker.begin() && is_busy(*std::prev(first)) &&
      std::prev(first)->finish > waiting.start + tolerance) {
    if (found.segment == 0 || !is_backward(host, waiter, found.segment - 1)) return false;
    found.starts = false;
    --first;
  }
  while (first != worker.end() && !is_busy(*first)) ++first;
  if (first == worker.end() || first->start >= waiting.finish) return false;
  const auto end = last_of_burst(host, found, first, tolerance);
  if (!end) return false;
  const Position last = *end;
  found.first = static_cast<std::size_t>(first - worker.begin());
  found.last = static_cast<std::size_t>(last - worker.begin());
  const std::int64_t from = found.starts ? first->start : waiting.start;
  return fits(main, last->finish - from, waiting.finish - waiting.start) &&
         last->finish - from >= kMinWait / 2;
}

/// The threads that take part, most likely waiters first.
std::vector<std::uint16_t> threads_by_waiter_score(const HostTime& host) {
  std::vector<std::uint16_t> order;
  for (std::size_t i = 0; i < host.segments.size(); ++i) {
    if (takes_part(host.trace, host.segments[i])) order.push_back(static_cast<std::uint16_t>(i));
  }
  std::vector<std::int64_t> scores(host.segments.size());
  for (const std::uint16_t thread : order) scores[thread] = waiter_score(host, thread);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint16_t a, std::uint16_t b) { return scores[a] > scores[b]; });
  return order;
}

/// Assigns a burst to a waiter; returns false if it was assigned before.
bool assign_burst(std::vector<char>& assigned, const Handover& found) {
  if (assigned[found.first] || assigned[found.last]) return false;
  std::fill(assigned.begin() + static_cast<std::ptrdiff_t>(found.first),
            assigned.begin() + static_cast<std::ptrdiff_t>(found.last) + 1, 1);
  return true;
}

}  // namespace

std::vector<Handover> find_handovers(const HostTime& host, std::int64_t tolerance) {
  std::vector<Handover> handovers;
  const std::vector<std::uint16_t> order = threads_by_waiter_score(host);
  // Segments of each worker that were assigned to a waiter.
  std::vector<std::vector<char>> assigned(host.segments.size());
  for (std::size_t i = 0; i < assigned.size(); ++i) assigned[i].assign(host.segments[i].size(), 0);
  for (std::size_t a = 0; a < order.size(); ++a) {
    const std::vector<Segment>& waiter = host.segments[order[a]];
    for (std::size_t i = 0; i < waiter.size(); ++i) {
      if (waiter[i].finish - waiter[i].start < kMinWait || waiter[i].call != kNone) continue;
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        Handover found{.waiter = order[a], .worker = order[b], .segment = i};
        if (find_burst(host, tolerance, found, a == 0) && assign_burst(assigned[order[b]], found))
          handovers.push_back(found);
      }
    }
  }
  return handovers;
}

void pin(TaskId task, std::int64_t tolerance, Inference& result) {
  const Nanoseconds start = result.recorded.start[index(task)];
  if (start.count() <= tolerance) return;
  result.graph.add({.before = kOrigin,
                    .after = task,
                    .lag = start,
                    .provenance = Provenance::inferred,
                    .why = Rule::recorded_start});
  ++result.graph.unexplained().pinned_tasks;
}

namespace {

/// Returns the task that started a worker: usually the waiter's task before the wait. If the worker
/// begins long after that, it is the last finished task of another worker of the same wait, because
/// the autograd thread of one device hands over to that of the next.
TaskId starter_of(const Threads& threads, const Timeline& recorded, std::size_t number) {
  const Handover& handover = threads.handovers[number];
  const std::int64_t start = recorded.start[index(handover.first_task)].count();
  std::int64_t latest = recorded.finish[index(handover.before_task)].count();
  if (start - latest < kMinWait) return handover.before_task;
  TaskId starter = handover.before_task;
  const auto of_same_wait = [&](std::size_t i) {
    const Handover& other = threads.handovers[i];
    return other.waiter == handover.waiter && other.segment == handover.segment;
  };
  std::size_t first = number;
  while (first > 0 && of_same_wait(first - 1)) --first;
  for (std::size_t i = first; i < threads.handovers.size() && of_same_wait(i); ++i) {
    const Handover& other = threads.handovers[i];
    if (other.worker == handover.worker || other.first_task == kNoTask) continue;
    const std::vector<TaskId>& tasks = threads.tasks[other.worker];
    const auto behind = std::partition_point(tasks.begin(), tasks.end(), [&](TaskId task) {
      return recorded.finish[index(task)].count() <= start;
    });
    if (behind == tasks.begin()) continue;
    const std::int64_t finish = recorded.finish[index(*std::prev(behind))].count();
    if (finish > latest) latest = finish, starter = *std::prev(behind);
  }
  return starter;
}

/// Without device work, only handovers connect the threads of a recording.
void note_unstarted_threads(const Threads& threads, Inference& result) {
  const std::int64_t pinned = result.graph.unexplained().pinned_tasks;
  const auto all = std::count_if(threads.tasks.begin(), threads.tasks.end(),
                                 [](const std::vector<TaskId>& tasks) { return !tasks.empty(); });
  if (pinned < kManyUnstarted || 2 * pinned <= all) return;
  result.graph.unexplained().shortcomings.push_back(
      {.name = "unstarted_threads",
       .text = fmt::format("{} of {} begin without a recorded cause, and no device work connects "
                           "them; record the job that gives them their work, too",
                           grouped(pinned), counted(all, "thread")),
       .share = static_cast<double>(pinned) / static_cast<double>(all),
       .is_fatal = true});
}

void connect_threads(const Threads& threads, std::int64_t tolerance, Inference& result) {
  const auto start = [&](TaskId task) { return result.recorded.start[index(task)]; };
  const auto finish = [&](TaskId task) { return result.recorded.finish[index(task)]; };
  std::vector<char> started(threads.tasks.size(), 0);
  for (std::size_t i = 0; i < threads.handovers.size(); ++i) {
    const Handover& h = threads.handovers[i];
    if (h.before_task == kNoTask || h.first_task == kNoTask) continue;
    if (h.starts) {
      const TaskId starter = starter_of(threads, result.recorded, i);
      const auto lag = std::max(Nanoseconds{0}, start(h.first_task) - finish(starter));
      result.graph.add({.before = starter,
                        .after = h.first_task,
                        .lag = lag,
                        .provenance = Provenance::inferred,
                        .why = Rule::thread_handover});
    }
    result.graph.add({.before = h.last_task,
                      .after = h.after_task,
                      .provenance = Provenance::inferred,
                      .why = Rule::wait_for_thread});
    if (h.starts && h.first_task == threads.tasks[h.worker].front()) started[h.worker] = 1;
  }
  for (std::size_t i = 0; i < threads.tasks.size(); ++i) {
    if (!threads.tasks[i].empty() && !started[i]) pin(threads.tasks[i].front(), tolerance, result);
  }
}

void connect_calls(const Records& records, Inference& result) {
  for (const Call& call : records.calls) {
    for (const std::uint32_t event : call.awaited) {
      if (call.wait_task == kNoTask) continue;
      const DeviceEvent& awaited = records.events[event];
      const TaskId done = awaited.task;
      const std::int64_t early =
          awaited.finish - result.recorded.start[index(call.wait_task)].count();
      const bool overlaps = !call.launched.empty() && early > 0;
      const Overlap overlap = overlap_behind(result.graph, done, overlaps ? -early : 0);
      result.graph.add(
          {.before = done,
           .after = call.wait_task,
           .lag = overlap.lag,
           .provenance = call.recorded_wait ? Provenance::measured : Provenance::inferred,
           .tail = overlap.tail,
           .why = call.launched.empty() ? Rule::device_sync : Rule::blocking_copy});
    }
    for (const std::uint32_t event : call.held_by) {
      if (call.held_task == kNoTask) continue;
      result.graph.add({.before = records.events[event].task,
                        .after = call.held_task,
                        .provenance = Provenance::inferred,
                        .why = Rule::blocking_copy});
    }
    if (call.queue_event != kNone && call.launch_task != kNoTask) {
      result.graph.add({.before = records.events[call.queue_event].task,
                        .after = call.launch_task,
                        .provenance = Provenance::inferred,
                        .why = Rule::launch_queue});
    }
  }
}

}  // namespace

void connect_hosts(const Records& records, const Threads& threads, Inference& result) {
  connect_threads(threads, records.tolerance, result);
  if (records.events.empty()) note_unstarted_threads(threads, result);
  connect_calls(records, result);
}

}  // namespace foretrace::infer_detail
