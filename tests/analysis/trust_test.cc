// Grades: which part of a step is unexplained, what that means for an answer, and which commands
// refuse it.

#include "analysis/doubt/trust.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "graph/recorder_time.h"
#include "job/job.h"
#include "question/check/judge.h"
#include "question/recorded.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

/// Steps of a kernel of 50 and a collective of `transfer` + `wait`, one after the other.
Inference waiting_for_ranks(int transfer, int wait) {
  std::string text, gpu = "gpu: ";
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i), step = " {step=" + number + "}";
    text += "@step ProfilerStep#" + number + "\n";
    gpu += (i == 0 ? "" : ", ") + std::string("k") + number + "=gemm 50" + step + ", c" + number +
           "=reduce:collective " + std::to_string(transfer + wait) + step;
  }
  Inference inference = recorded_as(text + gpu + "\n");
  for (std::uint32_t i = 1; i < inference.graph.task_count(); i += 2)
    inference.open.push_back(
        {.task = TaskId{i}, .time = Nanoseconds(wait * 1000), .of_peers = true});
  return inference;
}

Scenario what_if(const std::string& step) {
  Scenario scenario;
  scenario.transforms.push_back(read_transform_text(step));
  scenario.uses.push_back(step);
  return scenario;
}

Grade grade_of(const Prediction& prediction, std::string_view name) {
  const TrustReason* const reason = prediction.trust.reason(name);
  return reason == nullptr ? Grade::good : reason->grade;
}

constexpr auto kFasterKernels = "scale:where.kind=kernel,factor=0.5";

TEST(Trust, IsPoorWhereOtherRanksDecideTheStep) {
  const Prediction answer = predict(waiting_for_ranks(10, 40), what_if(kFasterKernels));
  EXPECT_EQ(answer.baseline_open.other_ranks, 40us);
  EXPECT_EQ(answer.trust.grade(), Grade::poor);
  EXPECT_EQ(trust_warning(answer.trust),
            "poor: 53.3 % of the predicted step is time that only other ranks explain");
}

TEST(Trust, ShortWaitsForOtherRanksAreWorthKnowing) {
  EXPECT_EQ(grade_of(predict(waiting_for_ranks(10, 3), what_if(kFasterKernels)), "other_ranks"),
            Grade::fair);
  EXPECT_EQ(grade_of(predict(waiting_for_ranks(10, 0), what_if(kFasterKernels)), "other_ranks"),
            Grade::good);
}

// The same wait on another stream, beside a longer kernel, adds nothing to the step time.
TEST(Trust, AHiddenWaitDoesNotCount) {
  Inference inference = recorded_as(R"(
    @step ProfilerStep#0
    @step ProfilerStep#1
    gpu: k0=gemm 50 {step=0}, k1=gemm 50 {step=1}
    nccl: c0=reduce:collective 40 {step=0}, c1=reduce:collective 40 {step=1}
    k0 -> c1 [inferred "collective input"]
  )");
  inference.open.push_back({.task = TaskId{2}, .time = 30us, .of_peers = true});
  EXPECT_EQ(open_step_time(inference, inference.graph, 50us).other_ranks, 0ns);
}

TEST(Trust, WhatWasMeasuredDoesNotHangOnOtherRanks) {
  const Prediction answer = predict(waiting_for_ranks(10, 40), Scenario{});
  EXPECT_EQ(grade_of(answer, "other_ranks"), Grade::fair);
}

/// Steps of a kernel of 50 and one of 10, after a delay of 40 that nothing explains.
Inference with_gaps() {
  std::string text, gpu = "gpu: ";
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), step = " {step=" + number;
    text += "@step ProfilerStep#" + number + "\n";
    gpu += (i == 0 ? "" : ", ") + std::string("k") + number + "=gemm 50" + step + "}, l" + number +
           "=late 10" + step + " gap=40}";
  }
  Inference inference = recorded_as(text + gpu + "\n");
  for (std::uint32_t i = 1; i < inference.graph.task_count(); i += 2)
    inference.open.push_back({.task = TaskId{i}, .time = 40us});
  return inference;
}

TEST(Trust, AChangeBesideUnexplainedTimeIsFairOneThatAltersItPoor) {
  const Prediction beside = predict(with_gaps(), what_if(kFasterKernels));
  EXPECT_EQ(beside.baseline_open.unexplained, 40us);
  EXPECT_EQ(grade_of(beside, "unexplained"), Grade::fair);
  EXPECT_EQ(grade_of(predict(with_gaps(), what_if("remove:where.name=late")), "unexplained"),
            Grade::poor);
}

