#include "foretrace/question/advise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "job/step_cost.h"
#include "question/advise/confidence.h"
#include "question/advise/joint_advice.h"
#include "question/advise/words.h"
#include "question/common/straggler.h"
#include "question/recorded.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

/// Steps that load, launch, and wait for the device, each for the given number of milliseconds:
///
///     cpu  |iiiL        s|
///     gpu  |    KKKKKKKK |
std::string waiting_steps(int load, int kernel, const std::string& name = "gemm") {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i), comma = i == 0 ? "" : ", ",
                      step = " {step=" + number + "}";
    text += "@step ProfilerStep#" + number + "\n";
    cpu += comma + "load:input " + std::to_string(load) + "000" + step + ", l" + number +
           "=launch:launch 5000" + step + ", s" + number + "=wait:sync 2000" + step;
    gpu += comma + "k" + number + "=" + name + " " + std::to_string(kernel) + "000" + step;
    waits += "l" + number + " -> k" + number + " [measured launch]\n";
    waits += "k" + number + " -> s" + number + " [measured \"device sync\"]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

const Suggestion* named(const Advice& advice, std::string_view use) {
  const auto found = std::find_if(advice.suggestions.begin(), advice.suggestions.end(),
                                  [&](const Suggestion& one) { return one.use.starts_with(use); });
  return found == advice.suggestions.end() ? nullptr : &*found;
}

std::string refusal(const AdviceQuestion& question) {
  try {
    advise(recorded_as(waiting_steps(100, 50)), question);
  } catch (const Error& error) {
    return error.what();
  }
  return "answered";
}

TEST(Advise, AJobBoundByLoadingIsToldToLoadAhead) {
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), {});
  EXPECT_EQ(advice.step_time, 157ms);
  EXPECT_EQ(advice.path.largest(), PathPart::input);
  ASSERT_FALSE(advice.suggestions.empty());
  EXPECT_EQ(advice.suggestions[0].use, "loader:workers=2");
  EXPECT_TRUE(advice.suggestions[0].recommended);
  EXPECT_EQ(advice.ladder.back().step_time, 50ms);
}

TEST(Advise, WhatBringsLessThanNoiseIsNotRecommended) {
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), {});
  for (const Suggestion& one : advice.suggestions) {
    SCOPED_TRACE(one.use);
    if (one.goal == "memory") continue;
    EXPECT_EQ(one.recommended, static_cast<double>(one.gain.count()) >
                                   advice.noise * static_cast<double>(advice.step_time.count()));
    EXPECT_EQ(one.recommended, one.why_not.empty());
  }
}

// Loading takes 12 of each step of 69 and waiting for the device takes 7. With either change,
// loading ahead or not waiting, the step is bound by the device, which needs 50.
TEST(Advise, TwoThatTakeAwayTheSameWaitingDoNotAddUp) {
  AdviceQuestion question;
  question.only = {"loader", "remove_sync"};
  const Advice advice = advise(recorded_as(waiting_steps(12, 50)), question);
  const Suggestion* loader = named(advice, "loader");
  const Suggestion* sync = named(advice, "remove_sync");
  ASSERT_NE(loader, nullptr);
  ASSERT_NE(sync, nullptr);
  EXPECT_TRUE(loader->recommended && sync->recommended);
  ASSERT_TRUE(advice.joint.has_value());
  EXPECT_EQ(advice.joint->members.size(), 1U);  // The best one leaves nothing to add.
  ASSERT_EQ(advice.joint->left_out.size(), 1U);
  EXPECT_EQ(advice.joint->left_out[0], "loader: adds nothing once remove_sync is done");
}

TEST(Advise, WhatGoesTogetherIsDividedAmongThem) {
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), {});
  ASSERT_TRUE(advice.joint.has_value());
  const JointAdvice& joint = *advice.joint;
  EXPECT_EQ(std::accumulate(joint.attributed.begin(), joint.attributed.end(), 0ns), joint.gain);
  EXPECT_GE(joint.gain, advice.suggestions[joint.members[0]].gain);
  EXPECT_EQ(std::accumulate(joint.alone.begin(), joint.alone.end(), 0ns), joint.sum);
  EXPECT_EQ(joint.pairs.size(), joint.members.size() * (joint.members.size() - 1) / 2);
}

