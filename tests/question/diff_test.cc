#include "foretrace/question/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "infer/recording.h"
#include "question/recorded.h"
#include "support/corpus.h"
#include "support/random_graph.h"

namespace foretrace {
namespace {

Diff difference(const Graph& before, const Graph& after) {
  const Timeline left = simulate(before), right = simulate(after);
  return diff({before, left}, {after, right});
}

/// One line for each cause: "syncs cudaStreamSynchronize +1-0~0 local 1 effect 7", in
/// microseconds.
std::string causes_of(const Diff& diff) {
  std::ostringstream text;
  text << '\n';
  for (const DiffCause& cause : diff.causes) {
    text << to_string(cause.kind) << ' ' << cause.label << " +" << cause.added << '-'
         << cause.removed << '~' << cause.changed << " local " << cause.local / 1us << " effect "
         << cause.effect / 1us << '\n';
  }
  return text.str();
}

std::string causes_between(std::string_view before, std::string_view after) {
  return causes_of(difference(parse_graph(before), parse_graph(after)));
}

Nanoseconds sum_of(const Diff& diff) {
  Nanoseconds sum{0};
  for (const DiffCause& cause : diff.causes) sum += cause.effect;
  return sum;
}

Nanoseconds change_of(const Diff& diff) { return diff.after.step_time - diff.before.step_time; }

constexpr auto kTwoKernels = R"(
    cpu: l1=launch:launch 1, work:host 5, l2=launch:launch 1
    gpu: a=gemm 10, b=norm 10
    l1 -> a [measured launch]
    l2 -> b [measured launch]
)";

TEST(Diff, AGraphDoesNotDifferFromItself) {
  const Diff same = difference(parse_graph(kTwoKernels), parse_graph(kTwoKernels));
  EXPECT_TRUE(same.identical);
  EXPECT_TRUE(same.same_structure);
  EXPECT_TRUE(same.causes.empty());
  EXPECT_EQ(diff_verdict(same), "no difference");
}

// cpu  |L.WWWWWL....         |       cpu  |L.........SWWWWWL         |
// gpu  |.aaaaaaaaaabbbbbbbbbb|       gpu  |.aaaaaaaaaa.......bbbbb...|
TEST(Diff, AnAddedSynchronizationCostsWhatItKeepsFromOverlapping) {
  EXPECT_EQ(causes_between(kTwoKernels, R"(
    cpu: l1=launch:launch 1, s=cudaStreamSynchronize:sync 1, work:host 5, l2=launch:launch 1
    gpu: a=gemm 10, b=norm 10
    l1 -> a [measured launch]
    l2 -> b [measured launch]
    a -> s [measured "stream sync"]
  )"),
            "\nsyncs cudaStreamSynchronize +1-0~0 local 1 effect 7\n");
}

TEST(Diff, WorkThatIsGoneTakesItsTimeAway) {
  EXPECT_EQ(causes_between("gpu: a 3, b 5", "gpu: a 3"), "\nkernels b +0-1~0 local -5 effect -5\n");
}

// There are more causes than are listed one by one.
TEST(Diff, SmallCausesTakeTheirTimeTogether) {
  constexpr int kKernels = 400;
  std::string before = "gpu: ", after = "gpu: ";
  for (int i = 0; i < kKernels; ++i) {
    const std::string letter{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
    const std::string name = (i == 0 ? "k" : ", k") + letter;
    before += name + " 10";
    after += name + " 12";
  }
  const Diff slower = difference(parse_graph(before), parse_graph(after));
  EXPECT_LT(slower.causes.size(), static_cast<std::size_t>(kKernels));
  Nanoseconds local{0};
  for (const DiffCause& cause : slower.causes) local += cause.local;
  EXPECT_EQ(local, kKernels * 2us);
}

TEST(Diff, ARenamedKernelIsNoChange) {
  const Diff renamed = difference(parse_graph("gpu: ampere_sgemm_128x64_tn 10, b 2"),
                                  parse_graph("gpu: ampere_sgemm_64x32_tn 10, b 2"));
  EXPECT_TRUE(renamed.identical);
  EXPECT_EQ(causes_of(renamed), "\n");
}

TEST(Diff, AnotherKernelInTheSameModuleIsAReplacement) {
  const Diff replaced = difference(parse_graph("gpu: a 3, gemm 10 {module=MLP_0}, b 2"),
                                   parse_graph("gpu: a 3, cutlass_wgrad 8 {module=MLP_0}, b 2"));
  EXPECT_FALSE(replaced.same_structure);
  ASSERT_EQ(replaced.causes.size(), 1u);
  EXPECT_EQ(replaced.causes[0].kind, DiffKind::replaced);
  EXPECT_EQ(replaced.causes[0].name_before, "gemm");
  EXPECT_EQ(replaced.causes[0].name_after, "cutlass_wgrad");
  EXPECT_EQ(replaced.causes[0].effect, -2us);
}

TEST(Diff, WorkThatMovedIsNeitherNewNorDropped) {
  const auto step = [](std::string_view first, std::string_view last) {
    return parse_graph(fmt::format("gpu: {}b 3 {{module=Y}}, c 4 {{module=Y}}{}", first, last));
  };
  const Diff moved = difference(step("a 10 {module=X}, ", ""), step("", ", a 10 {module=Z}"));
  EXPECT_EQ(causes_of(moved), "\nkernels a +0-0~0 local 0 effect 0\n");
  EXPECT_EQ(moved.causes[0].moved, 1);
  EXPECT_FALSE(moved.same_structure);
}

TEST(Diff, AChangeWithinTheVariationOfStepsHasNoCause) {
  Diff diff;
  DiffCause moved{.kind = DiffKind::kernels, .label = "a", .place = {}};
  moved.moved = 1, moved.effect = 1ms;
  diff.causes = {moved};
  diff.before.steps = diff.after.steps = 5;
  const auto set = [](DiffSideReport& side, Nanoseconds step) {
    side.step_time = side.times.step_time = step;
    side.times.fastest = step - 2ms, side.times.slowest = step + 2ms;
  };
  set(diff.before, 20ms), set(diff.after, 21ms);
  EXPECT_EQ(diff_verdict(diff),
            "B takes 1 ms longer a step (+5.0 %), which is within the variation between its own "
            "steps");
  set(diff.after, 25ms);
  EXPECT_EQ(diff_verdict(diff),
            "B takes 5 ms longer a step (+25.0 %): 1 ms of it: 1 moved kernel of a");
}

TEST(Diff, CausesThatAreMoreThanTheChangeAreNotAllOfIt) {
  Diff diff;
  DiffCause slower{.kind = DiffKind::kernels, .label = "a", .place = {}}, faster = slower;
  slower.changed = faster.changed = 1, faster.label = "b";
  slower.effect = slower.local = 7ms, faster.effect = faster.local = -5ms;
  diff.causes = {slower, faster};
  diff.before.step_time = 20ms, diff.after.step_time = 22ms;
  EXPECT_EQ(
      diff_verdict(diff),
      "B takes 2 ms longer a step (+10.0 %): 7 ms: kernels of a slower (1); the others take 5 "
      "ms less");
}

TEST(Diff, RenumberedThreadsAndStreamsAreNoChange) {
  EXPECT_EQ(causes_between(R"(
    "thread 71": l1=launch:launch 1, l2=launch:launch 1
    "stream 7": a 10
    "stream 20": b 3
    l1 -> a
    l2 -> b
  )",
                           R"(
    "stream 3": b 3
    "stream 9": a 10
    "thread 5": l1=launch:launch 1, l2=launch:launch 1
    l1 -> a
    l2 -> b
  )"),
            "\n");
}

TEST(Diff, WorkOffTheCriticalPathHasALocalDifferenceAndNoEffect) {
  EXPECT_EQ(causes_between(kTwoKernels, R"(
    cpu: l1=launch:launch 1, work:host 8, l2=launch:launch 1
    gpu: a=gemm 10, b=norm 10
    l1 -> a [measured launch]
    l2 -> b [measured launch]
  )"),
            "\nhost work +0-0~1 local 3 effect 0\n");
}

TEST(Diff, LostOverlapIsADependency) {
  EXPECT_EQ(causes_between("s: a 5, b 5\nt: c 8",
                           "s: a 5, b 5\nt: c 8\nb -> c [measured \"event wait\"]"),
            "\nwaits waits (event wait) +1-0~0 local 0 effect 8\n");
}

// Alone, each change would contribute 0 or 10, depending on the order; each gets the mean of both
// orders.
TEST(Diff, OverlapThatIsLostWithoutACauseIsAPause) {
  EXPECT_EQ(causes_between("gpu: a=gemm 10, b=norm 10 {tail=50%}", "gpu: a=gemm 10, b=norm 10"), R"(
waits pauses of streams without a known cause +0-0~1 local 5 effect 5
)");
}

TEST(Diff, WhatOnlyTwoChangesDoTogetherIsShared) {
  EXPECT_EQ(causes_between("s: a 10\nt: b 10", "s: a 20\nt: b 20"),
            "\nkernels a +0-0~1 local 10 effect 5\nkernels b +0-0~1 local 10 effect 5\n");
}

// before: a -> b by one event wait;  after: a -> c -> b by two. The wait of b for a is not lost.
TEST(Diff, AKernelThatComesBetweenTwoThatWaitCostsWhatItTakes) {
  EXPECT_EQ(causes_between("s: a 10\nt: b 5\na -> b [measured \"event wait\"]",
                           "s: a 10\nt: b 5\nu: c 4\na -> c [measured \"event wait\"]\n"
                           "c -> b [measured \"event wait\"]"),
            "\nkernels c +1-0~0 local 4 effect 4\n");
}

// The three steps with a successor take 67, 79 and 57 us: none of them is typical.
TEST(Diff, FewStepsThatDifferAreComparedTogether) {
  std::string slower(kFourSteps);
  for (const char* gemm : {"gemm 60", "gemm 50", "gemm 40"}) {
    for (std::size_t at = slower.find(gemm); at != std::string::npos;
         at = slower.find(gemm, at + 1))
      slower[at + 5] = static_cast<char>(slower[at + 5] + 1);
  }
  const Diff found = difference(parse_graph(kFourSteps), parse_graph(slower));
  EXPECT_EQ(change_of(found), 10us);
  EXPECT_EQ(causes_of(found), "\nkernels gemm +0-0~3 local 10 effect 10\n");
}

TEST(Diff, AStepMoreIsNoDifferenceOfTheWork) {
  const Diff found = difference(parse_graph(R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    gpu: a 10 {step=0}, a 10 {step=1}, a 10 {step=2}
  )"),
                                parse_graph(R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    @step ProfilerStep#4
    gpu: a 10 {step=0}, a 10 {step=1}, a 10 {step=2}, a 10 {step=3}
  )"));
  EXPECT_TRUE(found.same_structure);
  EXPECT_EQ(causes_of(found), "\n");
}

TEST(Diff, UnrelatedTracesAreSaidToBe) {
  const Diff found =
      difference(parse_graph("gpu: a 1, b 1, c 1"), parse_graph("gpu: x 1, y 1, z 2"));
  EXPECT_EQ(found.matched, 0u);
  ASSERT_FALSE(found.notes.empty());
  EXPECT_EQ(found.notes.all()[0].severity, Severity::warning);
  EXPECT_EQ(sum_of(found), change_of(found));
}

TEST(Diff, TheEffectsOfRandomPairsAddUpAndAreThoseOfTheWayBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    RandomGraph shape;
    shape.tasks = 5 + i % 40;
    shape.dependencies = i % 50;
    shape.lanes = 1 + i % 5;
    const Graph before = random_graph(random, shape);
    shape.tasks = 5 + (i * 7) % 40;
    const Graph after = random_graph(random, shape);
    const Diff there = difference(before, after), back = difference(after, before);
    ASSERT_EQ(sum_of(there), change_of(there)) << i;
    ASSERT_EQ(change_of(there), -change_of(back)) << i;
    ASSERT_EQ(sum_of(back), change_of(back)) << i;
    // Replayed as either side, the union of both graphs is that side, so nothing is left over.
    ASSERT_TRUE(std::none_of(there.causes.begin(), there.causes.end(),
                             [](const DiffCause& cause) { return cause.kind == DiffKind::rest; }))
        << i << causes_of(there);
    const Diff same = difference(before, before);
    ASSERT_TRUE(same.identical) << i << causes_of(same);
  }
}

Trace recorded_item(bool with_item) {
  Recording recording;
  for (int step = 0; step < 4; ++step) {
    const int at = 200 * step;
    const auto id = static_cast<std::uint32_t>(10 * step);
    recording.step(step, at, 190)
        .host(0, HostKind::python, "train.py(88): main", at + 1, 180)
        .op(0, "aten::mm", at + 5, 20)
        .call(0, "cudaLaunchKernel", at + 10, 5, id + 1)
        .kernel(0, "gemm", at + 16, 60, id + 1);
    if (with_item)
      recording.op(0, "aten::item", at + 30, 60)
          .call(0, "cudaMemcpyAsync", at + 32, 4, id + 2)
          .copy(0, CopyDirection::out, "Memcpy DtoH (Device -> Pinned)", at + 77, 2, id + 2)
          .call(0, "cudaStreamSynchronize", at + 40, 40, id + 3);
  }
  return std::move(recording.trace());
}

TEST(Diff, WhatWasAddedIsNamedWithItsSourceLine) {
  const Trace before = recorded_item(false), after = recorded_item(true);
  const Inference left = infer(before), right = infer(after);
  const Diff found =
      diff({left.graph, left.recorded, &before}, {right.graph, right.recorded, &after});
  const auto sync =
      std::find_if(found.causes.begin(), found.causes.end(),
                   [](const DiffCause& cause) { return cause.kind == DiffKind::syncs; });
  ASSERT_NE(sync, found.causes.end()) << causes_of(found);
  EXPECT_EQ(sync->label, "cudaStreamSynchronize");
  EXPECT_EQ(sync->place, "train.py:88 main");
  EXPECT_EQ(sync->removed, 0);
  EXPECT_GT(sync->added, 0);
  EXPECT_EQ(found.after.content.copies, 1);
  EXPECT_EQ(sum_of(found), change_of(found));
}

TEST(Diff, MemoryInUseAtThePeakIsComparedByOp) {
  const Diff found =
      difference(parse_graph("gpu: a 5, b 5\n@alloc 4MB device=0 op=\"aten::conv2d\": a .. b"),
                 parse_graph("gpu: a 5, b 5\n@alloc 9MB device=0 op=\"aten::conv2d\": a .. b"));
  ASSERT_EQ(found.peak.size(), 1u);
  EXPECT_EQ(found.peak[0].op, "aten::conv2d");
  EXPECT_EQ(found.peak[0].after.count - found.peak[0].before.count, 5'000'000);
}

TEST(Diff, JsonHasWholeNanosecondsThatAddUp) {
  DiffReport report;
  report.ranks.push_back(difference(parse_graph(kTwoKernels), parse_graph("gpu: a=gemm 12")));
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["schema"], "foretrace.diff/1");
  std::int64_t sum = json["ranks"][0]["before"]["step_time_ns"].get<std::int64_t>();
  for (const auto& cause : json["ranks"][0]["causes"])
    sum += cause["effect_ns"].get<std::int64_t>();
  EXPECT_EQ(sum, json["ranks"][0]["after"]["step_time_ns"].get<std::int64_t>());
}

