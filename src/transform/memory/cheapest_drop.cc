#include "transform/memory/cheapest_drop.h"

#include <algorithm>
#include <set>

#include "base/wide.h"

namespace foretrace {
namespace {

/// Chosen items and what they cost together.
class Selection {
 public:
  explicit Selection(const DropProblem& problem)
      : problem_(problem), needed_(problem.times.size(), 0) {}

  Nanoseconds added_by(std::uint32_t item) const {
    Nanoseconds added{0};
    for (const std::uint32_t task : problem_.items[item].work) {
      if (needed_[task] == 0) added += problem_.times[task];
    }
    return added;
  }
  void add(std::uint32_t item) {
    time_ += added_by(item);
    for (const std::uint32_t task : problem_.items[item].work) ++needed_[task];
    bytes_ += problem_.items[item].bytes;
  }
  void remove(std::uint32_t item) {
    for (const std::uint32_t task : problem_.items[item].work) --needed_[task];
    time_ -= added_by(item);
    bytes_ -= problem_.items[item].bytes;
  }
  bool is_needed(std::uint32_t task) const { return needed_[task] > 0; }
  Nanoseconds time() const { return time_; }
  Bytes bytes() const { return bytes_; }

 private:
  const DropProblem& problem_;
  std::vector<std::uint32_t> needed_;
  Nanoseconds time_{0};
  Bytes bytes_{};
};

/// The bytes that an item saves and the time it costs. The item with the most bytes for its time
/// sorts first.
struct DropRatio {
  Bytes bytes;
  Nanoseconds time;
  std::uint32_t item = 0;

  friend bool operator<(const DropRatio& a, const DropRatio& b) {
    const Wide left = static_cast<Wide>(a.bytes.count) * b.time.count();
    const Wide right = static_cast<Wide>(b.bytes.count) * a.time.count();
    if (left != right) return left > right;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.item < b.item;
  }
};

std::vector<std::vector<std::uint32_t>> items_of_tasks(const DropProblem& problem) {
  std::vector<std::vector<std::uint32_t>> items(problem.times.size());
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    for (const std::uint32_t task : problem.items[i].work) items[task].push_back(i);
  }
  return items;
}

/// Removes chosen items whose bytes are not needed, beginning with the item chosen last.
void drop_unneeded(const DropProblem& problem, std::vector<std::uint32_t>& chosen,
                   Selection& cost) {
  for (auto item = chosen.rbegin(); item != chosen.rend(); ++item) {
    const Bytes left = cost.bytes() - problem.items[*item].bytes;
    if (left < problem.wanted) continue;
    cost.remove(*item);
    *item = 0xffffffff;
  }
  std::erase(chosen, 0xffffffff);
}

class Search {
 public:
  Search(const DropProblem& problem, DropChoice incumbent, std::int64_t effort)
      : problem_(problem),
        best_(std::move(incumbent)),
        effort_(effort),
        cost_(problem),
        share_(problem.times.size(), 0),
        open_bytes_(problem.items.size() + 1) {
    const auto items = items_of_tasks(problem);
    for (std::size_t i = 0; i < share_.size(); ++i) {
      const auto count = static_cast<std::int64_t>(items[i].size());
      if (count > 0) share_[i] = problem.times[i].count() / count;
    }
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) order_.push_back(ratio_of(i));
    std::sort(order_.begin(), order_.end());
    for (std::size_t i = order_.size(); i-- > 0;) {
      open_bytes_[i] = open_bytes_[i + 1] + order_[i].bytes;
    }
  }

  DropChoice run() {
    // A deeper search would exhaust the stack and take too long.
    best_.least = false;
    if (order_.size() > kMaxItems) return best_;
    visit(0);
    best_.least = effort_ > 0;
    std::sort(best_.items.begin(), best_.items.end());
    return best_;
  }

 private:
  static constexpr std::size_t kMaxItems = 5'000;

  /// The ratio of an item if the time of each task is divided evenly among all items that need it.
  DropRatio ratio_of(std::uint32_t item) const {
    std::int64_t time = 0;
    for (const std::uint32_t task : problem_.items[item].work) {
      if (!cost_.is_needed(task)) time += share_[task];
    }
    return {problem_.items[item].bytes, Nanoseconds(time), item};
  }

  /// Returns a lower bound on the time of any choice that adds items from `at` on.
  Nanoseconds bound(std::size_t at) {
    std::vector<DropRatio> open;
    open.reserve(order_.size() - at);
    for (std::size_t i = at; i < order_.size(); ++i) open.push_back(ratio_of(order_[i].item));
    effort_ -= static_cast<std::int64_t>(open.size());
    std::sort(open.begin(), open.end());
    Bytes missing = problem_.wanted - cost_.bytes();
    Nanoseconds time = cost_.time();
    for (const DropRatio& item : open) {
      if (missing <= Bytes{}) break;
      const std::int64_t part = std::min(missing.count, item.bytes.count);
      time += Nanoseconds(static_cast<std::int64_t>(static_cast<Wide>(item.time.count()) * part /
                                                    item.bytes.count));
      missing -= item.bytes;
    }
    return time;
  }

  void visit(std::size_t at) {
    if (effort_ <= 0) return;
    if (cost_.bytes() >= problem_.wanted) {
      if (cost_.time() < best_.time) {
        best_ = {.items = chosen_, .bytes = cost_.bytes(), .time = cost_.time()};
      }
      return;
    }
    if (cost_.bytes() + open_bytes_[at] < problem_.wanted) return;
    if (bound(at) >= best_.time) return;
    const std::uint32_t item = order_[at].item;
    chosen_.push_back(item);
    cost_.add(item);
    visit(at + 1);
    cost_.remove(item);
    chosen_.pop_back();
    visit(at + 1);
  }

  const DropProblem& problem_;
  DropChoice best_;
  std::int64_t effort_;
  Selection cost_;
  std::vector<std::int64_t> share_;
  std::vector<Bytes> open_bytes_;  ///< Bytes of the items from each index on.
  std::vector<DropRatio> order_;
  std::vector<std::uint32_t> chosen_;
};

}  // namespace

DropChoice drop_greedily(const DropProblem& problem) {
  const auto items = items_of_tasks(problem);
  Selection cost(problem);
  std::vector<DropRatio> now;
  std::set<DropRatio> open;
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    now.push_back({problem.items[i].bytes, cost.added_by(i), i});
    open.insert(now.back());
  }
  std::vector<std::uint32_t> chosen;
  while (!open.empty() && cost.bytes() < problem.wanted) {
    const std::uint32_t item = open.begin()->item;
    open.erase(open.begin());
    std::vector<std::uint32_t> paid;
    for (const std::uint32_t task : problem.items[item].work) {
      if (!cost.is_needed(task)) paid.push_back(task);
    }
    cost.add(item);
    chosen.push_back(item);
    for (const std::uint32_t task : paid) {
      for (const std::uint32_t other : items[task]) {
        if (open.erase(now[other]) == 0) continue;
        now[other].time -= problem.times[task];
        open.insert(now[other]);
      }
    }
  }
  drop_unneeded(problem, chosen, cost);
  std::sort(chosen.begin(), chosen.end());
  return {.items = std::move(chosen), .bytes = cost.bytes(), .time = cost.time()};
}

DropChoice drop_cheapest(const DropProblem& problem, std::int64_t effort) {
  DropChoice greedy = drop_greedily(problem);
  if (greedy.bytes < problem.wanted) {
    greedy.least = true;  // Everything is dropped.
    return greedy;
  }
  return Search(problem, std::move(greedy), effort).run();
}

}  // namespace foretrace
