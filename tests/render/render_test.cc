#include "foretrace/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "support/folder.h"

namespace foretrace {
namespace {

using nlohmann::json;

class Render : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  void write(const Graph& graph, const std::string& name, const Trace* recorded = nullptr) const {
    export_trace(render(graph, simulate(graph), recorded), path(name));
  }

  /// The events of the timeline as Kineto JSON, with times relative to its beginning.
  json events_of(const Graph& graph, const Trace* recorded = nullptr) const {
    write(graph, "a.json", recorded);
    json document = json::parse(std::ifstream(path("a.json")));
    const std::int64_t base = document.at("baseTimeNanoseconds");
    for (json& event : document.at("traceEvents")) {
      if (!event.contains("ts")) continue;
      const auto time = std::llround(event.at("ts").get<double>() * 1000) + base;
      event["ts"] = static_cast<double>(time) / 1000;
    }
    return document.at("traceEvents");
  }

  StepTimes read_back(const Graph& graph) const {
    write(graph, "b.json.gz");
    const Inference again = infer(import_trace(path("b.json.gz")));
    return step_times(again.graph, simulate(again.graph));
  }

 private:
  Folder folder_;
};

json event_named(const json& events, const std::string& name) {
  for (const json& event : events) {
    if (event.at("ph") == "X" && event.at("name") == name) return event;
  }
  return nullptr;
}

/// Starts and durations of the events of this name, in microseconds.
using Times = std::vector<std::pair<double, double>>;
Times times_of(const json& events, const std::string& name) {
  Times times;
  for (const json& event : events) {
    if (event.at("ph") == "X" && event.at("name") == name)
      times.emplace_back(event.at("ts"), event.at("dur"));
  }
  return times;
}

// Three steps of a loop that launches, waits and goes on.
constexpr auto kLoop = R"(
    @step ProfilerStep#3
    @step ProfilerStep#4
    @step ProfilerStep#5
    cpu: prepare:host 10 {step=0}, la=cudaLaunchKernel:launch 5 {step=0}, sa=cudaStreamSynchronize:sync 2 {step=0}, p2=prepare:host 10 {step=1}, lb=cudaLaunchKernel:launch 5 {step=1}, sb=cudaStreamSynchronize:sync 2 {step=1}, p3=prepare:host 10 {step=2}, lc=cudaLaunchKernel:launch 5 {step=2}
    "stream 7": A 50 {step=0}, B=A 60 {step=1}, C=A 70 {step=2}
    la -> A [measured launch]
    lb -> B [measured launch]
    lc -> C [measured launch]
    A -> sa
    B -> sb
)";

Graph loop() { return parse_graph(kLoop); }

TEST_F(Render, ACallThatWaitsIsAsLongAsItsWait) {
  const json sync = event_named(events_of(loop()), "cudaStreamSynchronize");
  EXPECT_EQ(sync.at("cat"), "cuda_runtime");
  EXPECT_EQ(sync.at("ts"), 15);
  EXPECT_EQ(sync.at("dur"), 52);
}

TEST_F(Render, KernelsNameTheCallThatLaunchedThem) {
  const json events = events_of(loop());
  const json launch = event_named(events, "cudaLaunchKernel");
  const json kernel = event_named(events, "A");
  EXPECT_EQ(kernel.at("cat"), "kernel");
  EXPECT_EQ(kernel.at("tid"), 7);
  EXPECT_EQ(kernel.at("args").at("stream"), 7);
  EXPECT_EQ(kernel.at("args").at("correlation"), launch.at("args").at("correlation"));
}

TEST_F(Render, AWaitOfTheHostHasASynchronizationRecord) {
  const json events = events_of(loop());
  const json sync = event_named(events, "cudaStreamSynchronize");
  const json record = event_named(events, "Stream Sync");
  EXPECT_EQ(record.at("cat"), "cuda_sync");
  EXPECT_EQ(record.at("args").at("cuda_sync_kind"), "Stream Sync");
  EXPECT_EQ(record.at("args").at("stream"), 7);
  EXPECT_EQ(record.at("args").at("correlation"), sync.at("args").at("correlation"));
}

TEST_F(Render, StepsAreMarkedFromTheirStartToTheNext) {
  const json events = events_of(loop());
  const json third = event_named(events, "ProfilerStep#3");
  const json fourth = event_named(events, "ProfilerStep#4");
  EXPECT_EQ(third.at("ts"), 0);
  EXPECT_EQ(third.at("ts").get<double>() + third.at("dur").get<double>(),
            fourth.at("ts").get<double>());
}