TEST(Advise, WhatDoesNotApplySaysWhy) {
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), {});
  for (const NotTried& one : advice.not_applicable) EXPECT_FALSE(one.reason.empty());
  const auto device =
      std::find_if(advice.not_applicable.begin(), advice.not_applicable.end(),
                   [](const NotTried& one) { return one.transform == "faster_device"; });
  ASSERT_NE(device, advice.not_applicable.end());
  EXPECT_EQ(device->reason, "the trace does not name its device");
}

TEST(Advise, HalfPrecisionIsNotAdvisedToWhoHasIt) {
  const Advice single = advise(recorded_as(waiting_steps(1, 50)), {});
  ASSERT_NE(named(single, "amp"), nullptr);
  EXPECT_TRUE(named(single, "amp")->recommended);
  const Advice half = advise(recorded_as(waiting_steps(1, 50, "gemm_bf16")), {});
  EXPECT_EQ(named(half, "amp"), nullptr);
  const auto why = std::find_if(half.not_applicable.begin(), half.not_applicable.end(),
                                [](const NotTried& one) { return one.transform == "amp"; });
  ASSERT_NE(why, half.not_applicable.end());
  EXPECT_EQ(why->reason, "100.0 % of the time of its kernels is in half precision already");
}

// Two batches at once are enough beside kernels of 50, but not beside kernels a third as long.
TEST(Advise, SettingsAreChosenAnewBesideOthers) {
  AdviceQuestion question;
  question.only = {"loader", "amp"};
  const Advice advice = advise(recorded_as(waiting_steps(80, 50)), question);
  ASSERT_FALSE(advice.suggestions.empty());
  EXPECT_EQ(advice.suggestions[0].use, "loader:workers=2");
  ASSERT_TRUE(advice.joint.has_value());
  EXPECT_EQ(advice.joint->uses, (std::vector<std::string>{"loader:workers=4", "amp"}));
  EXPECT_GT(advice.joint->gain, advice.joint->alone[0]);
}

TEST(Advise, WhatMayAsWellBringNothingIsOfLowConfidence) {
  const Inference inference = recorded_as(waiting_steps(100, 50));
  const AdvisedJob job = advised_job(inference);
  Suggestion loading;
  loading.use = "loader:workers=4";
  loading.gain = job.now() / 2;
  loading.upper = job.now() / 2;
  EXPECT_NE(confidence_of(job, loading).word, "low");
  loading.upper = job.now();
  EXPECT_EQ(confidence_of(job, loading).word, "low");
}

TEST(Advise, WhatIsTypicallyOffByMoreThanAFifthIsNotOfHighConfidence) {
  const Inference inference = recorded_as(waiting_steps(100, 50));
  const AdvisedJob job = advised_job(inference);
  Suggestion sure;
  sure.gain = job.now() / 2;
  sure.upper = job.now() / 2;
  sure.use = "loader:workers=4";
  EXPECT_EQ(confidence_of(job, sure).word, "high");
  sure.use = "pin_memory";
  EXPECT_EQ(confidence_of(job, sure).word, "medium");
}

// Ten launches per step, and a pause in which the model does no work.
TEST(Advise, APauseIsNoLaunching) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int step = 0; step < 6; ++step) {
    const std::string in = " {step=" + std::to_string(step) + "}";
    text += "@step ProfilerStep#" + std::to_string(step) + "\n";
    for (int i = 0; i < 10; ++i) {
      const std::string number = std::to_string(10 * step + i);
      const std::string comma = number == "0" ? "" : ", ";
      cpu += comma + (i == 5 ? "sleep:host 9000" + in : "op:host 20" + in);
      cpu += ", l" + number + "=go:launch 5" + in;
      gpu += comma + "k" + number + "=gemm 10" + in;
      waits += "l" + number + " -> k" + number + " [measured launch]\n";
    }
  }
  AdviceQuestion question;
  question.only = {"cuda_graphs"};
  const Advice advice = advise(recorded_as(text + cpu + "\n" + gpu + "\n" + waits), question);
  const Suggestion* graphs = named(advice, "cuda_graphs");
  ASSERT_NE(graphs, nullptr);
  EXPECT_FALSE(graphs->recommended);
  EXPECT_TRUE(graphs->why_not.starts_with("would gain more than if launching took no time at all"))
      << graphs->why_not;
  ASSERT_EQ(advice.causes.size(), 1U);
  EXPECT_TRUE(advice.causes[0].starts_with("\"sleep\", 9 ms of host work a step in long pieces"))
      << advice.causes[0];
}

