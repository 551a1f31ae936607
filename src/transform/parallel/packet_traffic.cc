#include "transform/parallel/packet_traffic.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/numbers/scaling.h"
#include "foretrace/simulate.h"
#include "timeline/covered_time.h"

namespace foretrace {
namespace {

constexpr int kMaxSendings = 4;
constexpr Nanoseconds kUnmoved = 1us;
constexpr Bandwidth kNoLimit{1e18};  ///< The network decides how long transfers take.
constexpr char kWhenReady = 1, kByPriority = 2;

PacketRequest request_of(const PacketTransfer& transfer) {
  return {.operation = transfer.operation,
          .bytes = transfer.bytes,
          .ranks = transfer.ranks,
          .loss = transfer.loss,
          .pull_loss = transfer.pull_loss,
          .unimportant = transfer.unimportant};
}

}  // namespace

PacketTraffic::Totals PacketTraffic::send(const std::vector<PacketTransfer>& transfers,
                                          bool when_ready) {
  share_lanes(transfers, when_ready);
  std::map<std::int32_t, Step> of_step;
  for (const PacketTransfer& transfer : transfers)
    of_step[graph_.task(transfer.task).step].transfers.push_back(&transfer);
  Totals totals;
  std::vector<Step> overlapping;
  for (auto& [number, step] : of_step) {
    if (may_overlap(step)) {
      assign_queues(step);
      totals.overlapping += step.transfers.size();
      overlapping.push_back(std::move(step));
    } else {
      for (const PacketTransfer* transfer : step.transfers) send_isolated(*transfer, totals);
    }
  }
  if (overlapping.empty()) return totals;
  const Timeline timeline = send_overlapping(overlapping, totals);
  CoveredTime covered;
  for (const Step& step : overlapping) {
    Bytes gradients{};
    for (std::size_t i = 0; i < step.transfers.size(); ++i) {
      const std::size_t task = index(step.transfers[i]->task);
      totals.before += step.durations[i];
      covered.add(timeline.start[task], timeline.finish[task]);
      if (step.transfers[i]->is_gradient) gradients += step.times[i].moved;
    }
    add(step.run, gradients, totals);
  }
  covered.finish();
  totals.after += covered.within(0ns, timeline.length);
  return totals;
}

/// Makes lanes with nothing but transfers shared if they have priorities or, with `when_ready`, if
/// only the lane orders them.
void PacketTraffic::share_lanes(const std::vector<PacketTransfer>& transfers, bool when_ready) {
  shared_lanes_.assign(graph_.lane_count(), 0);
  std::set<TaskId> chosen;
  std::set<LaneId> lanes;
  for (const PacketTransfer& transfer : transfers)
    chosen.insert(transfer.task), lanes.insert(graph_.lane_of(transfer.task));
  for (const LaneId id : lanes) {
    Lane& lane = graph_.lane(id);
    if (lane.discipline == Discipline::shared) continue;
    const bool by_priority = lane.discipline == Discipline::priority;
    if (!by_priority && !when_ready) continue;
    bool all = true;
    for (TaskId task = graph_.first(id); task != kNoTask; task = graph_.next(task))
      all = all && chosen.contains(task);
    if (!all) continue;
    if (!by_priority) wait_for_all(id);
    lane.discipline = Discipline::shared;
    lane.capacity = kNoLimit;
    shared_lanes_[index(id)] = by_priority ? kByPriority : kWhenReady;
  }
}

/// Makes work that waits for a transfer wait for the transfers of the step in front of it too,
/// because the lane no longer orders them.
void PacketTraffic::wait_for_all(LaneId lane) {
  std::vector<Dependency> added;
  std::vector<TaskId> front;
  for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
    if (!front.empty() && graph_.task(front.back()).step != graph_.task(task).step) front.clear();
    graph_.each_dependent(task, [&](Dependency wait) {
      if (wait.anchor == Anchor::start || graph_.lane_of(wait.after) == lane) return;
      for (const TaskId earlier : front) {
        wait.before = earlier;
        wait.provenance = Provenance::assumed;
        added.push_back(wait);
      }
    });
    front.push_back(task);
  }
  for (const Dependency& wait : added) graph_.add(wait);
}

