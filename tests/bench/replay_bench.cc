// How fast graphs are built, compiled and replayed, compared with a hand-written sweep over the
// same tasks.
//
//     replay_bench [tasks]      10000000 by default; prints one table

#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "arguments.h"
#include "foretrace/simulate.h"
#include "support/yardstick.h"

namespace foretrace {
namespace {

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}

/// CPU time of the whole process, finer than the clock of user time.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Time {
  double wall = 0;
  double user = 0;
  double cpu = 0;
};

Time measure(const std::function<void()>& action) {
  const double user = user_seconds();
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  action();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count(), user_seconds() - user, cpu_seconds() - cpu};
}

/// The shortest wall and CPU times of several runs, and their mean user time (the clock of user
/// time is coarse), after one warm-up run.
Time best_of(int runs, const std::function<void()>& action) {
  action();
  Time best{1e9, 0, 1e9};
  for (int i = 0; i < runs; ++i) {
    const Time time = measure(action);
    best = {std::min(best.wall, time.wall), best.user + time.user / runs,
            std::min(best.cpu, time.cpu)};
  }
  return best;
}

void print_row(const char* what, Time time, double items, const char* unit) {
  std::printf("%-52s %8.3f s wall %8.3f s user %8.1f M %s/s\n", what, time.wall, time.user,
              items / std::min(time.wall, time.user) / 1e6, unit);
}

/// The reference for the replay: the same sweep with nothing around it.
class ByHand {
 public:
  explicit ByHand(std::uint32_t count) {
    first_.push_back(0);
    yardstick::generate(
        count,
        [&](std::uint32_t i, std::uint32_t duration) {
          if (i > 0) first_.push_back(static_cast<std::uint32_t>(before_.size()));
          duration_.push_back(duration);
          if (i >= yardstick::kLanes) before_.push_back(i - yardstick::kLanes);
        },
        [&](std::uint32_t before, std::uint32_t) { before_.push_back(before); });
    first_.push_back(static_cast<std::uint32_t>(before_.size()));
    finish_.resize(count);
  }

  std::int64_t replay() {
    std::int64_t greatest = 0;
    for (std::size_t i = 0; i < duration_.size(); ++i) {
      std::int64_t start = 0;
      for (std::uint32_t w = first_[i]; w < first_[i + 1]; ++w)
        start = std::max(start, finish_[before_[w]]);
      finish_[i] = start + duration_[i];
      greatest = std::max(greatest, finish_[i]);
    }
    return greatest;
  }

 private:
  std::vector<std::uint32_t> first_, before_;
  std::vector<std::int64_t> duration_, finish_;
};

using Numbers = std::vector<std::uint32_t>;

Numbers random_numbers(std::uint32_t count) {
  Numbers number(count);
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), std::mt19937(1));
  return number;
}

/// Numbers the tasks as an importer that reads one lane after another does.
Numbers numbers_by_lane(std::uint32_t count) {
  Numbers number(count);
  std::uint32_t next = 0;
  for (std::uint32_t lane = 0; lane < yardstick::kLanes; ++lane) {
    for (std::uint32_t i = lane; i < count; i += yardstick::kLanes) number[i] = next++;
  }
  return number;
}

/// The same graph with tasks numbered in another way.
Graph renumbered(std::uint32_t count, const Numbers& number) {
  const Graph ordered = yardstick::make_graph(count);
  Graph graph;
  std::vector<LaneId> lanes;
  for (std::uint32_t i = 0; i < yardstick::kLanes; ++i) {
    lanes.push_back(graph.add_lane(ordered.lane(LaneId{i})));
  }
  const LaneId nowhere = graph.add_lane({.name = "nowhere"});
  graph.reserve(count, ordered.dependency_count());
  Numbers old(count);
  for (std::uint32_t i = 0; i < count; ++i) old[number[i]] = i;
  for (std::uint32_t i = 0; i < count; ++i) graph.append(nowhere, ordered.task(TaskId{old[i]}));
  for (std::uint32_t i = 0; i < count; ++i) {
    graph.move_to_end(TaskId{number[i]}, lanes[i % yardstick::kLanes]);
  }
  ordered.each_dependency([&](const Dependency& wait) {
    graph.add(
        {.before = TaskId{number[index(wait.before)]}, .after = TaskId{number[index(wait.after)]}});
  });
  return graph;
}

void expect(std::uint32_t count, Nanoseconds length) {
  const std::int64_t known = count == 100'000      ? 20'342'622
                             : count == 1'000'000  ? 202'684'916
                             : count == 10'000'000 ? 2'025'774'290
                                                   : length.count();
  if (length.count() == known) return;
  std::printf("WRONG: %lld ns instead of %lld ns\n", static_cast<long long>(length.count()),
              static_cast<long long>(known));
  std::exit(1);
}

