// Transforms in pairs: one may rely on the order of a lane that the other removes.

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "support/simulated.h"
#include "transform/checked.h"

namespace foretrace {
namespace {

// Two layers whose backward work is followed by one collective each; the update waits for both. `n`
// and `m` have no launch, as in a CUDA graph.
constexpr auto kTwoSteps = R"(
    @step one
    @step two
    main:  i:launch 1 {step=0 phase=forward}, B:launch 1 {step=0 phase=backward}, C:launch 1 {step=0 phase=backward}, U:launch 1 {step=0 phase=update}, s:sync 1 {step=0}, w:input 3 {step=1}, j:launch 1 {step=1 phase=forward}, D:launch 1 {step=1 phase=backward}, E:launch 1 {step=1 phase=backward}, V:launch 1 {step=1 phase=update}, t:sync 1 {step=1}
    stream: ii:copy_in 2 {step=0 bytes=1MB}, b = "b gemm" 3 {step=0 phase=backward layer=1}, c = "c gemm" 3 {step=0 phase=backward layer=0}, u = "u relu" 2 {step=0 phase=update}, jj:copy_in 2 {step=1 bytes=1MB}, d = "b gemm" 3 {step=1 phase=backward layer=1}, e = "c gemm" 3 {step=1 phase=backward layer=0}, v = "v relu" 2 {step=1 phase=update}
    comm:  x:collective 6 {step=0 layer=1 bytes=8MB}, y:collective 4 {step=0 layer=0 bytes=4MB}, n:kernel 1 {step=0}, p:collective 6 {step=1 layer=1 bytes=8MB}, q:collective 4 {step=1 layer=0 bytes=4MB}, m:kernel 1 {step=1}
    i -> ii
    B -> b
    C -> c
    U -> u
    j -> jj
    D -> d
    E -> e
    V -> v
    b -> x
    c -> y
    x -> u
    y -> u
    n -> u
    d -> p
    e -> q
    p -> v
    q -> v
    m -> v
    u -> s
    v -> t
    @alloc 8MB device=0 stream=stream use=input: i .. U writes ii reads b
    @alloc 4MB device=0 stream=stream use=activation op="aten::relu": B .. U writes b reads c
    @alloc 4MB device=0 stream=stream use=optimizer_state: .. reads u
)";

/// Gives every transform settings with which it changes something here.
std::string with_settings(std::string_view name) {
  static const std::map<std::string_view, const char*> settings = {
      {"add_dependency", "from.name=i,to.kind=collective"},
      {"batchnorm_restructure", "norms=gemm"},
      {"channels_last", "conversions=relu"},
      {"context_parallel", "bandwidth=1GB/s,latency=1us,kv_bytes=1MB"},
      {"data_parallel", "bandwidth=1GB/s,latency=1us,gradient_bytes=1MB,copies=false"},
      {"encode", "device=v100-sxm2-32gb"},
      {"expert_parallel", "bandwidth=1GB/s,latency=1us,token_bytes=1MB,experts=8"},
      {"faster_device", "from=v100-sxm2-32gb,to=a100-sxm4-40gb"},
      {"insert", "where.kind=collective,name=z,duration=1us"},
      {"move", "to=elsewhere,where.kind=copy_in"},
      {"offload", "host_bandwidth=10GB/s,min_bytes=1B"},
      {"op_fusion", "pattern=[b gemm,c gemm]"},
      {"p3", "bandwidth=1GB/s,latency=1us,gradient_bytes=1MB,server_update=false"},
      {"priority", "where.kind=collective"},
      {"quantize", "device=h100-sxm5-80gb"},
      {"recompute", "policy=all"},
      {"remove", "where.name=x"},
      {"remove_dependency", "from.name=x"},
      {"reorder", "where.kind=collective,by=layer"},
      {"replace", "where.kind=kernel,where.phase=backward"},
      {"scale", "where.kind=collective,factor=4"},
      {"set_duration", "where.kind=collective,duration=9us"},
      {"split", "where.kind=collective,slices=3"},
      {"substitute", "rules=[gemm => nothing]"},
      {"tensor_parallel", "bandwidth=1GB/s,latency=1us,activation_bytes=1MB"},
      {"torch_compile", "optimizer=true"},
  };
  const auto at = settings.find(name);
  return std::string(name) + (at == settings.end() ? "" : ":" + std::string(at->second));
}

/// Returns false if the transform does not apply, which does not matter here.
bool applied(const std::string& step, Graph& graph) {
  const auto transform = read_transform_text(step);
  const Graph donor = graph.clone();
  try {
    apply_checked(*transform, graph, {.donor = &donor});
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The device work of the second step that runs before the host has reached that step.
std::string too_early(const Graph& graph, const Timeline& timeline) {
  Nanoseconds begin = Nanoseconds::max();
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (graph.removed(TaskId{i}) || task.step != 1 || runs_on_device(task.kind)) continue;
    begin = std::min(begin, timeline.start[i]);
  }
  std::string early;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (graph.removed(TaskId{i}) || task.step != 1 || !runs_on_device(task.kind)) continue;
    if (timeline.start[i] < begin) early += std::string(graph.name(TaskId{i})) + " ";
  }
  return early;
}

TEST(Composed, InAnyOrderNoWorkLeavesItsStep) {
  int replayed = 0;
  for (const TransformEntry& one : transforms()) {
    for (const TransformEntry& other : transforms()) {
      const std::string first = with_settings(one.name), second = with_settings(other.name);
      SCOPED_TRACE(first + ", then " + second);
      Graph graph = parse_graph(kTwoSteps);
      if (!applied(first, graph) || !applied(second, graph)) continue;
      Timeline timeline;
      ASSERT_NO_THROW(timeline = simulate(graph));
      ++replayed;
      // With these transforms, work is meant to run ahead of its step.
      const auto runs_ahead = [](std::string_view name) {
        return name == "prefetch" || name == "remove_dependency";
      };
      if (runs_ahead(one.name) || runs_ahead(other.name)) continue;
      EXPECT_EQ(too_early(graph, timeline), "");
    }
  }
  EXPECT_GT(replayed, 500);
}

Nanoseconds length_after(const std::array<std::string, 3>& steps) {
  Graph graph = parse_graph(kTwoSteps);
  for (const std::string& step : steps) apply_checked(*read_transform_text(step), graph, {});
  return simulate(graph).length;
}

TEST(Composed, SplitAndPriorityDoNotMindTheirOrder) {
  const std::string slow = "scale:where.kind=collective,factor=4";
  for (const char* by : {"", ",by=value"}) {
    const std::string priority = std::string("priority:where.kind=collective") + by;
    for (const char* slices : {"2", "3", "16"}) {
      const std::string split = std::string("split:where.kind=collective,slices=") + slices;
      const Nanoseconds length = length_after({slow, split, priority});
      EXPECT_EQ(length, length_after({slow, priority, split})) << slices << by;
      EXPECT_GE(length, 2 * 4 * 10us);
    }
  }
}

std::string picture_after(const char* graph_text, const std::vector<std::string>& steps) {
  Graph graph = parse_graph(graph_text);
  for (const std::string& step : steps) apply_checked(*read_transform_text(step), graph, {});
  return "\n" + to_ascii(graph, simulate(graph));
}

TEST(Composed, SlicesStayInOrderOnALaneThatLosesIts) {
  EXPECT_EQ(picture_after(R"(
      a: A 2, B 2
      link [link]: x:transfer 4 {layer=0}, y:transfer 4 {layer=1}
      c: C 1
      A -> x
      B -> y
      x -> C
  )",
                          {"split:where.kind=transfer", "priority:where.kind=transfer"}),
            R"(
a    |AABB......|
link |..xxxx..yy|
     |....yyyy..|
c    |......C...|
)");
}