bool PacketTraffic::may_overlap(const Step& step) const {
  const LaneId lane = graph_.lane_of(step.transfers.front()->task);
  return step.transfers.size() > 1 &&
         (shared_lanes_[index(lane)] != 0 ||
          std::ranges::any_of(step.transfers, [&](const PacketTransfer* transfer) {
            return graph_.lane_of(transfer->task) != lane;
          }));
}

/// Assigns the transfers of a step to queues: the most urgent bytes of lanes with priorities go to
/// queue 0.
void PacketTraffic::assign_queues(Step& step) const {
  std::map<LaneId, std::size_t> last;
  std::vector<std::size_t> urgent;
  std::int64_t all = 0, sum = 0;
  for (std::size_t i = 0; i < step.transfers.size(); ++i) {
    const PacketTransfer& transfer = *step.transfers[i];
    const LaneId lane = graph_.lane_of(transfer.task);
    PacketRequest& request = step.requests.emplace_back(request_of(transfer));
    const auto [found, is_first] = last.try_emplace(lane, i);
    if (!is_first && shared_lanes_[index(lane)] == 0) request.predecessor = found->second;
    found->second = i;
    if (shared_lanes_[index(lane)] != kByPriority) continue;
    urgent.push_back(i);
    all += transfer.bytes.count;
  }
  const auto priority = [&](std::size_t i) {
    return graph_.task(step.transfers[i]->task).priority;
  };
  std::ranges::stable_sort(urgent, std::greater{}, priority);
  for (const std::size_t i : urgent) {
    step.requests[i].queue = static_cast<std::uint8_t>(static_cast<std::int64_t>(kPortQueues) *
                                                       sum / std::max<std::int64_t>(1, all));
    sum += step.requests[i].bytes.count;
  }
}

void PacketTraffic::send_isolated(const PacketTransfer& transfer, Totals& totals) {
  const IsolatedRun& priced = isolated_run(transfer);
  Nanoseconds& duration = graph_.task(transfer.task).duration;
  totals.before += duration;
  duration = scaled(duration, ratio(priced.after.expansion.time, priced.before));
  totals.after += duration;
  add(priced.after, transfer.is_gradient ? priced.after.expansion.moved : Bytes{}, totals);
}

const PacketTraffic::IsolatedRun& PacketTraffic::isolated_run(const PacketTransfer& transfer) {
  const auto [found, is_new] =
      isolated_runs_.try_emplace({transfer.ranks, transfer.operation, transfer.bytes.count,
                                  transfer.is_gradient, transfer.is_front});
  IsolatedRun& priced = found->second;
  if (!is_new) return priced;
  const PacketRequest request = request_of(transfer);
  std::vector<CollectiveTimes> times;
  priced.after = networks_.send_packets({request}, after_, times);
  priced.before = before_ == nullptr
                      ? networks_.among(transfer.ranks).on_links(transfer.operation, transfer.bytes)
                      : networks_.send_packets({request}, *before_, times).expansion.time;
  return priced;
}

Timeline PacketTraffic::send_overlapping(std::vector<Step>& steps, Totals& totals) {
  for (Step& step : steps) {
    for (const PacketTransfer* transfer : step.transfers)
      step.durations.push_back(graph_.task(transfer->task).duration);
  }
  for (int round = 0;; ++round) {
    Timeline timeline = simulate(graph_, {.memory = false});
    totals.is_settled = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step& step = steps[i];
      if (!update_ready_times(step, timeline)) continue;
      totals.is_settled = false;
      if (round < kMaxSendings) run(step, static_cast<std::int64_t>(i));
    }
    if (totals.is_settled || round == kMaxSendings) return timeline;
  }
}

