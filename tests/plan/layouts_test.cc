#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "foretrace/error.h"
#include "plan/layouts/ranking.h"
#include "plan/plan.h"

namespace foretrace {
namespace {

PlanSpace space_of(const std::string& model, std::vector<std::int64_t> gpus, std::int64_t batch,
                   const std::string& machine = "dgx-a100") {
  PlanSpace space{.step = {.name = model}, .gpus = std::move(gpus)};
  space.step.workload = find_workload(model);
  space.step.platform = find_platform(machine);
  space.step.layout.global_batch = batch;
  return space;
}

std::string refusal_of_plan(const PlanSpace& space) {
  try {
    plan_layouts(space, {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// One line for each layout.
std::string text_of(const std::vector<PlannedLayout>& layouts) {
  std::string text;
  for (const PlannedLayout& one : layouts)
    text += layout_text(one.layout) + " " + std::to_string(one.price.us) + " " +
            std::to_string(one.price.memory.reserved.count) + " " + std::to_string(one.cost) + "\n";
  return text;
}

TEST(Ranking, KeepsWhatMayBeAmongTheFastestThatAreShown) {
  Ranking ranking(2, launch_programs().size());
  ranking.add({.candidate = 0, .us = 10, .cost = 1, .reserved = 1});
  ranking.add({.candidate = 1, .us = 30, .cost = 1, .reserved = 1});
  const auto bound_of = [](double us) {
    Bound bound;
    bound.us = us, bound.cost = 2, bound.reserved = 2;  // Worse in cost and memory.
    return bound;
  };
  EXPECT_TRUE(ranking.may_show(2, bound_of(20)));
  EXPECT_TRUE(ranking.may_show(2, bound_of(30)));
  EXPECT_FALSE(ranking.may_show(2, bound_of(31)));
}

/// The answer that plan_layouts() must give, computed from the price of every layout.
struct BruteForce {
  std::vector<PlannedLayout> best, front, launched;
  std::size_t candidates = 0;
};

BruteForce brute_force(const PlanSpace& space) {
  BruteForce answer;
  StepCalibration calibration;
  std::vector<PlannedLayout> all;
  for (const Layout& layout : all_layouts(space)) {
    MeasuredStep step = space.step;
    step.layout = layout;
    PlannedLayout one{.layout = layout};
    try {
      one.price = calibration.price(step);
    } catch (const Error&) {
      continue;
    }
    ++answer.candidates;
    one.cost = one.price.us / 3600e6 * static_cast<double>(layout.devices()) * space.gpu_hour;
    const Bytes limit = space.memory ? *space.memory : space.step.platform.device.memory;
    if (one.price.memory.reserved <= limit) all.push_back(one);
  }
  const auto better = [](const PlannedLayout& a, const PlannedLayout& b) {
    return a.price.us <= b.price.us && a.price.memory.reserved <= b.price.memory.reserved &&
           a.cost <= b.cost;
  };
  std::ranges::stable_sort(all, {}, [](const PlannedLayout& one) { return one.price.us; });
  answer.best.assign(all.begin(),
                     all.begin() + static_cast<std::ptrdiff_t>(std::min(space.shown, all.size())));
  for (const LaunchProgram* program : space.programs) {
    const auto first = std::ranges::find_if(
        all, [&](const PlannedLayout& one) { return program->runs(one.layout); });
    if (first != all.end()) answer.launched.push_back(*first);
  }
  std::ranges::stable_sort(all, {}, [](const PlannedLayout& one) {
    return std::tuple(one.price.us, one.price.memory.reserved, one.cost);
  });
  for (const PlannedLayout& one : all) {
    if (std::ranges::none_of(answer.front, [&](const auto& other) { return better(other, one); }))
      answer.front.push_back(one);
  }
  return answer;
}

TEST(PlanLayouts, EqualsBruteForce) {
  std::mt19937 random(20);
  const auto any = [&](const std::vector<std::int64_t>& values) {
    return values[random() % values.size()];
  };
  std::size_t spaces = 0, replayed = 0, candidates = 0;
  while (spaces < 200) {
    const std::int64_t heads = any({4, 8, 12, 16});
    std::string model = "transformer:layers=" + std::to_string(any({2, 4, 6, 8, 12})) +
                        ",heads=" + std::to_string(heads) +
                        ",hidden=" + std::to_string(heads * 64 * any({1, 2, 4})) +
                        ",sequence=" + std::to_string(any({512, 2048}));
    if (any({0, 0, 1}) == 1) model += ",experts=8,active_experts=2";
    PlanSpace space = space_of(model, {any({1, 2, 4, 6})}, any({8, 16, 24, 32}),
                               any({0, 1}) == 0 ? "dgx-a100" : "dgx-h100");
    if (any({0, 1}) == 1) space.gpus.push_back(space.gpus.front() * 2);
    if (any({0, 1}) == 1) space.gpu_hour = 2.5;
    if (any({0, 1}) == 1) space.memory = Bytes{any({4, 8, 20, 40}) * 1'000'000'000};
    for (const char* name : {"cp", "ep", "zero", "recompute", "sequence_parallel"}) {
      if (any({0, 1, 1}) == 1) space.fixed.insert(name);
    }
    space.shown = static_cast<std::size_t>(any({1, 3, 10}));
    SCOPED_TRACE(model);
    BruteForce expected;
    try {
      if (all_layouts(space).size() <= 4096) expected = brute_force(space);
    } catch (const Error&) {  // Nothing divides evenly.
    }
    if (expected.best.empty()) continue;
    ++spaces;
    PlanOutcome found = plan_layouts(space, {});
    EXPECT_EQ(text_of(found.best), text_of(expected.best));
    EXPECT_EQ(text_of(found.front), text_of(expected.front));
    std::vector<PlannedLayout> launched;
    for (const auto& one : found.launched) {
      if (one) launched.push_back(*one);
    }
    EXPECT_EQ(text_of(launched), text_of(expected.launched));
    EXPECT_EQ(found.candidates, expected.candidates);
    replayed += found.replayed, candidates += found.candidates;
  }
  EXPECT_LT(replayed * 3, candidates);  // Bounds save most of the replays.
}

TEST(PlanLayouts, ThreadsChangeNothing) {
  PlanSpace space = space_of("llama3-8b", {8}, 16, "dgx-h100");
  space.gpu_hour = 3;
  std::string first;
  for (const std::size_t threads : {1, 2, 7}) {
    space.threads = threads;
    const PlanOutcome outcome = plan_layouts(space, {});
    std::string text = text_of(outcome.best) + text_of(outcome.front) + text_of(outcome.plain);
    for (const auto& [loss, count] : outcome.losses)
      text += std::string(to_string(loss)) + std::to_string(count);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads << " threads";
  }
}

TEST(PlanLayouts, ShowsPlainDataParallelism) {
  PlanSpace space = space_of("llama3-8b", {8}, 64, "dgx-h100");
  const PlanOutcome outcome = plan_layouts(space, {});
  ASSERT_EQ(outcome.plain.size(), 1U);
  EXPECT_EQ(outcome.plain[0].layout.data, 8);
  EXPECT_EQ(outcome.plain[0].loss, Loss::memory);  // 8 B x 18 bytes.
  EXPECT_FALSE(outcome.plain[0].fits);
  const PlanOutcome small = plan_layouts(space_of("mpt-1b", {8}, 64, "dgx-h100"), {});
  EXPECT_TRUE(small.plain[0].fits);
  EXPECT_GE(small.plain[0].price.us, small.best[0].price.us);
}

TEST(PlanLayouts, KeepsWhatIsFixed) {
  PlanSpace space = space_of("llama3-8b", {16}, 48, "dgx-h100");
  space.step.layout.tensor = 4, space.step.layout.micro_batch = 3;
  space.fixed = {"tp", "micro_batch"};
  for (const PlannedLayout& one : plan_layouts(space, {}).best) {
    EXPECT_EQ(one.layout.tensor, 4);
    EXPECT_EQ(one.layout.micro_batch, 3);
  }
}

TEST(PlanLayouts, SaysWhatTookTheLast) {
  PlanSpace space = space_of("llama3-8b", {8}, 64, "dgx-h100");
  space.memory = Bytes{10'000'000'000};
  EXPECT_EQ(
      refusal_of_plan(space),
      "no layout is left: memory took the last 6123 of them; "
      "global_batch=64,recompute=full,sequence_parallel=true,tp=8 needs the least, 22.33 GB of "
      "10 GB");
  space.memory = Bytes{10'000'000};
  EXPECT_EQ(refusal_of_plan(space),
            "--memory-limit: must hold the weights of one layer, 132.1 MB, got 10 MB");
  space.memory.reset();
  space.step.layout.tensor = 3, space.fixed = {"tp"};
  EXPECT_EQ(refusal_of_plan(space), "no layout is left: tp must be one of 1, 2, 4, 8, got 3");
  space.gpus = {9};
  EXPECT_EQ(refusal_of_plan(space),
            "no layout is left: heads must divide by tensor parallel ranks: 32 by 3");
  space = space_of("llama3-8b", {8}, 63, "dgx-h100");
  space.step.layout.data = 8, space.fixed = {"dp"};
  EXPECT_EQ(refusal_of_plan(space),
            "no layout is left: --global-batch: must be a multiple of dp, 8, got 63");
  space.fixed = {"precision"};
  EXPECT_EQ(refusal_of_plan(space),
            "--fix: must be one of tp, pp, dp, cp, ep, virtual_stages, micro_batch, schedule, "
            "recompute, zero, sequence_parallel, got precision");
}

/// No program offers zb_h1; it is searched where it is asked for, by name or with all others.
TEST(PlanLayouts, SearchesSchedulesThatProgramsOffer) {
  PlanSpace space{.gpus = {8}};
  space.step.workload = find_workload("transformer:layers=8,hidden=512,heads=8");
  space.step.platform = find_platform("dgx-a100");
  space.step.layout.global_batch = 16;
  const auto schedules = [&] {
    std::set<std::string> names;
    for (const Layout& layout : all_layouts(space)) names.insert(layout.schedule);
    return names;
  };
  const std::vector<std::string_view> offered = planned_schedules(false);
  EXPECT_EQ(schedules(), (std::set<std::string>{offered.begin(), offered.end()}));
  EXPECT_TRUE(schedules().contains("1f1b"));
  EXPECT_FALSE(schedules().contains("zb_h1"));
  space.all_schedules = true;
  EXPECT_EQ(schedules().size(), planned_schedules(true).size());
  space.all_schedules = false, space.fixed = {"schedule"}, space.step.layout.schedule = "zb_h1";
  EXPECT_TRUE(schedules().contains("zb_h1"));
}

TEST(PlanLayouts, WritesFlags) {
  Layout layout;
  layout.tensor = 8, layout.pipeline = 4, layout.data = 2, layout.virtual_stages = 2;
  layout.schedule = "interleaved", layout.global_batch = 64, layout.recompute = "full";
  layout.sequence_parallel = true, layout.zero = 1;
  const LaunchProgram &megatron = launch_programs()[0], &torchtitan = launch_programs()[1];
  const auto has = [](const std::vector<std::string>& flags, const std::string& flag) {
    return std::ranges::find(flags, flag) != flags.end();
  };
  ASSERT_TRUE(megatron.runs(layout));
  EXPECT_TRUE(has(flags_of(megatron, layout), "--tensor-model-parallel-size 8"));
  EXPECT_TRUE(has(flags_of(megatron, layout), "--num-virtual-stages-per-pipeline-rank 2"));
  EXPECT_TRUE(has(flags_of(megatron, layout), "--use-distributed-optimizer"));
  EXPECT_FALSE(torchtitan.runs(layout));
  layout.zero = 3;
  ASSERT_TRUE(torchtitan.runs(layout));
  EXPECT_TRUE(has(flags_of(torchtitan, layout),
                  "--parallelism.pipeline_parallel_schedule Interleaved1F1B"));
  EXPECT_TRUE(has(flags_of(torchtitan, layout), "--training.local_batch_size 32"));
  layout.schedule = "zb_h1", layout.virtual_stages = 1;
  EXPECT_FALSE(megatron.runs(layout));
  EXPECT_FALSE(torchtitan.runs(layout));
}

}  // namespace
}  // namespace foretrace
