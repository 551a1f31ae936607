// Tests that hold for every transform, including future ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/simulated.h"

namespace foretrace {
namespace {

TEST(Transforms, AreSortedAndDescribed) {
  EXPECT_TRUE(std::is_sorted(
      transforms().begin(), transforms().end(),
      [](const TransformEntry& a, const TransformEntry& b) { return a.name < b.name; }));
  for (const TransformEntry& entry : transforms()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_NE(entry.summary.back(), '.');
    EXPECT_EQ(entry.assumes.back(), '.');
    std::ostringstream help;
    write_help(*entry.make(), help);
    EXPECT_FALSE(help.str().empty());
  }
}

TEST(Transforms, ReadBackWhatTheyWriteAboutThemselves) {
  for (const TransformEntry& entry : transforms()) {
    SCOPED_TRACE(entry.name);
    const auto transform = entry.make();
    const nlohmann::json defaults = write_json(*transform);
    read_json(defaults, *transform);
    EXPECT_EQ(write_json(*transform), defaults);
    const auto properties = json_schema(*transform).at("properties");
    for (const auto& [key, value] : defaults.items()) EXPECT_TRUE(properties.contains(key)) << key;
    EXPECT_EQ(properties.size(), defaults.size());
  }
}

TEST(Transforms, AreTriedWithStepsThatCanBeRead) {
  for (const TransformEntry& entry : transforms()) {
    SCOPED_TRACE(entry.name);
    for (const std::string_view text : entry.advice.tries) {
      std::string step(text);
      if (const std::size_t at = step.find("<device>"); at != step.npos)
        step.replace(at, 8, "h100-sxm5-80gb");
      EXPECT_TRUE(step == entry.name || step.starts_with(std::string(entry.name) + ":")) << step;
      EXPECT_NO_THROW(read_transform_text(step));
    }
  }
}

TEST(Transforms, SayWhyTheyAreNotTried) {
  for (const TransformEntry& entry : transforms()) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(entry.advice.goal == Goal::none, entry.advice.tries.empty());
    EXPECT_EQ(entry.advice.goal == Goal::none, entry.advice.applies_to.empty());
    EXPECT_FALSE(entry.advice.why_not.empty());
  }
}

// The graph has steps, layers, phases, launches, an autograd thread, copies, a queue, and memory.
constexpr auto kTraining = R"(
    @step one
    @step two
    main:     a:input 4 {step=0 phase=input}, i:launch 1 {step=0 phase=forward}, F:launch 1 {step=0 phase=forward}, g:host 1 {step=0}, t:host 1 {step=0}, U:launch 1 {step=0 phase=update}, V:launch 1 {step=0 phase=update}, b:input 4 {step=1 phase=input}, j:launch 1 {step=1 phase=forward}, G:launch 1 {step=1 phase=forward}, s:sync 1 {step=1}
    autograd: k:host 1 {step=0 phase=backward}, B:launch 1 {step=0 phase=backward}
    stream:   ii:copy_in 2 {step=0 bytes=1MB}, "f gemm" 6 {step=0 phase=forward layer=0}, "b gemm" 9 {step=0 phase=backward layer=0}, u = "u relu" 2 {step=0 phase=update}, v = "v relu" 2 {step=0 phase=update}, jj:copy_in 2 {step=1 bytes=1MB}, "g gemm" 6 {step=1 phase=forward layer=0}
    i -> ii
    F -> "f gemm"
    B -> "b gemm"
    U -> u
    V -> v
    j -> jj
    G -> "g gemm"
    g -> k
    B -> t
    "g gemm" -> s
    @alloc 8MB device=0 stream=stream use=input: i .. G writes ii reads "f gemm"
    @alloc 4MB device=0 stream=stream use=activation op="aten::relu": F .. U writes "f gemm" reads "b gemm"
    @alloc 4MB device=0 stream=stream use=optimizer_state: .. reads u
)";

TEST(Transforms, WithNeutralSettingsChangeNothing) {
  const char* const kNeutral[] = {
      "scale",
      "scale:factor=1",
      "set_duration",
      "amp:compute_factor=1,memory_factor=1",
      "faster_device:from=v100-sxm2-32gb,to=v100-sxm2-32gb",
      "loader:workers=0",
      "op_fusion:longest=1",
      "batchnorm_restructure:norms=gemm,factor=1,keep_activations=true",
      "channels_last:conversions=gemm,where.step=1",
      "replace:per=run,where.name=gemm,where.step=1",
      "split:slices=1",
      "reorder:by=layer,where.name=ii",
      "move:to=stream,where.stream=stream",
  };
  for (const char* step : kNeutral) {
    SCOPED_TRACE(step);
    Graph graph = parse_graph(kTraining);
    const Effect effect = read_transform_text(step)->apply(graph, {});
    EXPECT_EQ(effect.changed, 0U) << effect.summary;
    // Whatever the factors, amp names what computes in half precision.
    std::string text = to_text(graph);
    constexpr std::string_view kNarrow = " (half)";
    for (std::size_t at = 0; (at = text.find(kNarrow)) != text.npos;)
      text.erase(at, kNarrow.size());
    EXPECT_EQ(text, to_text(parse_graph(kTraining)));
  }
}