/// Whether transfers are ready at other times than they were sent at; if so, the next sending uses
/// the new times.
bool PacketTraffic::update_ready_times(Step& step, const Timeline& timeline) const {
  std::vector<Nanoseconds> at;
  for (std::size_t i = 0; i < step.transfers.size(); ++i) at.push_back(ready(step, i, timeline));
  const Nanoseconds first = *std::ranges::min_element(at);
  bool moved = step.times.empty();
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i] -= first;
    moved = moved || std::chrono::abs(at[i] - step.requests[i].at) > kUnmoved;
  }
  for (std::size_t i = 0; moved && i < at.size(); ++i) step.requests[i].at = at[i];
  return moved;
}

Nanoseconds PacketTraffic::ready(const Step& step, std::size_t which,
                                 const Timeline& timeline) const {
  const TaskId task = step.transfers[which]->task;
  Nanoseconds at{0};
  graph_.each_wait(task, [&](const Dependency& wait) {
    const auto& times = wait.anchor == Anchor::start ? timeline.start : timeline.finish;
    at = std::max(at, times[index(wait.before)] + wait.lag);
  });
  const TaskId front = graph_.previous(task);
  if (front == kNoTask || shared_lanes_[index(graph_.lane_of(task))] != 0) return at;
  const std::size_t predecessor = step.requests[which].predecessor;
  if (predecessor != CollectiveRun::kNoPredecessor && step.transfers[predecessor]->task == front)
    return at;
  return std::max(at, timeline.finish[index(front)]);
}

/// Sends the transfers of a step and sets their durations. Random losses differ from step to step.
void PacketTraffic::run(Step& step, std::int64_t number) {
  PacketSettings settings = after_;
  settings.seed += number;
  if (step.before.empty()) {
    for (std::size_t i = 0; i < step.requests.size(); ++i)
      step.before.push_back(closed_form_time(step, i));
  }
  if (before_ != nullptr) {
    PacketSettings recorded = *before_;
    recorded.seed += number;
    networks_.send_packets(step.requests, recorded, step.times);
    for (std::size_t i = 0; i < step.times.size(); ++i)
      step.before[i] = step.times[i].end - step.times[i].begin;
  }
  step.run = networks_.send_packets(step.requests, settings, step.times);
  for (std::size_t i = 0; i < step.times.size(); ++i) {
    const TaskId task = step.transfers[i]->task;
    const Nanoseconds now = step.times[i].end - step.times[i].begin, was = step.durations[i];
    const bool is_shared = shared_lanes_[index(graph_.lane_of(task))] != 0;
    graph_.task(task).duration = is_shared ? now + std::max(0ns, was - step.before[i])
                                           : scaled(was, ratio(now, step.before[i]));
  }
}

/// Returns the closed-form time of a transfer. Slices of a lane with priorities follow each other,
/// so that each transfer takes its part of the time of all of them.
Nanoseconds PacketTraffic::closed_form_time(const Step& step, std::size_t which) {
  const PacketTransfer& transfer = *step.transfers[which];
  Communicator& network = networks_.among(transfer.ranks);
  const LaneId lane = graph_.lane_of(transfer.task);
  if (shared_lanes_[index(lane)] != kByPriority)
    return network.on_links(transfer.operation, transfer.bytes);
  Bytes all{};
  for (const PacketTransfer* other : step.transfers)
    if (graph_.lane_of(other->task) == lane) all += other->bytes;
  return scaled(network.on_links(transfer.operation, all),
                static_cast<double>(transfer.bytes.count) / static_cast<double>(all.count));
}

void PacketTraffic::add(const PacketRun& packets, Bytes gradients, Totals& totals) {
  PacketCounts& sum = totals.counts;
  const PacketCounts& counts = packets.counts;
  sum.dropped_important += counts.dropped_important;
  sum.dropped_unimportant += counts.dropped_unimportant;
  sum.sent_again += counts.sent_again;
  sum.missing_important += counts.missing_important;
  sum.missing_unimportant += counts.missing_unimportant;
  sum.timeouts += counts.timeouts;
  sum.deepest_queue = std::max(sum.deepest_queue, counts.deepest_queue);
  totals.gradients += gradients;
  if (packets.expansion.moved > totals.largest.expansion.moved) totals.largest = packets;
}

}  // namespace foretrace
