// A shared lane, compared with the definition of max-min fairness, computed again at every change.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "foretrace/simulate.h"

namespace foretrace {
namespace {

struct Transfer {
  double arrival;
  double bytes;
  double limit;  ///< Bytes a nanosecond.
  double left = bytes;
  double rate = 0;
  double finish = -1;
};

/// In order of limits, each transfer gets its limit or an equal part of the remaining capacity.
void share(std::vector<Transfer*>& running, double capacity) {
  std::sort(running.begin(), running.end(),
            [](const Transfer* a, const Transfer* b) { return a->limit < b->limit; });
  std::size_t others = running.size();
  for (Transfer* each : running) {
    each->rate = std::min(each->limit, capacity / static_cast<double>(others--));
    capacity -= each->rate;
  }
}

void run(std::vector<Transfer>& transfers, double capacity) {
  double now = 0;
  for (std::size_t left = transfers.size(); left > 0;) {
    std::vector<Transfer*> running;
    double next = std::numeric_limits<double>::infinity();
    for (Transfer& each : transfers) {
      if (each.arrival > now) next = std::min(next, each.arrival);
      if (each.arrival <= now && each.finish < 0) running.push_back(&each);
    }
    share(running, capacity);
    for (const Transfer* each : running) next = std::min(next, now + each->left / each->rate);
    for (Transfer* each : running) {
      each->left -= each->rate * (next - now);
      if (each->left > 1e-6) continue;
      each->finish = next;
      --left;
    }
    now = next;
  }
}

TEST(SharedLane, IsMaxMinFair) {
  constexpr double kCapacity = 2;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Graph graph;
    const LaneId link = graph.add_lane(
        {.name = "link", .discipline = Discipline::shared, .capacity = {kCapacity * 1e9}});
    const LaneId start = graph.add_lane({.name = "start"});
    const TaskId origin = graph.append(start, {.kind = TaskKind::marker});
    std::vector<Transfer> transfers;
    std::vector<TaskId> tasks;
    for (auto count = 1 + random() % 12; count > 0; --count) {
      const auto arrival = static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 100'000);
      const auto bytes = static_cast<std::int64_t>(1 + random() % 100'000);
      const auto least = static_cast<std::int64_t>(random() % 2 == 0 ? 0 : 1 + random() % 300'000);
      tasks.push_back(graph.append(link, {.duration = Nanoseconds(least), .bytes = Bytes{bytes}}));
      graph.add({.before = origin, .after = tasks.back(), .lag = Nanoseconds(arrival)});
      const auto work = static_cast<double>(bytes);
      transfers.push_back({.arrival = static_cast<double>(arrival),
                           .bytes = work,
                           .limit = least == 0 ? std::numeric_limits<double>::infinity()
                                               : work / static_cast<double>(least)});
    }
    const Timeline timeline = simulate(graph);
    run(transfers, kCapacity);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      // Each of the at most 24 changes happens at a whole nanosecond.
      EXPECT_NEAR(static_cast<double>(timeline.finish[index(tasks[i])].count()),
                  transfers[i].finish, 24);
    }
  }
}

}  // namespace
}  // namespace foretrace