/// Steps of ten launches, each step with what `on_cpu` and `on_gpu` insert; see
/// APauseIsNoLaunching.
Inference launching_steps(const std::string& on_cpu, const std::string& on_gpu,
                          const std::string& dependencies) {
  const auto numbered = [](std::string part, int step) {
    for (std::size_t at; (at = part.find('#')) != part.npos;)
      part.replace(at, 1, std::to_string(step));
    return part;
  };
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int step = 0; step < 6; ++step) {
    const std::string in = " {step=" + std::to_string(step) + "}";
    text += "@step ProfilerStep" + std::to_string(step) + "\n";
    for (int i = 0; i < 10; ++i) {
      const std::string number = std::to_string(10 * step + i);
      cpu += (number == "0" ? "" : ", ") + std::string("op:host 200") + in;
      cpu += ", l" + number + "=go:launch 50" + in;
      gpu += (number == "0" ? "" : ", ") + std::string("k") + number + "=gemm 10" + in;
      waits += "l" + number + " -> k" + number + " [measured launch]\n";
    }
    if (!on_cpu.empty()) cpu += ", " + numbered(on_cpu, step) + in;
    if (!on_gpu.empty()) gpu += ", " + numbered(on_gpu, step) + in;
    waits += numbered(dependencies, step);
  }
  return recorded_as(text + cpu + "\n" + gpu + "\n" + waits);
}

const Suggestion& graphs_for(const Advice& advice) { return *named(advice, "cuda_graphs"); }

AdviceQuestion only(const std::string& transform) {
  AdviceQuestion question;
  question.only = {transform};
  return question;
}

TEST(Advise, GraphsAreAdvisedWhereStepsAreAlike) {
  const Advice advice = advise(launching_steps("", "", ""), only("cuda_graphs"));
  EXPECT_TRUE(graphs_for(advice).recommended) << graphs_for(advice).why_not;
}

TEST(Advise, NoGraphHoldsSizesThatTheDataDecides) {
  const Advice advice =
      advise(launching_steps("\"aten::nonzero\":host 20", "", ""), only("cuda_graphs"));
  EXPECT_FALSE(graphs_for(advice).recommended);
  EXPECT_EQ(graphs_for(advice).why_not,
            "no graph can contain the work after aten::nonzero: the size of its result differs in "
            "each step");
}

TEST(Advise, NoGraphGoesOnBeyondACollectiveThatTheHostWaitsFor) {
  const Advice advice = advise(launching_steps("s#=wait:sync 1", "c#=reduce:collective 5",
                                               "c# -> s# [measured \"stream sync\"]\n"),
                               only("cuda_graphs"));
  EXPECT_EQ(graphs_for(advice).why_not, "the host waits for collectives, and a graph ends there");
}

TEST(Advise, StepsThatLaunchGraphsAreNotCapturedAgain) {
  const Advice advice =
      advise(launching_steps("cudaGraphLaunch:launch 5", "", ""), only("cuda_graphs"));
  EXPECT_EQ(graphs_for(advice).why_not, "the steps already capture or launch CUDA graphs");
}

TEST(Advise, DriverCallsThatAllocateAreNamedFirst) {
  const Advice advice = advise(launching_steps("hipMalloc:host 900", "", ""), only("amp"));
  ASSERT_EQ(advice.causes.size(), 1U);
  EXPECT_TRUE(advice.causes[0].starts_with("1 driver call a step such as hipMalloc"))
      << advice.causes[0];
}

/// Steps of one copy and one kernel; each takes `extra` us of the host 0 to 4 times.
std::string copying_steps(int copy, int kernel, int launch, int extra) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), comma = i == 0 ? "" : ", ", step = " {step=" + n + "}";
    text += "@step ProfilerStep#" + n + "\n";
    cpu += comma + "l" + n + "=launch:launch " + std::to_string(launch + i * i % 7 * extra) + step;
    gpu += comma + "c" + n + "=\"Memcpy HtoD\":copy_in " + std::to_string(copy) +
           " {bytes=10MB step=" + n + "}, k" + n + "=gemm " + std::to_string(kernel) + step;
    waits += "l" + n + " -> c" + n + " [measured launch]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

TEST(Advise, CopiesThatBoundAStepAreNamed) {
  const Advice advice = advise(recorded_as(copying_steps(1000, 100, 10, 0)), only("amp"));
  EXPECT_EQ(advice.bound.part, PathPart::copies);
  ASSERT_EQ(advice.causes.size(), 1U);
  EXPECT_EQ(
      advice.causes[0],
      "Memcpy HtoD: 10 MB a step at 10 GB/s; copy less, in a narrower type, or while kernels run");
}