void bench_building(std::uint32_t count) {
  std::size_t records = 0;
  const Time time = measure([&] {
    const Graph graph = yardstick::make_graph(count);
    records = graph.task_count() + graph.dependency_count();
  });
  print_row("build: append and add", time, static_cast<double>(records), "records");
}

void bench_compiled(std::uint32_t count) {
  const double tasks = count;
  const Graph graph = yardstick::make_graph(count);
  std::unique_ptr<Compiled> compiled;
  const Time compile = measure([&] { compiled = std::make_unique<Compiled>(graph); });
  print_row("compile, tasks in order already", compile, tasks, "tasks");
  std::printf("%-52s %8.1f bytes a task\n", "compiled size",
              static_cast<double>(compiled->bytes()) / tasks);
  expect(count, compiled->replay());
  const Time one = best_of(5, [&] { compiled->replay(); });
  print_row("replay, compiled", one, tasks, "tasks");

  ByHand by_hand(count);
  expect(count, Nanoseconds(by_hand.replay()));
  const Time hand = best_of(5, [&] { by_hand.replay(); });
  print_row("the same sweep by hand", hand, tasks, "tasks");
  std::printf("%-52s %8.2f of the sweep by hand\n", "replay takes", one.cpu / hand.cpu);

  const std::vector<Nanoseconds> durations(compiled->durations().begin(),
                                           compiled->durations().end());
  const std::vector<std::span<const Nanoseconds>> same(8, durations);
  for (const Nanoseconds length : compiled->replay_all(same).lengths) expect(count, length);
  std::vector<std::vector<Nanoseconds>> own(8, durations);
  const std::vector<std::span<const Nanoseconds>> sets(own.begin(), own.end());
  const Time eight = best_of(3, [&] { (void)compiled->replay_all(sets); });
  print_row("replay, eight sets of durations together", eight, 8 * tasks, "tasks");
  std::printf("%-52s %8.2f times one\n", "eight sets take", eight.cpu / one.cpu);
}

void bench_renumbering(std::uint32_t count, const Numbers& number, const std::string& how) {
  const Graph graph = renumbered(count, number);
  std::unique_ptr<Compiled> compiled;
  const Time compile = measure([&] { compiled = std::make_unique<Compiled>(graph); });
  print_row(("compile, tasks numbered " + how).c_str(), compile, count, "tasks");
  expect(count, compiled->replay());
  print_row("replay, compiled from that", best_of(3, [&] { compiled->replay(); }), count, "tasks");
}

void bench_simulate(std::uint32_t count) {
  const Graph graph = yardstick::make_graph(count);
  expect(count, simulate(graph).length);
  print_row("simulate, in line", best_of(2, [&] { (void)simulate(graph); }), count, "tasks");
  print_row("simulate with reasons, in line",
            best_of(2, [&] { (void)simulate(graph, {.reasons = true}); }), count, "tasks");
}

void bench_events(std::uint32_t count) {
  const Graph graph = yardstick::make_graph(count, Discipline::priority);
  print_row("simulate, priority lanes (arrival and finish)",
            best_of(2, [&] { (void)simulate(graph); }), 2.0 * count, "events");
}

/// The order on lanes becomes dependencies, and durations become bytes at 1 byte/ns, so that the
/// answer stays the same.
void bench_shared(std::uint32_t count) {
  Graph graph = yardstick::make_graph(count, Discipline::shared);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) graph.lane(LaneId{i}).capacity = {1e9};
  for (std::uint32_t i = 0; i < count; ++i) {
    Task& task = graph.task(TaskId{i});
    task.bytes = Bytes{task.duration.count()};
    task.duration = 0ns;
  }
  expect(count, simulate(graph).length);
  print_row("simulate, shared lanes (arrival and finish)",
            best_of(2, [&] { (void)simulate(graph); }), 2.0 * count, "events");
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[tasks]");
  const auto count = arguments.number<std::uint32_t>(1, 10'000'000);
  std::printf("%u tasks on %u lanes\n", count, foretrace::yardstick::kLanes);
  foretrace::bench_building(count);
  foretrace::bench_compiled(count);
  foretrace::bench_renumbering(count, foretrace::numbers_by_lane(count), "lane by lane");
  foretrace::bench_renumbering(count, foretrace::random_numbers(count), "at random");
  foretrace::bench_simulate(count);
  foretrace::bench_events(count);
  foretrace::bench_shared(count);
  return 0;
}