// A lane without an order of its own does not stop its tasks from running at once.
TEST(Composed, WhatWaitsOnlyForItsPlaceKeepsIt) {
  EXPECT_EQ(picture_after(R"(
      a: A 2
      s: x 2 {layer=1}, g 2, h 1
      A -> x
  )",
                          {"priority:where.name=x,where.kind=any"}),
            R"(
a |AA.....|
s |..xxggh|
)");
}

constexpr auto kTwoTransfers = R"(
      a: A 2, B 4
      s [link]: x:transfer 2, y:transfer 2
      A -> x
      B -> y
)";

TEST(Composed, WhatLosesItsLastWaitKeepsItsPlace) {
  EXPECT_EQ(picture_after(kTwoTransfers,
                          {"priority:where.kind=transfer", "remove_dependency:from.name=B"}),
            R"(
a |AABBBB|
s |..xxyy|
)");
}

TEST(Composed, WhatIsPutOnALaneWithoutOrderWaitsForTheOneInFront) {
  EXPECT_EQ(picture_after(kTwoTransfers,
                          {"priority:where.kind=transfer",
                           "insert:where.kind=transfer,name=z,kind=transfer,duration=1us"}),
            R"(
a |AABBBB...|
s |..xxz.yyz|
)");
}

constexpr auto kNamesakes = R"(
    cpu:    "aten::conv":host 4, L:launch 1
    stream: "conv kernel" 6, "copy" 2
    L -> "conv kernel"
)";

TEST(Composed, ANameMeansDeviceWorkWhereThereIsSome) {
  Graph graph = parse_graph(kNamesakes);
  const Effect effect =
      apply_checked(*read_transform_text("scale:where.name=conv,factor=0.5"), graph, {});
  EXPECT_EQ(effect.summary, "1 kernel task from 6 us to 3 us in all");
  ASSERT_EQ(effect.notes.all().size(), 1U);
  EXPECT_EQ(effect.notes.all()[0].example, "where: 1 kernel task, without 1 host task");
}

TEST(Composed, ANameMeansHostWorkWhereNoDeviceWorkHasIt) {
  Graph graph = parse_graph(kNamesakes);
  const Effect effect =
      apply_checked(*read_transform_text("scale:where.name=aten,factor=0.5"), graph, {});
  EXPECT_EQ(effect.summary, "1 host task from 4 us to 2 us in all");
  EXPECT_TRUE(effect.notes.all().empty());
}

TEST(Composed, BothAreMeantByAll) {
  Graph graph = parse_graph(kNamesakes);
  const Effect effect = apply_checked(
      *read_transform_text("scale:where.kind=all,where.name=conv,factor=0.5"), graph, {});
  EXPECT_EQ(effect.summary, "2 tasks (1 host, 1 kernel) from 10 us to 5 us in all");
}

}  // namespace
}  // namespace foretrace