TEST(Advise, AHostAsSlowAsTheDeviceIsNotSingledOut) {
  const auto bound_with = [](int launch) {
    return bound_sentence(advise(recorded_as(copying_steps(1, 1000, launch, 0)), only("amp")));
  };
  EXPECT_TRUE(bound_with(1050).starts_with("the host and the device alike: without host work"))
      << bound_with(1050);
  EXPECT_TRUE(bound_with(1500).starts_with("the host: ")) << bound_with(1500);
  EXPECT_TRUE(bound_with(500).starts_with("the device: ")) << bound_with(500);
}

TEST(Advise, StepsThatDifferDoNotHideWhatGainsInEach) {
  const Advice advice = advise(recorded_as(copying_steps(1, 1000, 1500, 1500)), only("amp"));
  EXPECT_GT(advice.spread, 0.05);
  EXPECT_DOUBLE_EQ(advice.noise, 0.05);
}

/// A rank that works for `work` in each step and then reduces, where it waits for `wait` for the
/// last rank.
Inference working_rank(int work, int wait) {
  std::string text, gpu = "gpu: ";
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), step = " {step=" + number + "}";
    text += "@step ProfilerStep" + number + "\n";
    gpu += (i == 0 ? "" : ", ") + std::string("k") + number + "=gemm " + std::to_string(work) +
           step + ", c" + number + "=reduce:collective " + std::to_string(10 + wait) + step;
  }
  Inference inference = recorded_as(text + gpu + "\n");
  for (std::uint32_t i = 1; wait > 0 && i < inference.graph.task_count(); i += 2)
    inference.open.push_back(
        {.task = TaskId{i}, .time = Nanoseconds(1000 * wait), .of_peers = true});
  return inference;
}

RankChoice choice_among(int work_of_second, int wait_for_it) {
  std::vector<Inference> ranks;
  ranks.push_back(working_rank(100, wait_for_it));
  ranks.push_back(working_rank(work_of_second, 0));
  ranks.push_back(working_rank(101, wait_for_it));
  JobRanks job = job_of(std::move(ranks));
  for (std::int32_t i = 0; i < 3; ++i) job.ranks[static_cast<std::size_t>(i)].number = i;
  Notes notes;
  return rank_to_advise(job, notes);
}

TEST(Straggler, IsTheRankThatTheOthersWaitFor) {
  const RankChoice choice = choice_among(400, 300);
  EXPECT_EQ(choice.rank, 1U);
  EXPECT_EQ(choice.straggler,
            "rank 1 is the straggler: it works 410 us a step; the others work 110.5 us and wait "
            "300 us for it (what the job would take without that: foretrace predict TRACE --with "
            "straggler:remove=true)");
  EXPECT_EQ(choice.reason.rfind("1, the straggler of 3; predict shows the slowest, rank ", 0), 0U)
      << choice.reason;
}

TEST(Straggler, IsNoneAmongRanksThatAreAlike) {
  const RankChoice choice = choice_among(100, 0);
  EXPECT_EQ(choice.rank, 2U);
  EXPECT_EQ(choice.straggler, "");
  EXPECT_EQ(choice.reason, "2, the slowest of 3, which predict shows too");
}

// If nobody knows what the step of a recording waits for, the answer has no headline.
TEST(Advise, SaysNothingWhereOtherRanksDecide) {
  const Advice advice = advise(working_rank(100, 300), {});
  EXPECT_EQ(advice.trust.grade(), Grade::poor);
  EXPECT_FALSE(advice.joint.has_value());
  for (const Suggestion& one : advice.suggestions) EXPECT_FALSE(one.recommended) << one.use;
  std::ostringstream out;
  write_text(document_of(advice, false), out);
  EXPECT_EQ(out.str().rfind("Trust         poor: ", 0), 0U) << out.str();
}

TEST(Advise, HowFastLoadingHasToBe) {
  AdviceQuestion question;
  question.until = "step_time <= 107ms";
  question.vary = "input.time";
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), question);
  ASSERT_EQ(advice.speed_ups.size(), 1U);
  ASSERT_TRUE(advice.speed_ups[0].needed.has_value());
  EXPECT_NEAR(*advice.speed_ups[0].needed, 2, 0.002);
  EXPECT_TRUE(advice.suggestions.empty());
  question.until = "throughput >= 100";
  question.samples = 10;
  const Advice rate = advise(recorded_as(waiting_steps(100, 50)), question);
  ASSERT_TRUE(rate.target.has_value());
  EXPECT_EQ(rate.target->step_time, 100ms);
  EXPECT_NEAR(*rate.speed_ups[0].needed, 100.0 / 43, 0.003);
}