TEST_F(Render, WhatIsReadBackTakesTheSameTime) {
  const Graph graph = loop();
  EXPECT_EQ(read_back(graph).each, step_times(graph, simulate(graph)).each);
}

TEST_F(Render, OverlappingKernelsOfOneStreamGoToTracksOfTheirOwn) {
  const json events = events_of(parse_graph(R"(
    "stream 7": A 10, B 10 {tail=40%}
  )"));
  const json a = event_named(events, "A");
  const json b = event_named(events, "B");
  EXPECT_EQ(b.at("ts"), 6);
  EXPECT_NE(a.at("tid"), b.at("tid"));
  EXPECT_EQ(a.at("args").at("stream"), b.at("args").at("stream"));
}

/// Expects that any two events of a track are either disjoint or nested.
void expect_nested(const json& events) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : events) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    tracks[{event.at("pid"), event.at("tid")}].emplace_back(start,
                                                            start + event.at("dur").get<double>());
  }
  for (auto& [track, spans] : tracks) {
    for (const auto& a : spans) {
      for (const auto& b : spans) {
        const bool apart = a.second <= b.first || b.second <= a.first;
        const bool inside = (a.first <= b.first && b.second <= a.second) ||
                            (b.first <= a.first && a.second <= b.second);
        EXPECT_TRUE(apart || inside) << track.second << ": " << a.first << " and " << b.first;
      }
    }
  }
}

TEST_F(Render, EventsOfATrackNest) { expect_nested(events_of(loop())); }

//     linear |--------------------|
//     addmm     |-------------|
//     launch       |-----|
TEST_F(Render, AnOpIsOneEventAroundWhatRunsInsideIt) {
  const json events = events_of(parse_graph(R"(
    cpu: l=linear:host 2 {record=0}, a=addmm:host 3 {record=1}, cudaLaunchKernel:launch 5 {record=2}, a2=addmm:host 1 {record=1}, l2=linear:host 1 {record=0}, rest=linear:host 4 {record=3}
  )"));
  EXPECT_EQ(times_of(events, "linear"), (Times{{0, 12}, {12, 4}}));
  EXPECT_EQ(times_of(events, "addmm"), (Times{{2, 9}}));
  expect_nested(events);
}

// A what-if may have moved a part of one op into another op.
TEST_F(Render, OpsThatCrossAreCut) {
  const json events = events_of(parse_graph(R"(
    cpu: a=A:host 2 {record=0}, b=B:host 3 {record=1}, a2=A:host 1 {record=0}, b2=B:host 1 {record=1}
  )"));
  EXPECT_EQ(times_of(events, "A"), (Times{{0, 6}, {5, 1}}));
  EXPECT_EQ(times_of(events, "B"), (Times{{2, 4}, {6, 1}}));
  expect_nested(events);
}

TEST_F(Render, AStepIsMarkedOnce) {
  const json events = events_of(parse_graph(R"(
    @step ProfilerStep#3
    @step ProfilerStep#4
    cpu: m=ProfilerStep#3:host 2 {record=0 step=0}, a=op:host 3 {record=1 step=0}, m2=ProfilerStep#3:host 1 {record=0 step=0}, n=ProfilerStep#4:host 5 {record=2 step=1}
  )"));
  EXPECT_EQ(times_of(events, "ProfilerStep#3"), (Times{{0, 6}}));
  EXPECT_EQ(times_of(events, "ProfilerStep#4"), (Times{{6, 5}}));
}

TEST_F(Render, RecordsSayWhatIsAnAnnotationAndWhatAFrame) {
  const Graph graph = parse_graph(R"(
    cpu: a=mine:host 2 {record=0}, f=frame:host 3 {record=1}, o=op:host 1 {record=2}
  )");
  Trace trace;
  trace.hosts.resize(3);
  trace.hosts[0].kind = HostKind::annotation;
  trace.hosts[1].kind = HostKind::python;
  trace.hosts[2].kind = HostKind::op;
  const json events = events_of(graph, &trace);
  EXPECT_EQ(event_named(events, "mine").at("cat"), "user_annotation");
  EXPECT_EQ(event_named(events, "frame").at("cat"), "python_function");
  EXPECT_EQ(event_named(events, "op").at("cat"), "cpu_op");
}

TEST_F(Render, TheFileSaysNothingOfWhereItWasWritten) {
  const Graph graph = loop();
  write(graph, "a.json");
  EXPECT_EQ(contents_of(path("a.json")).find("a.json"), std::string::npos);
}

// The thread that only watched comes first in the recording, and is left out.
TEST_F(Render, TheTimeBeforeTheFirstEventIsKept) {
  Graph graph = parse_graph(R"(
    start [origin]: s:marker 0
    cpu: a=op:host 5, b=op:host 5
    s ->+30 a
  )");
  const json events = events_of(graph);
  EXPECT_EQ(times_of(events, "(before the first record)"), (Times{{0, 30}}));
  const StepTimes before = step_times(graph, simulate(graph));
  EXPECT_EQ(before.step_time, 40us);
  EXPECT_EQ(read_back(graph).step_time, before.step_time);
}

// The bytes in use at the beginning include the blocks that nothing in the recording allocates.
TEST_F(Render, LevelsOfMemoryAreThoseOfTheTimeline) {
  const Graph graph = parse_graph(R"(
    @memory 10MB device=0
    cpu: a:host 5, b:host 5, c:host 5
    @alloc 4MB device=0: .. b
    @alloc 2MB device=0: a .. c
  )");
  std::vector<std::int64_t> levels;
  for (const json& event : events_of(graph)) {
    if (event.at("name") == "[memory]") levels.push_back(event.at("args").at("Total Allocated"));
  }
  EXPECT_EQ(levels, (std::vector<std::int64_t>{12'000'000, 8'000'000, 6'000'000}));
}

TEST_F(Render, NanosecondsSurvive) {
  Graph graph = parse_graph(R"("stream 7": A 1)");
  graph.task(TaskId{0}).duration = 1234567ns;
  write(graph, "a.json");
  const Trace trace = import_trace(path("a.json"));
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].duration_ns, 1234567);
}

TEST_F(Render, CopiesKeepDirectionAndBytes) {
  const Graph graph = parse_graph(R"("stream 7": input:copy_in 5 {bytes=4096B})");
  write(graph, "a.json");
  const Trace trace = import_trace(path("a.json"));
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].direction, CopyDirection::in);
  EXPECT_EQ(trace.devices[0].bytes, 4096);
}