// Transforms that need a setting get one. None of them may leave a cycle, or a graph that cannot be
// replayed.
TEST(Transforms, LeaveAGraphThatReplays) {
  for (const TransformEntry& entry : transforms()) {
    std::string step(entry.name);
    if (entry.name == "quantize") step += ":device=h100-sxm5-80gb";
    if (entry.name == "priority") step += ":where.kind=copy_in";
    if (entry.name == "move") step += ":to=elsewhere,where.kind=copy_in";
    if (entry.name == "offload") step += ":host_bandwidth=10GB/s,min_bytes=1B";
    if (entry.name == "faster_device") step += ":from=v100-sxm2-32gb,to=a100-sxm4-40gb";
    if (entry.name == "batchnorm_restructure") step += ":norms=gemm";
    if (entry.name == "channels_last") step += ":conversions=gemm";
    if (entry.name == "remove_profiler") step += ":per_record=100ns";
    if (entry.name == "recompute") step += ":policy=all";
    if (entry.name == "encode") step += ":device=v100-sxm2-32gb";
    if (entry.name == "substitute") step += ":rules=[gemm => nothing]";
    if (entry.name == "torch_compile") step += ":optimizer=true";
    if (entry.name == "op_fusion") step += ":pattern=[u,v]";
    if (entry.name == "data_parallel")
      step += ":bandwidth=1GB/s,latency=1us,gradient_bytes=1MB,copies=false";
    if (entry.name == "p3")
      step += ":bandwidth=1GB/s,latency=1us,gradient_bytes=1MB,server_update=false";
    if (entry.name == "tensor_parallel")
      step += ":bandwidth=1GB/s,latency=1us,activation_bytes=1MB";
    if (entry.name == "context_parallel") step += ":bandwidth=1GB/s,latency=1us,kv_bytes=1MB";
    if (entry.name == "expert_parallel")
      step += ":bandwidth=1GB/s,latency=1us,token_bytes=1MB,experts=8";
    constexpr std::string_view kNeedCommunication[] = {"bucket_size",  "compress",  "contention",
                                                       "drop_packets", "local_sgd", "network"};
    if (std::ranges::find(kNeedCommunication, entry.name) != std::end(kNeedCommunication)) continue;
    constexpr std::string_view kServe[] = {"context_length", "kv_cache", "serving_batch"};
    if (std::ranges::find(kServe, entry.name) != std::end(kServe))
      continue;  // See serving_test.cc.
    SCOPED_TRACE(step);
    Graph graph = parse_graph(kTraining);
    const auto transform = read_transform_text(step);
    const Graph donor = graph.clone();
    const Effect effect = transform->apply(graph, {.donor = &donor});
    EXPECT_FALSE(effect.summary.empty());
    EXPECT_GE(simulate(graph).length, 0us);
    EXPECT_EQ(to_text(parse_graph(to_text(graph))), to_text(graph));
  }
}

TEST(Transforms, AreReadFromText) {
  const auto transform = read_transform_text("prefetch:buffers=3,where.name=/a,b/");
  const nlohmann::json settings = write_json(*transform);
  EXPECT_EQ(settings.at("buffers"), 3);
  EXPECT_EQ(settings.at("where").at("name"), "/a,b/");
  EXPECT_EQ(settings.at("where").at("kind"), "copy_in");
  const std::pair<const char*, const char*> cases[] = {
      {"", "there is no transform \"\"; `foretrace list transforms` shows all"},
      {"prefetch:buffers=0", "prefetch: buffers: must be at least 1, got 0"},
      {"prefetch:buffers", "prefetch: must be setting=value, got \"buffers\""},
      {"prefech",
       "there is no transform \"prefech\" (did you mean \"prefetch\"?); `foretrace list "
       "transforms` shows all"},
  };
  for (const auto& [step, message] : cases) {
    try {
      read_transform_text(step);
      ADD_FAILURE() << step;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace foretrace
