// Compares with Daydream's simulation algorithm on cases that are small enough to be computed by
// hand: launches on one CPU thread that take 5us each and are followed by 3us of other work,
// kernels on one stream, and a synchronization at the end.

#include <gtest/gtest.h>

#include <numeric>

#include "foretrace/simulate.h"
#include "support/picture.h"

namespace foretrace {
namespace {

struct Program {
  Graph graph;
  std::vector<TaskId> launches;
  std::vector<TaskId> kernels;
};

Program make_program(int kernels, Nanoseconds duration) {
  Program program;
  Graph& graph = program.graph;
  const LaneId cpu = graph.add_lane({.name = "cpu", .kind = LaneKind::host_thread});
  const LaneId stream = graph.add_lane({.name = "stream", .device = 0});
  for (int i = 0; i < kernels; ++i) {
    program.launches.push_back(
        graph.append(cpu, {.duration = 5us, .gap = i == 0 ? 0us : 3us, .kind = TaskKind::launch}));
    program.kernels.push_back(graph.append(stream, {.duration = duration}));
    graph.add({.before = program.launches.back(), .after = program.kernels.back()});
  }
  const TaskId sync = graph.append(cpu, {.gap = 3us, .kind = TaskKind::sync});
  graph.add({.before = program.kernels.back(), .after = sync});
  return program;
}

Nanoseconds length_of(int kernels, Nanoseconds duration) {
  return simulate(make_program(kernels, duration).graph).length;
}

TEST(Daydream, TheCpuIsTheLimit) {
  EXPECT_EQ(length_of(100, 2us), 800us);
  EXPECT_EQ(length_of(2633, 2us), 21064us);
}

TEST(Daydream, CpuAndDeviceAreBalanced) { EXPECT_EQ(length_of(100, 8us), 805us); }

TEST(Daydream, TheDeviceIsTheLimit) { EXPECT_EQ(length_of(100, 20us), 2005us); }

// Kernels at a third of 20us: 5 + 99 * 8 + 20/3 = 803.67us, and so 2.495 times as fast, not 3
// times.
TEST(Daydream, FasterKernelsMakeTheCpuTheLimit) {
  const Nanoseconds third = length_of(100, 6667ns);
  EXPECT_EQ(third, 803'667ns);
  EXPECT_NEAR(2005e3 / static_cast<double>(third.count()), 2.495, 5e-4);
}

TEST(Daydream, AFusedOptimizerIsOneLaunchAndOneKernel) {
  Program program = make_program(2633, 2us);
  Graph& graph = program.graph;
  Nanoseconds sum{0};
  for (const TaskId kernel : program.kernels) sum += graph.task(kernel).duration;
  graph.task(program.kernels.front()).duration = sum;
  for (std::size_t i = 1; i < program.kernels.size(); ++i) {
    graph.remove(program.launches[i]);
    graph.remove(program.kernels[i]);
  }
  EXPECT_EQ(sum, 5266us);
  EXPECT_EQ(simulate(graph).length, 5271us);
}

// Three layers: backward 2 each, transfers of 1, 1 and 6, and the next forward pass 1 each, which
// waits for the transfer of its layer. The transfers share one channel.
constexpr std::string_view kTransfers = R"(
    gpu: c 2, b 2, a 2, A 1, B 1, C 1
    net%: z:transfer 6 {priority=1}, y:transfer 1 {priority=2}, x:transfer 1 {priority=3}
    c -> z
    b -> y
    a -> x
    x -> A
    y -> B
    z -> C
)";

std::string transfers(std::string_view attributes) {
  std::string text(kTransfers);
  return text.replace(text.find('%'), 1, attributes);
}

TEST(PriorityPropagation, TransfersInLineHoldTheNextForwardUp) {
  EXPECT_EQ(picture(transfers("")), R"(
gpu |ccbbaa....ABC|
net |..zzzzzzyx...|
)");
}

TEST(PriorityPropagation, UrgentSlicesGoFirst) {
  EXPECT_EQ(picture(transfers(" [priority=1]")), R"(
gpu |ccbbaa.AB.C|
net |..zzzzzzzz.|
    |....y.x....|
)");
}

}  // namespace
}  // namespace foretrace
