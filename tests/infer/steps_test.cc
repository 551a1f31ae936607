// Assigns the work of a recording to steps.

#include <gtest/gtest.h>

#include "infer/recording.h"

namespace foretrace {
namespace {

/// Each kernel with the number of its step.
std::string steps_of_kernels(Recording& run) {
  const Graph graph = infer(run.trace()).graph;
  std::string seen;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    seen += (seen.empty() ? "" : ", ") + std::string(graph.name(TaskId{i})) + ' ' +
            std::to_string(task.step);
  }
  return seen;
}

// Nothing marks the steps, so a step ends where the update does, and the next one begins there.
TEST(Steps, EndWithTheUpdateWhereNothingMarksThem) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const int start = 100 * i;
    ++id;
    run.call(0, "launch", start + 5, 2, id).kernel(0, "forward", start + 10, 20, id);
    run.host(0, HostKind::annotation, "Optimizer.step#SGD.step", start + 60, 30);
    ++id;
    run.call(0, "launch", start + 65, 2, id).kernel(0, "update", start + 70, 10, id);
  }
  run.call(0, "launch", 395, 2, 99).kernel(0, "save", 400, 10, 99);
  EXPECT_EQ(steps_of_kernels(run),
            "forward -1, update -1, forward 0, update 0, forward 1, update 1, forward 2, update 2, "
            "save -1");
}

TEST(Steps, BeginBehindTheLongestPauseWhereWorkRepeatsItself) {
  Recording run;
  std::string expected;
  std::uint32_t id = 0;
  int time = 0;
  for (int i = 0; i < 4; ++i) {
    time += 50;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
      ++id;
      run.call(0, "launch", time, 2, id).kernel(0, name, time + 4, 3, id);
      expected += (expected.empty() ? "" : ", ") + std::string(name) + ' ' + std::to_string(i);
      time += 10;
    }
    run.call(0, "cudaStreamSynchronize", time - 2, 4, 100 + static_cast<std::uint32_t>(i));
  }
  EXPECT_EQ(steps_of_kernels(run), expected);
}

/// "step 0 | source" as infer() finds them: the names of all steps, and how they were found.
std::string found_in(Recording& run) {
  const Graph graph = infer(run.trace()).graph;
  std::string text;
  for (const Step& step : graph.steps()) text += step.name + ' ';
  return text + "| " + std::string(to_string(graph.step_rule().source));
}

/// Kernels that repeat, each with a launch of its own.
void launch_layers(Recording& run, int thread, int from, int layers, std::uint32_t& id) {
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* name : {"norm", "gemm", "gelu", "add"}) {
      ++id;
      run.call(thread, "launch", from, 2, id).kernel(0, name, from + 4, 3, id);
      from += 10;
    }
  }
}

TEST(Steps, NeedDeviceWork) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 2; ++i) {
    run.step(i, 100 * i, 100);
    launch_layers(run, 0, 100 * i + 10, 2, id);
  }
  run.step(2, 200, 1);
  EXPECT_EQ(found_in(run), "ProfilerStep#0 ProfilerStep#1 | markers");
}

TEST(Steps, AreThoseOfTheHostWhereHardlyAnyHasDeviceWork) {
  Recording run;
  for (int i = 0; i < 3; ++i) run.step(i, 100 * i, 100);
  run.call(0, "launch", 10, 2, 1).kernel(0, "fill", 14, 3, 1);
  EXPECT_EQ(found_in(run), "ProfilerStep#0 ProfilerStep#1 ProfilerStep#2 | markers");
}

TEST(Steps, AreRangesThatHoldAllWork) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 3; ++i) {
    run.host(0, HostKind::annotation, "execute_" + std::to_string(i), 500 * i, 450);
    launch_layers(run, 0, 500 * i + 10, 10, id);
  }
  EXPECT_EQ(found_in(run), "execute_0 execute_1 execute_2 | annotation");
}

// The autograd thread launches most of a training step.
// An engine names steps of several kinds, and some of its versions a step twice.
TEST(Steps, OfAnEngineAreThoseThatItNames) {
  Recording run;
  const char* names[] = {"step[EXTEND bs=2 toks=100]", "step[DECODE bs=2]", "step[DECODE bs=2]"};
  for (int i = 0; i < 3; ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    run.host(0, HostKind::annotation, names[i], 500 * i, 300);
    run.host(0, HostKind::annotation, "execute_context_0_generation_2", 500 * i + 10, 280);
    run.call(0, "launch", 500 * i + 100, 2, id).kernel(0, "k", 500 * i + 110, 200, id);
  }
  EXPECT_EQ(found_in(run),
            "step[EXTEND bs=2 toks=100] step[DECODE bs=2] step[DECODE bs=2] | annotation");
}

TEST(Steps, AreRangesInWhichOtherThreadsLaunchAsWell) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 3; ++i) {
    run.host(0, HostKind::annotation, "train", 500 * i, 450);
    launch_layers(run, 0, 500 * i + 10, 3, id);
    launch_layers(run, 1, 500 * i + 140, 6, id);
  }
  EXPECT_EQ(found_in(run), "train train train | annotation");
}

TEST(Steps, AreNotTheLayersOfOneRangeOrModuleCall) {
  using Whole = std::pair<HostKind, const char*>;
  std::uint32_t id = 0;
  for (const auto& [kind, name] :
       {Whole{HostKind::annotation, "execute"}, Whole{HostKind::python, "nn.Module: GPT_0"}}) {
    Recording run;
    run.host(0, kind, name, 100, 450);
    launch_layers(run, 0, 110, 10, id);
    EXPECT_EQ(found_in(run), std::string(name) + " | annotation");
  }
  // Frames that are not calls of modules contain whole programs, so they are not steps.
  Recording loop;
  loop.host(0, HostKind::python, "train.py(1): main", 0, 1000);
  for (int i = 0; i < 5; ++i) {
    launch_layers(loop, 0, 10 + 60 * i, 1, id);
    loop.call(0, "cudaStreamSynchronize", 52 + 60 * i, 4, ++id);
  }
  EXPECT_NE(found_in(loop).find("| period"), std::string::npos);
}

