#include "studies/allocate/assign.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

// Published with BFTrainer: images a second on ImageNet, by nodes.
const RateCurve kShuffleNet{{{1, 2831.0},
                             {2, 5259.0},
                             {4, 9988.0},
                             {8, 20379.2},
                             {16, 38895.3},
                             {32, 74125.1},
                             {64, 145081.5}}};
const RateCurve kAlexNet{{{1, 7115.3},
                          {2, 13071.7},
                          {4, 21066.1},
                          {8, 40484.9},
                          {16, 74002.9},
                          {32, 130762.0},
                          {64, 202135.4}}};

ElasticJob job_of(const RateCurve& rates, const std::string& name = "job") {
  ElasticJob job;
  job.name = name, job.rates = rates, job.up = 18, job.down = 12;
  return job;
}

bool has_glpk() {
  const ElasticJob job = job_of(kAlexNet);
  try {
    allocate_by_milp({{{&job}}, {kAlexNet}, 1});
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<Allocate> solvers() {
  return has_glpk() ? std::vector<Allocate>{allocate_by_knapsack, allocate_by_milp}
                    : std::vector<Allocate>{allocate_by_knapsack};
}

TEST(Allocate, SolvesTheUnitCases) {
  struct Case {
    std::int64_t first, second, nodes;
    double horizon;
    std::vector<std::int64_t> best;
    double value;
  };
  const ElasticJob shuffle = job_of(kShuffleNet), alex = job_of(kAlexNet);
  for (const Case& one :
       {Case{0, 0, 8, 120, {0, 8}, 4858188.0}, Case{4, 4, 8, 10, {4, 4}, 310541.0},
        Case{4, 4, 8, 120, {0, 8}, 4359142.2}, Case{4, 4, 12, 10, {4, 4}, 310541.0}}) {
    const AllocationProblem problem{{{&shuffle, one.first}, {&alex, one.second}},
                                    {kShuffleNet, kAlexNet},
                                    one.nodes,
                                    one.horizon};
    for (const Allocate solve : solvers()) {
      const NodeShares answer = solve(problem);
      EXPECT_EQ(answer.nodes, one.best);
      EXPECT_NEAR(answer.value, one.value, .05);
    }
  }
}

/// Tries all choices of numbers of nodes.
double best_of_all(const AllocationProblem& problem, std::size_t j, std::int64_t left) {
  if (j == problem.jobs.size()) return 0;
  const auto& [job, now, done] = problem.jobs[j];
  const RateCurve& curve = problem.curves[j];
  const double rate = now >= job->least ? curve.at(static_cast<double>(now)) : 0;
  double best = -1e300;
  for (std::int64_t n = 0; n <= std::min(left, job->most); ++n) {
    if (n > 0 && n < job->least) continue;
    const double stop = n > now ? job->up : n < now ? job->down : 0;
    best = std::max(best, problem.horizon * curve.at(static_cast<double>(n)) - stop * rate +
                              best_of_all(problem, j + 1, left - n));
  }
  return best;
}

TEST(Allocate, BothSolversFindTheBest) {
  std::mt19937 random(7);
  for (int run = 0; run < 40; ++run) {
    std::vector<ElasticJob> jobs;
    for (std::size_t j = 0; j < 1 + random() % 3; ++j) {
      RateCurve curve;  // Neither concave nor monotonic.
      for (const double nodes : {1., 3., 6., 9.})
        curve.points.emplace_back(nodes, static_cast<double>(random() % 1000));
      jobs.push_back(job_of(curve));
      jobs.back().least = 1 + static_cast<std::int64_t>(random() % 3);
      jobs.back().most = jobs.back().least + static_cast<std::int64_t>(random() % 9);
    }
    AllocationProblem problem;
    problem.nodes = 12, problem.horizon = static_cast<double>(1 + random() % 60);
    for (const ElasticJob& job : jobs) {
      problem.jobs.push_back({&job, static_cast<std::int64_t>(random() % 5)});
      problem.curves.push_back(job.rates);
    }
    const double best = best_of_all(problem, 0, problem.nodes);
    for (const Allocate solve : solvers()) EXPECT_NEAR(solve(problem).value, best, 1e-3) << run;
  }
}

TEST(Allocate, SolvesAThousandNodes) {
  std::mt19937 random(8);
  std::vector<ElasticJob> jobs;
  for (int j = 0; j < 30; ++j) jobs.push_back(job_of(j % 2 == 0 ? kShuffleNet : kAlexNet));
  AllocationProblem problem;
  problem.nodes = 1000, problem.horizon = 120;
  for (const ElasticJob& job : jobs) {
    problem.jobs.push_back({&job, static_cast<std::int64_t>(random() % 33)});
    problem.curves.push_back(job.rates);
  }
  const NodeShares exact = allocate_by_knapsack(problem);
  if (has_glpk()) {
    EXPECT_NEAR(allocate_by_milp(problem).value / exact.value, 1, 1e-9);
  }
}

TEST(Allocate, KnowsObjectives) {
  ElasticJob job = job_of(kAlexNet, "a");
  job.value = 2, job.samples = 1000, job.deadline = 10s;
  const JobState now{&job, 0, 500};
  EXPECT_DOUBLE_EQ(objective_curve(now, "speedup", 0ns).at(2), 13071.7 / 7115.3);
  EXPECT_DOUBLE_EQ(objective_curve(now, "price", 0ns).at(1), 2 * 7115.3);
  job.rates = {{{1, 20}, {2, 60}, {4, 80}}};
  // 500 samples in 10 s are 50 a second, which takes 1.75 nodes.
  const RateCurve capped = objective_curve(now, "deadline", 0ns);
  EXPECT_DOUBLE_EQ(capped.at(1), .4);
  EXPECT_DOUBLE_EQ(capped.at(1.75), 1);
  EXPECT_DOUBLE_EQ(capped.at(4), 1);
  job.rates = {{{1, 0}, {2, 60}}};
  EXPECT_THROW(objective_curve(now, "speedup", 0ns), Error);
}

TEST(Allocate, SharesEqually) {
  const ElasticJob job = job_of(kAlexNet);
  const AllocationProblem problem{{{&job}, {&job}, {&job}}, {kAlexNet, kAlexNet, kAlexNet}, 11};
  EXPECT_EQ(allocate_equally(problem).nodes, (std::vector<std::int64_t>{5, 3, 3}));
}

std::string refusal_of_log(NodeLog (*read)(const std::string&), const std::string& text) {
  const Folder folder;
  const std::string path = folder.write("log", text);
  try {
    read(path);
    return "";
  } catch (const Error& error) {
    return std::string(error.what()).substr(path.size() + 2);
  }
}

/// "0:+0+1 10:-0": seconds, and the nodes that join or leave.
std::string events_of(const NodeLog& log) {
  std::string text;
  for (const NodeEvent& event : log.events) {
    text += (text.empty() ? "" : " ") + std::to_string(event.time / 1s) + ":";
    for (const std::int32_t node : event.joined) text += "+" + std::to_string(node);
    for (const std::int32_t node : event.left) text += "-" + std::to_string(node);
  }
  return text;
}

TEST(NodeLogs, ReadsSlurm) {
  const Folder folder;
  const std::string heading = "JobID|State|Start|End|NodeList\n";
  const std::string log = heading +
                          "1|COMPLETED|2021-02-10T00:00:00|2021-02-10T00:01:00|n[01-02]\n"
                          "1.batch|COMPLETED|2021-02-10T00:00:00|2021-02-10T00:01:00|n01\n"
                          "2|CANCELLED|Unknown|Unknown|None assigned\n"
                          "3|RUNNING|2021-02-10T00:01:00|Unknown|n[02,5]\n"
                          "4|COMPLETED|2021-02-10T00:00:30|2021-02-10T00:00:40|m1\n";
  // n01, n02, n5, m1: jobs follow each other on n02 without a gap.
  EXPECT_EQ(events_of(read_sacct(folder.write("sacct", log))), "0:+2+3-0-1 30:-3 40:+3 60:+0-2");
  EXPECT_EQ(
      refusal_of_log(read_sacct, heading + "1|X|2021-02-10T00:00:00|2021-02-10T00:01:00|n1\n"
                                           "2|X|2021-02-10T00:00:59|2021-02-10T00:02:00|n[1-2]\n"),
      "lines 2 and 3 overlap: two jobs on one node");
  EXPECT_EQ(refusal_of_log(read_sacct, heading + "1|X|2021-02-10T00:00:00|Unknown|n[1\n"),
            "line 2: NodeList must close its bracket, got n[1");
  for (const char* wrong : {"2021-02-31T00:00:00", "2021-02--3T00:00:00", "9021-02-10T00:00:00",
                            "2021-02-10T24:00:00", "2021-02-10T00:-1:00", "2021-02-10 00:00:00",
                            "2021-02-10T00:00:00Z", "99999999999-01-01T00:00:00"}) {
    EXPECT_EQ(refusal_of_log(read_sacct, heading + "1|X|" + wrong + "|Unknown|n1\n"),
              std::string("line 2: Start must be a time from 1970 to 2200, such as "
                          "2021-02-10T20:21:15, or Unknown, got ") +
                  wrong);
  }
  const std::string job = heading + "1|X|2021-02-10T00:00:00|Unknown|";
  EXPECT_EQ(refusal_of_log(read_sacct, job + "n[-1]\n"),
            "line 2: NodeList must have numbers in brackets, got n[-1]");
  EXPECT_EQ(refusal_of_log(read_sacct, job + "n[0-9999999],m[0-9999999]\n"),
            "line 2: NodeList must have at most 10,000,000 nodes, got n[0-9999999],m[0-9999999]");
}

TEST(NodeLogs, ReadsSwf) {
  const Folder folder;
  const std::string log =
      "; MaxNodes: 4\n; MaxProcs: 8\n"
      "1 0 5 10 4 -1\n"   // Two nodes from 5 to 15.
      "2 7 0 3 1 -1\n"    // One from 7 to 10.
      "3 20 0 -1 8 -1\n"  // Cancelled.
      "4 15 0 5 8 -1\n";  // All nodes.
  EXPECT_EQ(events_of(read_swf(folder.write("log.swf", log))),
            "0:+2+3-0-1 2:-2 5:+2 10:-2-3 15:+0+1+2+3");
  EXPECT_EQ(refusal_of_log(read_swf, "; MaxNodes: 2\n1 0 0 10 2\n2 5 0 10 1\n"),
            "line 3 overlaps with line 2: it needs 1 nodes, 0 are free");
  EXPECT_EQ(refusal_of_log(read_swf, "1 0 0 10 2\n"),
            "must state the number of nodes in a line such as ; MaxNodes: 128");
  EXPECT_EQ(refusal_of_log(read_swf, "; MaxNodes: 2\n1 0 0 10 -2\n"),
            "line 2: must have no negative numbers but -1, got -2");
  EXPECT_EQ(refusal_of_log(read_swf, "; MaxNodes: 2\n1 8e9 0 8e9 2\n"),
            "line 2: must have times from 0 to 9,000,000,000 seconds, got 16000000000");
}

TEST(NodeLogs, ReadsEvents) {
  const Folder folder;
  EXPECT_EQ(events_of(read_node_events(folder.write("a", "time_s,joined,left\n0,a b,\n9.0,c,a\n"))),
            "0:+0+1 9:+2-0");
  EXPECT_EQ(refusal_of_log(read_node_events, "time_s,joined,left\n5,a,\n4,b,\n"),
            "line 3: must not be before the line above");
  EXPECT_EQ(refusal_of_log(read_node_events, "time_s,joined,left\n-5,a,\n"),
            "line 2: must have times from 0 to 9,000,000,000 seconds, got -5");
}

TEST(AllocationReplays, PaysForChanges) {
  ElasticJob job = job_of({{{1, 10}, {4, 40}}});
  job.up = 2, job.down = 3, job.most = 4;
  NodeLog log{.nodes = 4, .events = {}};
  log.events.push_back({.time = 0s, .joined = {0, 1}});
  log.events.push_back({.time = 100s, .joined = {2, 3}});  // Gains two: 2 s at 20 a second.
  log.events.push_back({.time = 200s, .left = {0}});       // Loses one: 3 s at 40 a second.
  log.events.push_back({.time = 300s});
  const AllocationReplay replay = replay_allocation({job}, log, {});
  EXPECT_DOUBLE_EQ(replay.rescaled, 40);
  EXPECT_DOUBLE_EQ(replay.preempted, 120);
  EXPECT_DOUBLE_EQ(replay.samples, 100 * 20 + 100 * 40 + 100 * 30 - 40 - 120);
  EXPECT_EQ(replay.events, 4U);
  EXPECT_EQ(replay.left, 1U);
  EXPECT_DOUBLE_EQ(replay.mean_nodes, 3);
}

TEST(AllocationReplays, AdmitsInOrderUntilAllAreDone) {
  ElasticJob job = job_of({{{1, 10}}});
  job.most = 1, job.samples = 50;
  ElasticJob later = job;
  later.arrival = 20s;
  NodeLog log{.nodes = 1, .events = {{.time = 0s, .joined = {0}}}};
  for (int i = 1; i < 20; ++i) log.events.push_back({.time = i * 5s});
  const AllocationReplay replay = replay_allocation({later, job, job}, log, {.at_once = 1});
  EXPECT_EQ(replay.done, 3U);
  EXPECT_EQ(replay.makespan, 25s);
}

}  // namespace
}  // namespace foretrace