// Formats store different things; the content of a timeline is stored by all of them.
TEST_F(Render, EveryFormatReadsBackTheSameSteps) {
  const Graph graph = loop();
  const StepTimes before = step_times(graph, simulate(graph));
  for (const std::string name : {"c.json", "c.ftrace", "c.pftrace", "c.sqlite"}) {
    write(graph, name);
    const Inference again = infer(import_trace(path(name)));
    EXPECT_EQ(step_times(again.graph, simulate(again.graph)).each, before.each) << name;
  }
}

TEST_F(Render, AFolderThatIsNotThereIsAnError) {
  const Graph graph = loop();
  EXPECT_THROW(export_trace(render(graph, simulate(graph)), "/nowhere/at/all.json"), Error);
}

// Rank 1 begins 5 us later and enters last, so rank 0 waits for it.
TEST_F(Render, DrawsAllRanksOnOneClockWithArrowsToTheLast) {
  std::vector<Graph> graphs;
  std::vector<Timeline> timelines;
  for (const char* text : {"gpu: A 10, c:collective 50", "gpu: A 30, c:collective 25"}) {
    graphs.push_back(parse_graph(text));
    timelines.push_back(simulate(graphs.back()));
  }
  const RenderedRanks both = render_ranks(
      {{&graphs[0], &timelines[0], nullptr, 0, 0us}, {&graphs[1], &timelines[1], nullptr, 7, 5us}},
      {{{0, TaskId{1}}, {1, TaskId{1}}}});
  ASSERT_EQ(both.trace.devices.size(), 4U);
  EXPECT_EQ(both.trace.devices[2].start_ns, 5000);
  ASSERT_EQ(both.view.waits.size(), 1U);
  EXPECT_EQ(both.view.waits[0].from, 1U);
  EXPECT_EQ(both.view.waits[0].to, 3U);
  ASSERT_TRUE(export_ranks(both.trace, both.view, path("all.json")));
  std::map<std::string, int> names;
  std::vector<double> ends;
  const json document = json::parse(std::ifstream(path("all.json")));
  for (const json& event : document.at("traceEvents")) {
    if (event.value("name", "") == "process_name") ++names[event.at("args").at("name")];
    if (event.value("cat", "") == "waits for rank") ends.push_back(event.at("ts"));
  }
  EXPECT_EQ(names["rank 0, GPU 0"], 1);
  EXPECT_EQ(names["rank 7, GPU 0"], 1);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_DOUBLE_EQ(ends[1] - ends[0], 25);
  ASSERT_TRUE(export_ranks(both.trace, both.view, path("all.pftrace")));
  EXPECT_EQ(import_trace(path("all.pftrace")).devices.size(), 4U);
  EXPECT_FALSE(export_ranks(both.trace, both.view, path("all.ftrace")));
}

}  // namespace
}  // namespace foretrace