TEST(Steps, NeedAWaitOrAnUpdateOrAGraphWhereNothingMarksThem) {
  std::uint32_t id = 0;
  Recording layers;
  launch_layers(layers, 0, 10, 10, id);
  EXPECT_EQ(found_in(layers), "| none");
  Recording one_kernel;
  for (int i = 0; i < 40; ++i) {
    ++id;
    one_kernel.call(0, "launch", 10 * i, 2, id).kernel(0, "gemm", 10 * i + 3, 2, id);
    one_kernel.call(0, "cudaStreamSynchronize", 10 * i + 4, 2, 1000 + id);
  }
  EXPECT_EQ(found_in(one_kernel), "| none");
}

TEST(Steps, AreNotNumberedModules) {
  std::uint32_t id = 0;
  Recording run;
  for (int i = 0; i < 8; ++i) {
    run.host(0, HostKind::annotation, "blocks." + std::to_string(i), 100 * i, 60);
    launch_layers(run, 0, 100 * i + 5, 1, id);
    run.call(0, "cudaStreamSynchronize", 100 * i + 80, 4, 1000 + id);
    ++id;
    run.call(0, "launch", 100 * i + 90, 2, id).kernel(0, "log", 100 * i + 93, 2, id);
  }
  EXPECT_EQ(found_in(run), "| none");
}

TEST(Steps, SayThatTheWorkRepeatsWithinTheOnlyOne) {
  std::uint32_t id = 0;
  Recording run;
  run.step(0, 0, 800);
  for (int i = 0; i < 8; ++i) {
    launch_layers(run, 0, 100 * i + 5, 1, id);
    run.call(0, "cudaStreamSynchronize", 100 * i + 80, 4, 1000 + id);
  }
  const Graph graph = infer(run.trace()).graph;
  ASSERT_EQ(graph.unexplained().shortcomings.size(), 1U);
  const Shortcoming& lack = graph.unexplained().shortcomings[0];
  EXPECT_NE(lack.text.find("the work repeats 8 times within the only step"), std::string::npos)
      << lack.text;
  EXPECT_FALSE(lack.is_fatal);
}

// The clocks of host and device do not agree, so the steps are those of the host.
TEST(Steps, AreThoseOfTheHostWhereDeviceTimesCannotBeTrue) {
  Recording run;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const int start = 1'000'000 * static_cast<int>(i);
    run.step(static_cast<int>(i), start, 900'000);
    run.call(0, "launch", start + 10, 2, i + 1);
    run.kernel(0, "gemm", start + 400'000 + 50'000 * static_cast<int>(i % 2), 100, i + 1);
  }
  const Inference found = infer(run.trace());
  ASSERT_EQ(found.graph.unexplained().shortcomings.size(), 1U);
  EXPECT_EQ(found.graph.unexplained().shortcomings[0].name, "device_times");
  EXPECT_TRUE(found.graph.unexplained().shortcomings[0].is_fatal);
  EXPECT_EQ(step_times(found.graph, found.recorded).step_time, 1s);
}

TEST(Steps, AreNotTheLayersOfOneOp) {
  Recording run;
  std::uint32_t id = 0;
  run.op(0, "CompiledFunction", 0, 450);
  launch_layers(run, 0, 10, 10, id);
  EXPECT_EQ(found_in(run), "| none");
}

TEST(Steps, AreNotTheLayersOfOneGraphLaunch) {
  Recording run;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const int start = 1000 * static_cast<int>(i);
    run.call(0, "cudaGraphLaunch", start, 20, i + 1);
    int time = start + 30;
    for (int layer = 0; layer < 10; ++layer) {
      for (const char* name : {"norm", "gemm", "gelu", "add"}) {
        run.kernel(0, name, time, 20, i + 1);
        time += 21;
      }
    }
  }
  EXPECT_EQ(found_in(run),
            "cudaGraphLaunch cudaGraphLaunch cudaGraphLaunch cudaGraphLaunch cudaGraphLaunch "
            "| annotation");
}

// A timeline of tensors, each on a line of its own.
TEST(Steps, AreIterationsOfAThreadWhereThereIsNoDevice) {
  Recording run;
  for (int i = 0; i < 60; ++i) {
    for (int thread = 0; thread < 3; ++thread) {
      run.op(thread, "queue", 100 * i + 10 * ((thread + i) % 3), 5);
      run.op(thread, "push", 100 * i + 40 + 10 * ((thread + i) % 3), 5);
    }
  }
  const Inference found = infer(run.trace());
  EXPECT_EQ(found.graph.steps().size(), 60U);
  EXPECT_EQ(found.graph.step_rule().source, StepSource::period);
  EXPECT_NEAR(static_cast<double>(step_times(found.graph, found.recorded).step_time / 1us), 100, 2);
}

TEST(Steps, OfDifferentLengthAreAWarning) {
  Recording run;
  std::uint32_t id = 0;
  int start = 0;
  for (const int length : {370, 140, 139}) {
    run.step(static_cast<int>(id), start, length);
    launch_layers(run, 0, start + 1, 2, id);
    start += length;
  }
  const Inference found = infer(run.trace());
  std::string warnings;
  for (const Note& note : found.notes.all()) {
    if (note.severity == Severity::warning) warnings += note.text + '\n';
  }
  EXPECT_EQ(warnings, "steps differ by more than 30 %; no single step is typical\n");
}

}  // namespace
}  // namespace foretrace
