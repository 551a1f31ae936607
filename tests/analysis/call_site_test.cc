#include "analysis/place/call_site.h"

#include <gtest/gtest.h>

#include <chrono>

#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "infer/recording.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

/// "train.py:88 main | aten::item/aten::_local_scalar_dense | cudaStreamSynchronize", one line for
/// each task of that name.
std::string places(const Trace& trace, std::string_view task_name) {
  const Inference inference = infer(trace);
  const CallSites sites(trace, inference.graph);
  std::string text;
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    const TaskId task{i};
    if (inference.graph.name(task) != task_name) continue;
    const auto site = sites.site(task);
    text += (site ? to_text(*site) : "-") + " | " + std::string(sites.op_path(task)) + " | " +
            std::string(sites.op(task)) + " | " + std::string(sites.call(task)) + "\n";
  }
  return text;
}

Recording item_in(std::string_view outer, std::string_view inner) {
  Recording recording;
  recording.host(0, HostKind::python, outer, 0, 100)
      .host(0, HostKind::python, inner, 5, 90)
      .host(0, HostKind::python, "torch/_tensor.py(10): item", 8, 80)
      .op(0, "aten::item", 10, 60)
      .op(0, "aten::_local_scalar_dense", 12, 50)
      .call(0, "cudaMemcpyAsync", 15, 5, 1)
      .call(0, "cudaStreamSynchronize", 25, 30, 2)
      .copy(0, CopyDirection::out, "Memcpy DtoH", 22, 20, 1);
  return recording;
}

constexpr auto kItem = " | aten::item/aten::_local_scalar_dense | aten::item | ";

TEST(CallSite, IsTheInnermostFrameOfTheUsersOwnCode) {
  Recording recording = item_in("train.py(88): main", "models/gpt.py(7): forward");
  EXPECT_EQ(places(recording.trace(), "Memcpy DtoH"),
            std::string("models/gpt.py:7 forward") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, AFrameOfAPackageCountsLessThanAnOwnOneAroundIt) {
  Recording recording = item_in("train.py(88): main", "transformers/trainer.py(7): train");
  EXPECT_EQ(places(recording.trace(), "Memcpy DtoH"),
            std::string("train.py:88 main") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, AFrameOfAPackageIsBetterThanNone) {
  Recording recording = item_in("runpy.py(88): main", "transformers/trainer.py(7): train");
  EXPECT_EQ(places(recording.trace(), "Memcpy DtoH"),
            std::string("transformers/trainer.py:7 train") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, PathsAreCutAtTheFolderOfTheScript) {
  Recording recording =
      item_in("/home/me/job/train.py(88): <module>", "/home/me/job/models/gpt.py(7): forward");
  EXPECT_EQ(places(recording.trace(), "Memcpy DtoH"),
            std::string("models/gpt.py:7 forward") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, FilesBesideTheScriptAreNamedFromWhereTheirWaysPart) {
  Recording recording =
      item_in("/home/me/job/run/train.py(88): <module>", "/home/me/job/lib/gpt.py(7): forward");
  EXPECT_EQ(places(recording.trace(), "Memcpy DtoH"),
            std::string("lib/gpt.py:7 forward") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, AStackThatTheProfilerKeepsOfAnOpTellsItToo) {
  Recording recording = item_in("runpy.py(1): run", "runpy.py(2): run");
  Trace& trace = recording.trace();
  trace.op_details.push_back(
      {.stack = trace.names.intern("/env/lib/python3.9/site-packages/torch/_tensor.py(3): "
                                   "item;train.py(9): log;train.py(50): <module>")});
  trace.hosts[3].details = 0;
  EXPECT_EQ(places(trace, "Memcpy DtoH"),
            std::string("train.py:9 log") + kItem + "cudaMemcpyAsync\n");
}

TEST(CallSite, NumbersOfStepsAreNotPartOfTheOps) {
  Recording recording;
  recording.op(0, "ProfilerStep#3", 0, 50)
      .op(0, "aten::add", 5, 30)
      .call(0, "cudaLaunchKernel", 10, 5, 1)
      .kernel(0, "k", 20, 10, 1);
  EXPECT_EQ(places(recording.trace(), "k"), "- | aten::add | aten::add | cudaLaunchKernel\n");
}

TEST(CallSite, WithoutCallsTheOpIsTheOneTheProfilerLinks) {
  Recording recording;
  recording.op(0, "aten::add", 5, 30).kernel(0, "k", 20, 10, 0);
  recording.trace().hosts[0].external = 7;
  recording.trace().devices[0].external = 7;
  EXPECT_EQ(places(recording.trace(), "k"), "- | aten::add | aten::add | aten::add\n");
}

TEST(CallSite, TasksThatAScenarioMadeHaveNoPlace) {
  Recording recording = item_in("train.py(88): main", "train.py(90): f");
  Inference inference = infer(recording.trace());
  const TaskId added = inference.graph.append(LaneId{0}, {});
  const CallSites sites(recording.trace(), inference.graph);
  EXPECT_FALSE(sites.site(added));
  EXPECT_EQ(sites.op_path(added), "");
  EXPECT_EQ(sites.call(added), "");
}

TEST(CallSite, RecordedStacksGiveSitesWithoutFoldersOfTheMachine) {
  const std::vector<std::string> files =
      corpus_files({"run1_a.json", "rn50-dl-v100/w0_runA.pt.trace.json.gz"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  for (const std::string& file : files) {
    const Trace trace = import_trace(file);
    const Inference inference = infer(trace);
    const CallSites sites(trace, inference.graph);
    std::size_t known = 0;
    for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
      const auto site = sites.site(TaskId{i});
      if (!site) continue;
      ++known;
      ASSERT_NE(site->file.front(), '/') << file;
      ASSERT_EQ(site->file.find("site-packages"), std::string::npos) << file;
    }
    EXPECT_GT(known, 100u) << file;
  }
}

}  // namespace
}  // namespace foretrace