/// Steps of two stretches of the host, 50 each, of which every record costs `per_record`, beside a
/// kernel of `kernel`, unless it is 0.
Inference recorded_ops(Nanoseconds per_record, int kernel = 0) {
  std::string text, waits, cpu = "cpu: ", gpu = kernel > 0 ? "\ngpu: " : "";
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i), step = " {step=" + number + "}";
    text += "@step ProfilerStep#" + number + "\n";
    cpu += (i == 0 ? "" : ", ") + std::string("a") + number + "=op:host 50" + step + ", b" +
           number + "=op:host 50" + step;
    if (kernel > 0) {
      gpu += (i == 0 ? "" : ", ") + std::string("k") + number + "=gemm " + std::to_string(kernel) +
             step;
      waits += "a" + number + " -> k" + number + "\n";
    }
  }
  Inference inference = recorded_as(text + cpu + gpu + "\n" + waits);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i)
    inference.graph.task(TaskId{i}).record = i;
  inference.graph.unexplained().per_record = per_record;
  return inference;
}

TEST(Trust, StepsThatTheProfilerMakesMuchLongerAreFair) {
  const Scenario faster = what_if("scale:where.kind=host,factor=0.9");
  EXPECT_EQ(predict(recorded_ops(10us), faster).trust.reason("profiler"), nullptr);
  const Prediction answer = predict(recorded_ops(40us), faster);
  EXPECT_EQ(answer.baseline_unprofiled, 60us);
  EXPECT_EQ(answer.predicted_unprofiled, 50us);
  EXPECT_EQ(grade_of(answer, "profiler"), Grade::fair);
  const Prediction without = predict(recorded_ops(40us), what_if("remove_profiler"));
  EXPECT_EQ(without.predicted.step_time, 60us);
  EXPECT_EQ(without.trust.reason("profiler"), nullptr);
}

TEST(Trust, TheProfilersWorkBehindTheDeviceCountsWhereAChangeUncoversIt) {
  const auto with_kernels = [](const char* factor) {
    return predict(recorded_ops(40us, 200),
                   what_if("scale:where.kind=kernel,factor=" + std::string(factor)));
  };
  EXPECT_EQ(with_kernels("0.9").trust.reason("profiler"), nullptr);
  const Prediction uncovered = with_kernels("0.1");
  EXPECT_EQ(grade_of(uncovered, "profiler"), Grade::fair);
  EXPECT_NE(uncovered.trust.reason("profiler")->text.find("of the predicted step"),
            std::string::npos);
}

TEST(Trust, AnUnknownRecorderWeakensChangesOnly) {
  Inference recorded = recorded_ops(0us);
  recorded.graph.unexplained().shortcomings = {
      {.name = std::string(kRecorderReason), .text = "half is host work", .share = 0.5}};
  EXPECT_EQ(
      grade_of(predict(clone(recorded), what_if("scale:where.kind=host,factor=0.9")), "recorder"),
      Grade::fair);
  EXPECT_EQ(predict(clone(recorded), Scenario{}).trust.reason("recorder"), nullptr);
  EXPECT_EQ(
      predict(clone(recorded), what_if("remove_profiler:per_record=1us")).trust.reason("recorder"),
      nullptr);
}

// Tasks that are held at their recorded start keep their times in what was measured, but may have
// to move after a change.
TEST(Trust, HeldTasksAreFairWithoutAChangeAndPoorWithOne) {
  Inference inference = recorded_as(kFourSteps);
  ASSERT_EQ(inference.graph.task_count(), 16U);
  const auto grade = [&](std::int64_t pinned, const Scenario& scenario) {
    inference.graph.unexplained().pinned_tasks = pinned;
    return grade_of(predict(clone(inference), scenario), "pinned");
  };
  EXPECT_EQ(grade(3, what_if(kFasterKernels)), Grade::good);
  EXPECT_EQ(grade(4, what_if(kFasterKernels)), Grade::poor);
  EXPECT_EQ(grade(4, Scenario{}), Grade::fair);
  EXPECT_EQ(grade(16, Scenario{}), Grade::fair);
}

TEST(Trust, AnEditHasNoModelAndSaysSo) {
  const Prediction edit = predict(recorded_as(kFourSteps), what_if(kFasterKernels));
  ASSERT_NE(edit.trust.reason("edit"), nullptr);
  EXPECT_EQ(edit.trust.reason("edit")->text,
            "scale is an edit: the interval covers its replay, not how well the edit describes the "
            "change");
  const Prediction model = predict(recorded_as(kFourSteps), what_if("loader:workers=2"));
  EXPECT_EQ(model.trust.reason("edit"), nullptr);
  EXPECT_EQ(grade_of(model, "compared"), Grade::good);
}