/// The two recordings of a pair, found by the ends of their paths.
std::vector<std::string> pair_of(const std::string& before, const std::string& after) {
  std::vector<std::string> both = corpus_files({before});
  const std::vector<std::string> other = corpus_files({after});
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

TEST(Diff, RecordedPairsAddUpToTheNanosecond) {
  std::vector<std::vector<std::string>> pairs = {
      pair_of("rn50-dl-v100/w0_runA.pt.trace.json.gz", "rn50-dl-v100/w4_runA.pt.trace.json.gz"),
      pair_of("pageable_sync.json", "pinned_overlap.json"),
      pair_of("qwen05b_h100.json.gz", "qwen05b_mi300.json.gz"),
      pair_of("trace_05.json.gz", "trace_06.json.gz"),
  };
  const std::string samples = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader";
  pairs.push_back({samples + "0.pt.trace.json.gz", samples + "4.pt.trace.json.gz"});
  for (const std::vector<std::string>& pair : pairs) {
    if (pair.size() != 2) continue;
    const DiffReport report = diff(pair[0], pair[1]);
    ASSERT_EQ(report.ranks.size(), 1u);
    const Diff& found = report.ranks[0];
    EXPECT_EQ(sum_of(found), change_of(found)) << pair[0];
    EXPECT_GT(found.aligned, 0.5) << pair[0];
    EXPECT_TRUE(diff(pair[0], pair[0]).ranks[0].identical) << pair[0];
  }
}

TEST(Diff, TimesAreNotComparedWithASnapshotOfMemory) {
  const std::string trace = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";
  for (const std::string& snapshot : corpus_files({"mini_snapshot.pickle"})) {
    EXPECT_THROW(diff(snapshot, trace), TraceError);
    EXPECT_THROW(diff(trace, snapshot), TraceError);
    EXPECT_TRUE(diff(snapshot, snapshot).ranks[0].identical);
  }
}

TEST(Diff, OfTheShippedPairTheInputIsTheCause) {
  const std::string samples = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader";
  const DiffReport report = diff(samples + "0.pt.trace.json.gz", samples + "4.pt.trace.json.gz");
  const DiffCause& first = report.ranks[0].causes[0];
  EXPECT_EQ(first.kind, DiffKind::input);
  EXPECT_LT(first.effect, 0.9 * change_of(report.ranks[0]));
}

// Every second step has another kernel.
TEST(Diff, StepsThatAlternateAreComparedByPeriods) {
  const auto alternating = [](int longer) {
    std::string steps, cpu = "cpu: ", gpu = "gpu: ", launches;
    for (int i = 0; i < 12; ++i) {
      const std::string number = std::to_string(i), comma = i == 0 ? "" : ", ",
                        step = " {step=" + number + "}";
      steps += "@step ProfilerStep#" + number + "\n";
      cpu += comma + "l" + number + "=launch:launch 1" + step;
      gpu += comma + "k" + number + "=gemm 10" + step;
      if (i % 2 == 1) gpu += ", accumulate " + std::to_string(20 + longer) + step;
      launches += "l" + number + " -> k" + number + " [measured launch]\n";
    }
    Graph graph = parse_graph(steps + cpu + "\n" + gpu + "\n" + launches);
    graph.step_rule().period = 2;
    return graph;
  };
  const Diff found = difference(alternating(0), alternating(8));
  EXPECT_EQ(found.before.compared_steps, 2u);
  EXPECT_EQ(found.before.step_time, 20us);
  EXPECT_EQ(found.before.compared, 20us);
  EXPECT_EQ(causes_of(found), "\nkernels accumulate +0-0~1 local 4 effect 4\n");
}

TEST(Diff, WhatComesAndGoesIsSaidInPlaceOfDependencies) {
  Diff diff;
  diff.before.step_time = 100ms, diff.after.step_time = 80ms;
  DiffCause waits{.kind = DiffKind::waits, .label = "waits (launch)", .place = {}};
  waits.added = 25, waits.removed = 61, waits.effect = -20ms;
  DiffCause copies{
      .kind = DiffKind::copies, .label = "Memcpy DtoH (Device -> Pinned)", .place = {}};
  copies.removed = 30;
  DiffCause syncs{.kind = DiffKind::syncs, .label = "cudaStreamSynchronize", .place = {}};
  syncs.removed = 20;
  diff.causes = {waits, copies, syncs};
  EXPECT_EQ(diff_verdict(diff),
            "B takes 20 ms less a step (-20.0 %): 20 ms of it: 30 copies to the host and 20 "
            "synchronizations are gone");
}

/// Three steps of an op, its call and its kernel, which ends in the next step.
Recording three_steps(int kernel) {
  Recording job;
  for (const int step : {0, 1, 2}) {
    const int start = 100 * step;
    const auto correlation = static_cast<std::uint32_t>(step + 1);
    job.step(step, start, 100).op(0, "aten::mm", start + 50, 10);
    job.call(0, "cudaLaunchKernel", start + 52, 5, correlation);
    job.kernel(0, "gemm", start + 60, kernel, correlation);
  }
  return job;
}

TEST(Diff, CountsTheRecordsOfEachNameInTheComparedSteps) {
  Recording before = three_steps(70), after = three_steps(90);
  for (const int step : {0, 1, 2}) after.op(0, "aten::norm", 100 * step + 70, 3);
  const Inference left = infer(before.trace()), right = infer(after.trace());
  const Diff changes = diff({left.graph, left.recorded, &before.trace()},
                            {right.graph, right.recorded, &after.trace()}, {.with_names = true});
  std::ostringstream text;
  text << '\n';
  for (const NameChange& change : changes.names)
    text << change.name << ": " << change.count_before << " in " << change.time_before / 1us
         << " us, " << change.count_after << " in " << change.time_after / 1us << " us\n";
  EXPECT_EQ(changes.before.compared_steps, 2U);
  EXPECT_TRUE(text.str().starts_with(R"(
gemm: 2 in 140 us, 2 in 180 us
aten::norm: 0 in 0 us, 2 in 6 us
)")) << text.str();
}

}  // namespace
}  // namespace foretrace