TEST(Advise, ASettingIsVariedByReplaying) {
  AdviceQuestion question;
  question.until = "step_time <= 80ms";
  question.vary = "loader.workers=1..4";
  const Advice advice = advise(recorded_as(waiting_steps(100, 50)), question);
  ASSERT_TRUE(advice.curve.has_value());
  EXPECT_EQ(advice.curve->answer_text, "holds from 2 on");
}

TEST(Advise, SaysWhatIsWrong) {
  AdviceQuestion only;
  only.only = {"ampp"};
  EXPECT_EQ(refusal(only), "--only: there is no transform \"ampp\" (did you mean \"amp\"?)");
  const auto asked = [](std::string until, std::string vary, double samples = 0) {
    AdviceQuestion question;
    question.until = std::move(until);
    question.vary = std::move(vary);
    question.samples = samples;
    return refusal(question);
  };
  EXPECT_EQ(asked("", "input.time"), "--vary: needs --until, which gives the target");
  EXPECT_EQ(
      asked("step_time >= 3ms", ""),
      "--until: step_time: must be at most something: \"step_time <= 100ms\", got \">= 3ms\"");
  EXPECT_EQ(
      asked("step_time <= 3", ""),
      "--until: step_time: must be a time with its unit (ns, us, ms, s, min or h), got \"3\"");
  EXPECT_EQ(asked("steptime <= 3ms", ""),
            "--until: must be \"step_time <= TIME\" or \"throughput >= NUMBER\", got \"steptime <= "
            "3ms\" (did you mean \"step_time\"?)");
  EXPECT_EQ(
      asked("throughput >= 3", ""),
      "--until: throughput: needs --samples-per-step, the number of samples in a recorded step");
  EXPECT_EQ(
      asked("throughput >= 3", "", std::numeric_limits<double>::quiet_NaN()),
      "--until: throughput: needs --samples-per-step, the number of samples in a recorded step");
  EXPECT_EQ(asked("throughput >= x", "", 8),
            "--until: throughput: must be a number of samples per second above 0, got \"x\"");
  EXPECT_EQ(asked("step_time <= 0ms", ""), "--until: step_time: must allow steps longer than 0ns");
  EXPECT_EQ(asked("step_time <= 3ms", "loader.workers"),
            "--vary: name the values to try: loader.workers=1..32");
  EXPECT_EQ(asked("step_time <= 3ms", "kernels."),
            "--vary: must say which kernels, such as kernels.gemm");
  EXPECT_EQ(asked("step_time <= 3ms", "link.bandwidth"),
            "--vary: the trace has no transfers between devices to make faster");
}

TEST(Shapley, DividesWhatAllBringTogether) {
  EXPECT_EQ(shapley({0us, 30us, 30us, 40us}, 2), (std::vector<Nanoseconds>{20us, 20us}));
  EXPECT_EQ(shapley({0us, 0us, 10us, 24us}, 2), (std::vector<Nanoseconds>{7us, 17us}));
  EXPECT_EQ(shapley({0us, 6us, 6us, 6us, 6us, 6us, 6us, 6us}, 3),
            (std::vector<Nanoseconds>{2us, 2us, 2us}));
}

TEST(Advise, SamplesAreAnsweredTheSameEveryTime) {
  for (const std::string& path : sample_files()) {
    SCOPED_TRACE(path);
    std::ostringstream first, second;
    write_text(document_of(advise(Job(path), {}), false), first);
    write_text(document_of(advise(Job(path), {}), false), second);
    EXPECT_EQ(first.str(), second.str());
    EXPECT_EQ(first.str().rfind("Bound by", 0), 0U);
    std::istringstream lines(first.str());
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_LE(count, 24U);
  }
}