/// An answer about steps that take 10us as recorded, and that take `each` after a change.
Prediction with_steps(std::vector<Nanoseconds> each) {
  Prediction answer = predict(recorded_as(kFourSteps), what_if(kFasterKernels));
  answer.baseline.spread = 0;
  answer.predicted.spread = 1;
  answer.predicted.counted = std::move(each);
  answer.trust = trust_of(answer, {});
  return answer;
}

TEST(Trust, AReplayWithTwoPacesIsFairAndPoorIfTheyAreFarApart) {
  const Prediction two = with_steps({4us, 8us, 4us, 7us, 5us});
  ASSERT_NE(two.trust.reason("paces"), nullptr);
  EXPECT_EQ(two.trust.reason("paces")->text,
            "3 steps of the replay at 4 us, 2 at 7.5 us, where the recorded ones differ by 0.0 %");
  EXPECT_EQ(grade_of(two, "paces"), Grade::fair);
  EXPECT_EQ(grade_of(with_steps({4us, 9us, 4us, 8us, 5us}), "paces"), Grade::poor);
  EXPECT_EQ(grade_of(with_steps({4us, 4us, 9us}), "paces"), Grade::poor);
  EXPECT_EQ(with_steps({4us, 9us, 9us, 8us, 9us}).trust.reason("paces"), nullptr);
}

TEST(Trust, AnAnswerBelowItsBoundIsPoor) {
  Prediction answer = predict(recorded_as(kFourSteps), what_if(kFasterKernels));
  EXPECT_GT(answer.predicted_bound, 0us);
  EXPECT_LT(answer.predicted_bound, answer.predicted.step_time);
  EXPECT_EQ(answer.trust.reason("below_bound"), nullptr);
  answer.predicted_bound = answer.predicted.step_time * 101 / 100;
  EXPECT_EQ(trust_of(answer, {}).reason("below_bound"), nullptr);
  answer.predicted_bound = answer.predicted.step_time * 102 / 100;
  answer.trust = trust_of(answer, {});
  EXPECT_EQ(grade_of(answer, "below_bound"), Grade::poor);
}

// A change that the job cannot make is an edit without a meaning; one without an effect is no wrong
// answer.
TEST(Trust, AChangeThatDoesNotApplyIsPoorWhereItWouldHelp) {
  Prediction answer = predict(recorded_as(kFourSteps), what_if(kFasterKernels));
  const auto grade = [&](double share) {
    answer.steps.front().applies = {.share = share, .why_not = "it is fast already"};
    answer.trust = trust_of(answer, {});
    return answer.trust.reason("applies") == nullptr ? Grade::good : grade_of(answer, "applies");
  };
  EXPECT_EQ(grade(1), Grade::good);
  EXPECT_EQ(grade(0.6), Grade::good);
  EXPECT_EQ(grade(0.4), Grade::fair);
  EXPECT_EQ(grade(0), Grade::poor);
  EXPECT_EQ(trust_warning(answer.trust),
            "poor: scale:where.kind=kernel,factor=0.5 does not apply: it is fast already");
  answer.predicted.step_time = answer.baseline.step_time;
  EXPECT_EQ(grade(0), Grade::fair);
}

// Four kernels hold 2 and 3 MB of unknown use and 4 MB of activations; 1 MB is older than all.
TEST(Trust, APeakOfUnknownUseIsFairWhereAChangeMovesIt) {
  Inference recorded = recorded_as(kFourSteps);
  recorded.graph.initial_memory() = {Bytes{1'000'000}};
  const auto block = [](std::uint32_t task, std::int64_t bytes, MemoryUse use) {
    return Allocation{.bytes = Bytes{bytes}, .made_by = TaskId{task}, .use = use};
  };
  recorded.graph.allocations() = {block(0, 2'000'000, MemoryUse::unknown),
                                  block(1, 3'000'000, MemoryUse::unknown),
                                  block(2, 4'000'000, MemoryUse::activation)};
  recorded.graph.allocations()[0].freed_by = TaskId{1};
  Prediction answer = predict(std::move(recorded), what_if("resize:where.use=activation,factor=2"));
  ASSERT_EQ(answer.baseline_memory.size(), 1U);
  EXPECT_EQ(answer.baseline_memory[0].peak_allocated.count, 8'000'000);
  EXPECT_EQ(answer.baseline_memory[0].unknown_use.count, 4'000'000);
  EXPECT_EQ(grade_of(answer, "unknown_use"), Grade::fair);
  EXPECT_EQ(answer.trust.reason("unknown_use")->text,
            "50.0 % of the peak of memory is in blocks of unknown use");
  answer.predicted_memory = answer.baseline_memory;
  EXPECT_EQ(trust_of(answer, {}).reason("unknown_use"), nullptr);
}

