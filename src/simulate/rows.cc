#include "simulate/rows.h"

#include <algorithm>
#include <numeric>

#include "foretrace/error.h"
#include "simulate/circle.h"

namespace foretrace {
namespace {

/// One wait between tasks as the graph numbers them. A negative gap is two: it counts back from the
/// finish, but not to before the start.
template <class Visit>
void each_wait_in_line(const Graph& graph, TaskId task, const Visit& visit) {
  const TaskId front = graph.previous(task);
  if (front == kNoTask) return;
  const Nanoseconds gap = graph.task(task).gap;
  visit(index(front), index(task), gap.count(), Anchor::finish);
  if (gap < 0ns) visit(index(front), index(task), std::int64_t{0}, Anchor::start);
}

class RowMaker {
 public:
  explicit RowMaker(const Graph& graph)
      : graph_(graph), count_(static_cast<std::uint32_t>(graph.task_count())) {}

  Rows make() {
    check_lanes();
    survey();
    if (is_ordered_) {
      rows_.position.resize(count_);
      std::iota(rows_.position.begin(), rows_.position.end(), 0);
    } else {
      number_in_topological_order();
    }
    fill();
    take_durations();
    return std::move(rows_);
  }

 private:
  void check_lanes() const {
    CHECK(count_ < Rows::kFromStart);
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      const Lane& lane = graph_.lane(LaneId{i});
      if (lane.discipline == Discipline::fifo || graph_.first(LaneId{i}) == kNoTask) continue;
      throw Error("all lanes must run their tasks in line, but " + lane.name + " does not");
    }
  }

  template <class Visit>
  void each_wait(const Visit& visit) const {
    for (std::uint32_t i = 0; i < count_; ++i) each_wait_in_line(graph_, TaskId{i}, visit);
    graph_.each_dependency([&](const Dependency& wait) {
      visit(index(wait.before), index(wait.after), wait.lag.count(), wait.anchor);
      // It may overlap the tail, but not start before.
      if (wait.lag < 0ns) visit(index(wait.before), index(wait.after), 0, Anchor::start);
    });
  }

  /// Counts the waits of each task, and finds out whether tasks stand in order as they are.
  void survey() {
    waits_.assign(count_, 0);
    each_wait([&](std::uint32_t before, std::uint32_t after, std::int64_t lag, Anchor anchor) {
      ++waits_[after];
      ++wait_count_;
      is_ordered_ &= before < after;
      has_lags_ |= lag != 0 || anchor == Anchor::start;
    });
    CHECK(wait_count_ < 0xffffffff);
  }

  /// Kahn's algorithm. The queue of ready tasks is the new order itself.
  void number_in_topological_order() {
    std::vector<std::uint32_t> row(count_ + 1, 0);
    each_wait(
        [&](std::uint32_t before, std::uint32_t, std::int64_t, Anchor) { ++row[before + 1]; });
    std::partial_sum(row.begin(), row.end(), row.begin());
    std::vector<std::uint32_t> dependents(wait_count_);
    each_wait([&](std::uint32_t before, std::uint32_t after, std::int64_t, Anchor) {
      dependents[row[before]++] = after;
    });
    // Filling has moved each row's beginning to its end, which is the beginning of the next.
    std::vector<std::uint32_t> left = waits_;
    std::vector<std::uint32_t> order;
    order.reserve(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (left[i] == 0) order.push_back(i);
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      const std::uint32_t task = order[at];
      for (std::uint32_t i = task == 0 ? 0 : row[task - 1]; i < row[task]; ++i) {
        if (--left[dependents[i]] == 0) order.push_back(dependents[i]);
      }
    }
    if (order.size() < count_) throw_circle(graph_);
    rows_.position.resize(count_);
    for (std::uint32_t i = 0; i < count_; ++i) rows_.position[order[i]] = i;
  }

  void fill() {
    rows_.first.assign(count_ + 1, 0);
    for (std::uint32_t i = 0; i < count_; ++i) rows_.first[rows_.position[i] + 1] = waits_[i];
    std::partial_sum(rows_.first.begin(), rows_.first.end(), rows_.first.begin());
    waits_ = {};
    std::vector<std::uint32_t> free(rows_.first.begin(), rows_.first.end() - 1);
    rows_.before.resize(wait_count_);
    if (has_lags_) rows_.lag.resize(wait_count_);
    each_wait([&](std::uint32_t before, std::uint32_t after, std::int64_t lag, Anchor anchor) {
      const std::uint32_t from = rows_.position[before];
      const std::uint32_t to = rows_.position[after];
      const std::uint32_t at = free[to]++;
      rows_.before[at] = from | (anchor == Anchor::start ? Rows::kFromStart : 0);
      if (has_lags_) rows_.lag[at] = lag;
      rows_.reach = std::max(rows_.reach, to - from);
    });
  }

  void take_durations() {
    rows_.duration.resize(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      const TaskId task{i};
      rows_.duration[rows_.position[i]] = graph_.removed(task) ? 0ns : graph_.task(task).duration;
    }
  }

  const Graph& graph_;
  std::uint32_t count_;
  Rows rows_;
  std::vector<std::uint32_t> waits_;
  std::size_t wait_count_ = 0;
  bool is_ordered_ = true;
  bool has_lags_ = false;
};

}  // namespace

std::size_t Rows::bytes() const {
  return (position.capacity() + first.capacity() + before.capacity()) * sizeof(std::uint32_t) +
         (lag.capacity() + duration.capacity()) * sizeof(std::int64_t);
}

Rows make_rows(const Graph& graph) { return RowMaker(graph).make(); }

}  // namespace foretrace