TEST(Advise, CorpusHoldsItsBounds) {
  for (const std::string& path : corpus_files({".json.gz", ".sqlite"})) {
    SCOPED_TRACE(path);
    if (std::filesystem::file_size(path) > 300'000) continue;  // Takes seconds.
    Advice advice;
    try {
      advice = advise(Job(path), {});
    } catch (const TraceError&) {
      continue;
    }
    for (const AdviceCeiling& ceiling : advice.ladder) {
      EXPECT_LE(ceiling.step_time, advice.step_time) << ceiling.name;
      EXPECT_GE(ceiling.step_time, advice.ladder.back().step_time) << ceiling.name;
    }
    EXPECT_GE(advice.path.total(), advice.step_time / 2);
  }
}

TEST(Advise, RefusesMemorySnapshots) {
  for (const std::string& path : corpus_files({".pickle"})) {
    SCOPED_TRACE(path);
    EXPECT_THROW(advise(Job(path), {}), TraceError);
  }
}

/// Four steps on one A100 with a gradient of this size; each step takes 40 ms.
Inference steps_with_gradients(const std::string& bytes) {
  std::string text, gpu = "gpu: ", blocks;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), step = " step=" + number + "}";
    text += "@step ProfilerStep#" + number + "\n";
    gpu += std::string(i == 0 ? "" : ", ") + "f" + number + "=fwd 10000 {phase=forward" + step +
           ", b" + number + "=bwd 29000 {phase=backward" + step + ", u" + number +
           "=opt 1000 {phase=update" + step;
    blocks += "@alloc " + bytes + " use=gradient: b" + number + " .. u" + number + " writes b" +
              number + " reads u" + number + "\n";
  }
  Inference inference = recorded_as(text + gpu + "\n" + blocks);
  inference.graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  return inference;
}

TEST(Advise, MoreGpusPayAsLongAsTheirGradientsAreSmall) {
  const MoreGpus none = advise(steps_with_gradients("4MB"), {}).more_gpus;
  EXPECT_TRUE(none.network.empty());
  const MoreGpus small = advise(steps_with_gradients("4MB"), {.network = "dgx-a100"}).more_gpus;
  ASSERT_EQ(small.points.size(), 10U) << small.refused;
  EXPECT_EQ(small.points.back().gpus, 1024);
  for (const MoreGpus::Point& point : small.points) {
    EXPECT_GT(point.each_added, .5) << point.gpus;
    EXPECT_LE(point.times_as_fast, static_cast<double>(point.gpus)) << point.gpus;
  }
  // Sending through one host takes far longer than the step.
  const MoreGpus large = advise(steps_with_gradients("4GB"), {.network = "aws-p3"}).more_gpus;
  ASSERT_EQ(large.points.size(), 10U);
  EXPECT_EQ(large.points[3].gpus, 16);
  EXPECT_LT(large.points[3].each_added, 0);
}

TEST(Advise, WithoutGradientsItSaysHowToAsk) {
  const MoreGpus more =
      advise(recorded_as(waiting_steps(1, 50)), {.network = "dgx-a100"}).more_gpus;
  EXPECT_TRUE(more.points.empty());
  EXPECT_FALSE(more.refused.empty());
  EXPECT_EQ(refusal({.network = "no-such"}).substr(0, 9), "--network");
}

/// Forty all-reduces of 100 kB after one backward pass, each as long as a latency.
TEST(Advise, ManySmallBucketsAreJoinedOnTheNetworkThatIsGiven) {
  std::string text, gpu = "gpu: ", nccl = "nccl: ", waits;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), step = " step=" + number + "}";
    text += "@step ProfilerStep#" + number + "\n";
    gpu += std::string(i == 0 ? "" : ", ") + "b" + number + "=bwd 900 {phase=backward" + step +
           ", u" + number + "=opt 100 {phase=update" + step;
    for (int k = 0; k < 40; ++k) {
      const std::string name = "c" + number + "_" + std::to_string(k);
      nccl +=
          std::string(i + k == 0 ? "" : ", ") + name + "=all:collective 25 {phase=backward" + step;
      waits += "b" + number + " -> " + name + "\n" + name + " -> u" + number + "\n";
    }
  }
  Inference inference = recorded_as(text + gpu + "\n" + nccl + "\n" + waits);
  Graph& graph = inference.graph;
  const NameId reduce = graph.names().intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind == TaskKind::collective)
      graph.collectives().push_back(
          {.task = TaskId{i}, .operation = reduce, .group_size = 16, .bytes = Bytes{100'000}});
  }
  EXPECT_EQ(named(advise(inference, {}), "bucket_size"), nullptr);
  const Advice advice = advise(inference, {.network = "dgx-a100"});
  const Suggestion* buckets = named(advice, "bucket_size");
  ASSERT_NE(buckets, nullptr);
  EXPECT_TRUE(buckets->recommended) << buckets->why_not;
  EXPECT_LT(buckets->step_time, advice.step_time * 3 / 4);
}

}  // namespace
}  // namespace foretrace
