#include "job/job_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "foretrace/simulate.h"
#include "question/advise/advised_job.h"
#include "question/advise/bounds.h"
#include "support/ranks.h"

namespace foretrace {
namespace {

/// Six steps of a rank that prepares each for `host` us, and for `later` us more than the step
/// before; its collective takes 20 us, and `wait` us for the other rank.
///
///     cpu  |hhhhL          s|
///     gpu  |     KKKKwwwCC  |
std::string preparing_rank(int host, int later, int wait) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), comma = i == 0 ? "" : ", ", step = " {step=" + n + "}";
    text += "@step ProfilerStep#" + n + "\n";
    cpu += comma + "prepare:host " + std::to_string(host + later * i) + step + ", l" + n +
           "=launch:launch 5" + step + ", s" + n + "=wait:sync 1" + step;
    gpu += comma + "k" + n + "=gemm 50" + step + ", c" + n + "=reduce:collective " +
           std::to_string(20 + wait - later * i) + step;
    waits += "l" + n + " -> k" + n + " [measured launch]\n";
    waits += "c" + n + " -> s" + n + " [measured \"device sync\"]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

/// Rank 1 takes 136 us for a step, and rank 0, which waits for it, 137 us.
JobRanks two_ranks() {
  std::vector<Inference> ranks;
  ranks.push_back(rank_of({.graph = preparing_rank(10, 1, 50), .number = 0}));
  ranks.push_back(rank_of({.graph = preparing_rank(60, 0, 0), .number = 1}));
  return job_of(std::move(ranks));
}

AdvisedJob advised_rank(const JobRanks& job, std::size_t rank) {
  return advised_job(job.ranks[rank].inference, {}, {&job, rank});
}

AdviceCeiling ceiling_of(const AdvisedJob& job, std::string_view name) {
  for (const AdviceCeiling& one : ladder_of(job.whole, job.now())) {
    if (one.name == name) return one;
  }
  return {};
}

TEST(JobGraph, AJobTakesAsLongAsItsSlowestRank) {
  const JobRanks job = two_ranks();
  ASSERT_TRUE(job.is_joined());
  for (const std::size_t rank : {0U, 1U}) {
    const AdvisedJob advised = advised_rank(job, rank);
    EXPECT_EQ(advised.now(), 137us);
    EXPECT_EQ(step_with(advised.whole, std::vector<WorkGroup>(), 0), 137us);
    EXPECT_EQ(edited_by(advised, {}, {}).step_time(), 137us);
  }
}

// On rank 0 alone a step would take 121 us: it would wait for rank 1 as before.
TEST(JobGraph, CeilingsAreThoseOfAllRanksTogether) {
  const JobRanks job = two_ranks();
  const AdvisedJob advised = advised_rank(job, 0);
  EXPECT_EQ(ceiling_of(advised, "host").step_time, 70us);
  EXPECT_EQ(ceiling_of(advised, "host").bound, PathPart::kernels);
  EXPECT_EQ(ceiling_of(advised, "communication").step_time, 116us);
  EXPECT_EQ(ceiling_of(advised, "communication").bound, PathPart::host);
  const WorkGroup host = group_named(advised.whole.graph(), "host.work");
  const Scenario scenario =
      scenario_with({"scale:where.kind=host,factor=0.5", "scale:where.kind=launch,factor=0.5",
                     "scale:where.kind=sync,factor=0.5"});
  // Equals the prediction.
  EXPECT_EQ(step_with(advised.whole, host, 0.5), edited_by(advised, scenario, {}).step_time());
}

TEST(JobGraph, WorkIsThatOfTheAdvisedRank) {
  const JobRanks job = two_ranks();
  for (const std::size_t rank : {0U, 1U}) {
    const AdvisedJob advised = advised_rank(job, rank);
    const WorkGroup host = group_named(advised.whole.graph(), "host.work");
    EXPECT_EQ(work_of(advised.whole, host), rank == 0 ? 18us : 66us) << rank;
    const WorkGroup link = group_named(advised.whole.graph(), "link.bandwidth");
    EXPECT_EQ(work_of(advised.whole, link), 20us) << rank;
  }
}

TEST(RetimedReplay, FindsTheStepOfTheSlowestRank) {
  const JobRanks job = two_ranks();
  const AdvisedJob advised = advised_rank(job, 1);
  RetimedReplay retimed(advised.whole);
  for (const WorkGroup& group : all_groups(advised.whole.graph())) {
    if (!group.graded()) continue;
    for (const double factor : {1.0, 0.5, 0.1}) {
      EXPECT_EQ(retimed.step_time(retiming_of(advised.whole.graph(), group, factor)),
                step_with(advised.whole, group, factor))
          << group.name << " " << factor;
    }
  }
}

}  // namespace
}  // namespace foretrace
