// Models reading and the sharing of cores. A batch of b bytes, of which a share m comes from disk
// and a share r from the caches of other servers, is read in
//
//     b m / S + b (1 - m - r) / C   on "storage", at S from disk and at C from the cache
//     b r / N                       on "network"
//
// so that an epoch of D samples takes D m / S + D (1 - m) / C, which is equation 1 of Mohan et al.
// (VLDB'21): one stage that reads hits and misses in turn. Batches are read in order, as one
// stream of reads at full bandwidth: readers that slow each other down, and a disk that is slower
// for many small files, must be included in S.

#include <cmath>

#include "transform/input/loader.h"

namespace foretrace {

Bytes rounded(double bytes) { return Bytes{std::llround(std::min(bytes, 9e18))}; }

namespace {

void wait_for(Graph& graph, TaskId before, TaskId after, WaitReason why, Nanoseconds lag = 0ns) {
  graph.add({.before = before,
             .after = after,
             .lag = lag,
             .provenance = Provenance::assumed,
             .why = why});
}

bool needs_core(const Task& task) {
  return runs_on_host(task.kind) && task.kind != TaskKind::sync && task.duration > 0ns;
}

}  // namespace

BatchCost cost_of_batch(const LoaderSettings& settings) {
  BatchCost cost;
  const auto jobs = static_cast<double>(settings.set.jobs);
  CachedSet set = settings.set;
  if (settings.coordinated) {
    set.jobs = 1;
    cost.part = 1 / jobs;
  }
  cost.shares = item_shares(set);
  cost.storage = {settings.storage.bytes_per_second / jobs};
  if (settings.dataset_samples == 0) return cost;
  const double stored = static_cast<double>(settings.dataset_bytes.count) /
                        static_cast<double>(settings.dataset_samples) *
                        static_cast<double>(settings.samples) * cost.part;
  const double cache = settings.cache_bandwidth.bytes_per_second;
  const double weight = cache > 0 ? settings.storage.bytes_per_second / cache : 0;
  cost.disk = rounded(stored * cost.shares.disk);
  cost.read = rounded(stored * (cost.shares.disk + cost.shares.local * weight));
  cost.remote = rounded(stored * cost.shares.remote);
  return cost;
}

FetchLanes::FetchLanes(const LoaderSettings& settings, LaneId thread) : thread_(thread) {
  if (!settings.reads()) return;
  const BatchCost cost = cost_of_batch(settings);
  if (cost.read.count > 0) {
    stages_.push_back(
        {"storage", "read batch", LaneKind::storage, cost.read, cost.storage, kNoTask});
  }
  if (cost.remote.count > 0 && settings.network.bytes_per_second > 0) {
    const Bandwidth network{settings.network.bytes_per_second /
                            static_cast<double>(settings.set.jobs)};
    // The server's link for reading is not one of the job's own links, so that its background work
    // does not count as part of a step.
    stages_.push_back(
        {"network of storage", "fetch batch", LaneKind::storage, cost.remote, network, kNoTask});
  }
}

Fetch FetchLanes::add(Graph& graph) {
  Fetch fetch;
  for (Stage& stage : stages_) {
    Lane like = graph.lane(thread_);
    LaneId lane = kNoLane;
    for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
      if (graph.lane(LaneId{i}).name == stage.lane) lane = LaneId{i};
    }
    if (lane == kNoLane) {
      lane = graph.add_lane({.name = stage.lane,
                             .kind = stage.kind,
                             .device = -1,
                             .rank = like.rank,
                             .discipline = Discipline::shared,
                             .capacity = stage.capacity});
    }
    const TaskId read = graph.append(lane, {.bytes = stage.bytes,
                                            .name = graph.names().intern(stage.task),
                                            .kind = TaskKind::transfer,
                                            .phase = Phase::input});
    if (stage.last != kNoTask)
      wait_for(graph, stage.last, read, wait_reason_named(graph.names(), "reads in order"));
    if (fetch.last != kNoTask)
      wait_for(graph, fetch.last, read, wait_reason_named(graph.names(), "batch read"));
    if (fetch.first == kNoTask) fetch.first = read;
    fetch.last = stage.last = read;
  }
  return fetch;
}

Nanoseconds FetchLanes::time() const {
  Nanoseconds sum{0};
  for (const Stage& stage : stages_) sum += time_for(stage.bytes, stage.capacity);
  return sum;
}

Nanoseconds FetchLanes::slower() const {
  Nanoseconds slowest{0};
  for (const Stage& stage : stages_) {
    slowest = std::max(slowest, time_for(stage.bytes, stage.capacity));
  }
  return slowest;
}

void share_cores(Graph& graph, double cores, const std::vector<LaneId>& workers) {
  std::vector<LaneId> threads = workers;
  const std::int32_t rank = graph.lane(workers.front()).rank;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    if (lane.kind == LaneKind::host_thread && lane.rank == rank &&
        lane.discipline == Discipline::fifo) {
      threads.push_back(LaneId{i});
    }
  }
  // One byte of capacity is a nanosecond of one core.
  const LaneId shared = graph.add_lane({.name = "cpu cores",
                                        .kind = LaneKind::worker,
                                        .device = -1,
                                        .rank = rank,
                                        .discipline = Discipline::shared,
                                        .capacity = {cores * 1e9}});
  for (const LaneId thread : threads) {
    // Nothing but its gap delays the first task of a thread. A marker on the thread keeps that gap:
    // on the shared lane, a task without a wait would get one on the task in front
    // (apply_checked()).
    TaskId before = kNoTask;
    const TaskId first = graph.first(thread);
    if (first != kNoTask && needs_core(graph.task(first))) {
      before = graph.insert_before(first, {.gap = graph.task(first).gap,
                                           .name = graph.names().intern("begins"),
                                           .kind = TaskKind::marker});
      graph.task(first).gap = 0ns;
    }
    bool before_moved = false;
    for (TaskId id = first, next = kNoTask; id != kNoTask; id = next) {
      next = graph.next(id);
      const bool moves = needs_core(graph.task(id));
      // Dependencies keep the order that the thread gave its tasks.
      if (before != kNoTask && (moves || before_moved)) {
        wait_for(graph, before, id, Rule::in_line, graph.task(id).gap);
      }
      if (moves) {
        Task& task = graph.task(id);
        task.bytes = Bytes{task.duration.count()};
        task.gap = 0ns;
        graph.move_to_end(id, shared);
      }
      before = id;
      before_moved = moves;
    }
  }
}

}  // namespace foretrace
