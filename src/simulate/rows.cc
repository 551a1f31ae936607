#include "simulate/rows.h"

#include <algorithm>
#include <numeric>

#include "foretrace/error.h"
#include "simulate/cycle.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

class RowMaker {
 public:
  explicit RowMaker(const Graph& graph)
      : graph_(graph), count_(static_cast<std::uint32_t>(graph.task_count())) {}

  Rows make(RowOrder order) {
    CHECK(graph_.task_count() < Rows::kTail);
    collect();
    survey();
    rows_.position.resize(count_);
    if (is_ordered_ && (order == RowOrder::kept || reach_ <= kNear)) {
      std::iota(rows_.position.begin(), rows_.position.end(), 0);
    } else {
      number_in_topological_order();
    }
    fill();
    take_durations();
    return std::move(rows_);
  }

 private:
  /// 8192 rows of eight finishes take half a megabyte.
  static constexpr std::uint32_t kNear = 1 << 13;
  /// Number of tasks; their waits take about 50 MB.
  static constexpr std::uint32_t kMaxCollected = 1 << 20;

  /// Copies the waits, because reading them from the graph again costs several times as much. For a
  /// huge graph the copy would take too much memory.
  void collect() {
    if (count_ > kMaxCollected) return;
    // A task has at most one wait for its predecessor in line; each dependency is one more.
    collected_.reserve(std::size_t{count_} + graph_.dependency_count());
    foretrace::each_wait(graph_, [&](const Wait& wait) {
      // Constructs the wait in place: copying it takes a third of the total time here.
      collected_.emplace_back(wait.before, wait.after, wait.lag, wait.tail, wait.from_start);
    });
  }

  template <class Visit>
  void each_wait(const Visit& visit) const {
    if (count_ > kMaxCollected) return foretrace::each_wait(graph_, visit);
    for (const Wait& wait : collected_) visit(wait);
  }

  /// Counts the waits of each task, and checks whether the tasks already stand in topological
  /// order.
  void survey() {
    waits_.assign(count_, 0);
    each_wait([&](const Wait& wait) {
      ++waits_[wait.after];
      ++wait_count_;
      is_ordered_ &= wait.before < wait.after;
      reach_ = std::max(reach_, wait.after - wait.before);  // Meaningful only if ordered.
      has_tails_ |= !wait.tail.empty();
      has_lags_ |= wait.lag != 0 || wait.from_start || !wait.tail.empty();
    });
    CHECK(wait_count_ < UINT32_MAX);
  }

  /// Kahn's algorithm. The queue of ready tasks is the new order itself.
  void number_in_topological_order() {
    std::vector<std::uint32_t> row(count_ + 1, 0);
    each_wait([&](const Wait& wait) { ++row[wait.before + 1]; });
    std::partial_sum(row.begin(), row.end(), row.begin());
    std::vector<std::uint32_t> dependents(wait_count_);
    each_wait([&](const Wait& wait) { dependents[row[wait.before]++] = wait.after; });
    // Filling has moved each start to its end, which is the start of the next.
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
    if (order.size() < count_) throw_stuck(graph_);
    for (std::uint32_t i = 0; i < count_; ++i) rows_.position[order[i]] = i;
  }

  void fill() {
    rows_.first.assign(count_ + 1, 0);
    for (std::uint32_t i = 0; i < count_; ++i) rows_.first[rows_.position[i] + 1] = waits_[i];
    std::partial_sum(rows_.first.begin(), rows_.first.end(), rows_.first.begin());
    waits_.assign(rows_.first.begin(), rows_.first.end() - 1);  // Next free place of each row.
    rows_.before.resize(wait_count_);
    if (has_lags_) rows_.lag.resize(wait_count_);
    if (has_tails_) rows_.tail.resize(wait_count_);
    each_wait([&](const Wait& wait) {
      const std::uint32_t from = rows_.position[wait.before];
      const std::uint32_t to = rows_.position[wait.after];
      const std::uint32_t at = waits_[to]++;
      rows_.before[at] =
          from | (wait.from_start ? Rows::kFromStart : 0) | (wait.tail.empty() ? 0 : Rows::kTail);
      if (has_lags_) rows_.lag[at] = wait.lag;
      if (has_tails_) rows_.tail[at] = wait.tail.share();
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
  std::vector<Wait> collected_;
  std::vector<std::uint32_t> waits_;
  std::size_t wait_count_ = 0;
  bool is_ordered_ = true;
  std::uint32_t reach_ = 0;
  bool has_lags_ = false, has_tails_ = false;
};

}  // namespace

std::size_t Rows::bytes() const {
  return (position.capacity() + first.capacity() + before.capacity()) * sizeof(std::uint32_t) +
         (lag.capacity() + tail.capacity() + duration.capacity()) * sizeof(std::int64_t);
}

Rows make_rows(const Graph& graph, RowOrder order) { return RowMaker(graph).make(order); }

}  // namespace foretrace