TEST(Trust, APeakThatDoesNotFitIsPoor) {
  Inference recorded = recorded_as(kFourSteps);
  recorded.graph.device_names() = {"NVIDIA A100-SXM4-40GB"};
  recorded.graph.initial_memory() = {Bytes{1'000'000}};
  recorded.graph.allocations() = {
      {.bytes = Bytes{30'000'000'000}, .made_by = TaskId{0}, .use = MemoryUse::activation}};
  Prediction answer = predict(std::move(recorded), what_if("resize:where.use=activation,factor=2"));
  ASSERT_NE(answer.trust.reason("memory"), nullptr);
  EXPECT_EQ(answer.trust.reason("memory")->text,
            "the predicted peak of 60 GB does not fit into the 42.95 GB of the device: the job "
            "would run out of memory");
  EXPECT_EQ(answer.trust.grade(), Grade::poor);
  answer.memory_limit = Bytes{50'000'000'000};
  EXPECT_EQ(trust_of(answer, {}).reason("memory"), nullptr);
  answer.memory_limit = {};
  answer.device_memory = Bytes{80'000'000'000};
  EXPECT_EQ(trust_of(answer, {}).reason("memory"), nullptr);
}

TEST(Trust, AStepThatIsInDoubtIsFair) {
  Prediction answer = predict(recorded_as(kFourSteps), what_if(kFasterKernels));
  EXPECT_EQ(answer.trust.reason("doubt"), nullptr);
  answer.steps[0].doubts = {"the other trace differs"};
  answer.trust = trust_of(answer, {});
  EXPECT_EQ(grade_of(answer, "doubt"), Grade::fair);
  EXPECT_EQ(answer.trust.reason("doubt")->text, "scale: the other trace differs");
}

TEST(Trust, HostWorkGoneFromASingleStepMayHaveHappenedOnce) {
  const auto once = [](Inference recorded, Nanoseconds saved) {
    Prediction answer = predict(std::move(recorded), what_if(kFasterKernels));
    answer.steps[0].host_saved = saved;
    answer.trust = trust_of(answer, {});
    return answer;
  };
  const auto whole = [] { return recorded_as("gpu: k 50"); };
  EXPECT_EQ(grade_of(once(whole(), 5us), "once"), Grade::fair);
  const Prediction much = once(whole(), 6us);
  EXPECT_EQ(grade_of(much, "once"), Grade::poor);
  EXPECT_EQ(
      much.trust.reason("once")->text,
      "scale removes host work that takes 12.0 % of the recording; only more steps would show "
      "which of it happens once, such as compiling and loading kernels");
  EXPECT_EQ(grade_of(once(recorded_as("@step one\ngpu: k 50 {step=0}"), 40us), "once"),
            Grade::fair);
  EXPECT_EQ(once(whole(), 0us).trust.reason("once"), nullptr);
  EXPECT_EQ(once(recorded_as(kFourSteps), 40us).trust.reason("once"), nullptr);
}

TEST(Trust, ALowerBoundIsTheLowerEndOfTheInterval) {
  std::string text = "train: ";
  for (int i = 0; i < 3; ++i)
    text += std::string(i == 0 ? "" : ", ") + "\"aten::div\":input 60, A:host 10";
  const Prediction answer =
      predict(recorded_as(text), what_if("loader:workers=4,hand_over=0us,host_factor=1"));
  ASSERT_EQ(answer.steps.size(), 1U);
  EXPECT_GT(answer.steps[0].slower, 2);
  EXPECT_GT(ratio(answer.upper, answer.predicted.step_time), 3);
  EXPECT_TRUE(std::ranges::any_of(answer.interval_parts, [](const IntervalPart& part) {
    return part.source == "lower_bound";
  }));
}

TEST(Trust, OneOrTwoOutcomesAreTooFew) {
  Prediction answer = predict(recorded_as(kFourSteps), what_if("amp"));
  const auto compared = [&](const char* use, std::size_t own, double error = 0.1) {
    answer.steps.front().use = use;
    const std::vector<KnownOutcome> outcomes(own, {.transforms = {"recompute"}, .error = error});
    answer.trust = trust_of(answer, outcomes);
    return *answer.trust.reason("compared");
  };
  EXPECT_EQ(compared("amp", 0).grade, Grade::good);
  EXPECT_EQ(compared("recompute", 0).grade, Grade::fair);
  EXPECT_EQ(compared("recompute", 2).grade, Grade::fair);
  EXPECT_EQ(compared("recompute", 2).text, "recompute was compared with only 2 outcomes");
  EXPECT_EQ(compared("recompute", 3).grade, Grade::good);
  EXPECT_EQ(compared("recompute", 3, 0.6).grade, Grade::fair);
  EXPECT_TRUE(compared("recompute", 3, 0.6).text.starts_with("recompute was typically off by"));
}

TEST(Trust, FewAndUnlikeStepsAreFair) {
  const Prediction answer = predict(recorded_as(kFourSteps), Scenario{});
  EXPECT_EQ(grade_of(answer, "steps"), Grade::good);
  EXPECT_EQ(answer.trust.reason("spread")->text, "the steps differ by 32.8 %");
  EXPECT_EQ(grade_of(answer, "spread"), Grade::fair);
  const Prediction whole = predict(recorded_as("gpu: k 5"), Scenario{});
  EXPECT_EQ(whole.trust.reason("steps")->text,
            "no steps were found: the whole recording stands for one");
  EXPECT_EQ(grade_of(whole, "steps"), Grade::fair);
}

TEST(Trust, AssertionsAboutTimeAreUndecidedWhereItIsPoor) {
  Scenario scenario = what_if(kFasterKernels);
  scenario.asserts = {"step_time <= 1s", "replay_error <= 0.1"};
  const Prediction poor = predict(waiting_for_ranks(10, 40), scenario);
  const auto checked = check_asserts(scenario, poor);
  ASSERT_EQ(checked.size(), 1U);
  EXPECT_EQ(checked[0].text, "step_time <= 1s");
  EXPECT_EQ(checked[0].verdict, Verdict::undecided);
  EXPECT_TRUE(check_asserts(scenario, predict(waiting_for_ranks(10, 0), scenario)).empty());
}

TEST(Trust, StrictRefusesPoorAnswers) {
  const Inference inference = waiting_for_ranks(10, 40);
  EXPECT_NO_THROW(predict(inference, what_if(kFasterKernels)));
  EXPECT_THROW(predict(inference, what_if(kFasterKernels), {.strict = true}), TraceError);
}

TEST(Trust, KnowsARecordingThatBreaksOff) {
  Notes notes;
  notes.add(Severity::warning, "events that are not JSON, left out");
  EXPECT_EQ(cut_off_note(notes), nullptr);
  notes.add(Severity::warning, "the trace is cut off in the list of events");
  ASSERT_NE(cut_off_note(notes), nullptr);
  EXPECT_EQ(cut_off_note(notes)->text, "the trace is cut off in the list of events");
}

TEST(Trust, ChecksDoNotJudgeARecordingThatBreaksOff) {
  const Inference inference = recorded_as(kFourSteps);
  Notes notes;
  CheckReport report;
  report.figures.resize(2);
  report.figures[0].standing = CheckOutcome::failed;
  report.figures[1].standing = CheckOutcome::left_out;
  report.trust = trust_in_job(inference, notes, false);
  leave_undecided({}, report);
  EXPECT_EQ(report.figures[0].standing, CheckOutcome::failed);
  notes.add(Severity::warning, "the trace is cut off in the list of events");
  report.trust = trust_in_job(inference, notes, false);
  leave_undecided({}, report);
  EXPECT_EQ(report.figures[0].standing, CheckOutcome::undecided);
  EXPECT_EQ(report.figures[0].why, "the trace is cut off in the list of events");
  EXPECT_EQ(report.figures[1].standing, CheckOutcome::left_out);
}

// Four ranks, one of which sleeps for a second in each step. Without the sleep a step takes 151 ms,
// but the ranks that wait, seen alone, keep their 1.1 s: none of their answers can be relied on.
TEST(Trust, CorpusRanksThatWaitForAStragglerArePoor) {
  const auto files = corpus_files({"straggler_rank0.json.gz"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  const Prediction answer = predict(Job(files.front()), what_if("amp"));
  EXPECT_EQ(answer.trust.grade(), Grade::poor);
  EXPECT_EQ(grade_of(answer, "other_ranks"), Grade::poor);
}

}  // namespace
}  // namespace foretrace
