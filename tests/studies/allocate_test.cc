#include "studies/allocate/allocate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "foretrace/error.h"
#include "import/pickled_table.h"
#include "studies/allocate/assign.h"
#include "support/folder.h"

namespace foretrace {
namespace {

constexpr const char* kTwoJobs =
    R"({"jobs": [{"name": "a", "up": "18s", "down": "12s", "rates": {"1": 10, "8": 80}},
                 {"name": "b", "up": "18s", "down": "12s", "nodes": 2, "rates": {"1": 5, "8": 20}}]})";

std::string refusal_of_allocate(const AllocateQuestion& question) {
  try {
    allocate(question);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Allocate, DecidesOnce) {
  const Folder folder;
  AllocateQuestion question{.jobs = folder.write("jobs.json", kTwoJobs)};
  question.nodes = 8;
  const AllocationReport report = allocate(question);
  ASSERT_EQ(report.jobs.size(), 2U);
  EXPECT_EQ(report.jobs[0].nodes, 8);
  EXPECT_EQ(report.jobs[1].before, 2);
  EXPECT_EQ(report.jobs[1].nodes, 0);
  EXPECT_DOUBLE_EQ(report.value, 120 * 80 - 12 * (5 + 15. / 7));
  std::ostringstream csv;
  write_csv(report, csv);
  EXPECT_EQ(csv.str(), "job,nodes,nodes_before,samples_per_second\na,8,0,80\nb,0,2,0\n");
}

TEST(Allocate, FromALogOfSlurmToAnAnswer) {
  const Folder folder;
  AllocateQuestion question{.jobs = folder.write("jobs.json", kTwoJobs)};
  question.sacct = folder.write("sacct",
                                "JobID|Start|End|NodeList\n"
                                "1|2021-02-10T00:00:00|2021-02-10T01:00:00|n[1-4]\n"
                                "2|2021-02-10T01:30:00|2021-02-10T02:00:00|n[1-2]\n");
  const AllocationReport report = allocate(question);
  ASSERT_TRUE(report.replay);
  EXPECT_EQ(report.replay->makespan, 2h);
  EXPECT_DOUBLE_EQ(report.replay->mean_nodes, (4 * .5 + 2 * .5) / 2);
  EXPECT_GT(report.replay->samples, 0);
  EXPECT_EQ(to_json(report)["replay"]["jobs_left"], 2);
}

TEST(Allocate, ReadsTheLogOfBfTrainer) {
  const Folder folder;
  const NodeLog log = read_node_events(folder.write("log.pkl", pickled::node_table()));
  const NodeLog same = read_node_events(
      folder.write("log.csv", "time_s,joined,left\n0,c05n06,\n30,,c05n06\n60,n2,\n"));
  EXPECT_EQ(log.nodes, same.nodes);
  ASSERT_EQ(log.events.size(), same.events.size());
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    EXPECT_EQ(log.events[i].time, same.events[i].time);
    EXPECT_EQ(log.events[i].joined, same.events[i].joined);
    EXPECT_EQ(log.events[i].left, same.events[i].left);
  }
  const std::string path = folder.write("odd.pkl", pickled::node_table({1, 0, 2, 0, 0, 1}));
  EXPECT_EQ(refusal_of_allocate({.jobs = folder.write("jobs.json", kTwoJobs), .events = path}),
            path + ": row 2: c05n06 must be 0 (busy) or 1 (idle), got 2");
}

TEST(Allocate, TakesRatesFromPredictions) {
  const Folder folder;
  AllocateQuestion question;
  question.jobs =
      folder.write("jobs.json", R"({"jobs": [{"name": "mpt", "most": 2, "model": "mpt-1b",
      "machine": "dgx-h100", "global_batch": 64}]})");
  question.events = folder.write("events.csv", "time_s,joined,left\n0,a b,\n100,,b\n200,,a\n");
  const AllocationReport report = allocate(question);
  ASSERT_TRUE(report.slow && report.fast);
  EXPECT_LT(report.slow->samples, report.replay->samples);
  EXPECT_LT(report.replay->samples, report.fast->samples);
}

TEST(Allocate, FormulasAreObjectives) {
  const Folder folder;
  AllocateQuestion question{.jobs = folder.write("jobs.json", kTwoJobs)};
  question.nodes = 8;
  for (const char* solver : {"knapsack", "milp"}) {
    question.solver = solver;
    for (const auto& [word, formula] :
         {std::pair{"throughput", "rate"}, {"speedup", "rate / one"}}) {
      question.objective = word;
      const AllocationReport named = allocate(question);
      question.objective = formula;
      const AllocationReport written = allocate(question);
      EXPECT_NEAR(written.value, named.value, 1e-6 * named.value) << formula;
    }
  }
  question.objective = "thruput";
  EXPECT_EQ(refusal_of_allocate(question),
            "--objective: must be one of throughput, speedup, deadline, price, or a formula, got "
            "thruput");
  question.objective = "rate * speed";
  EXPECT_EQ(refusal_of_allocate(question),
            "--objective: \"rate * speed\": must be a formula of nodes, rate, one, value, samples, "
            "done, left, but cannot be read at \"speed\"");
  question.objective = "1 / (nodes - 2)";
  EXPECT_EQ(refusal_of_allocate(question),
            "objective of job a: \"1 / (nodes - 2)\": must be a finite number");
}

TEST(Allocate, SaysWhatIsMissing) {
  const Folder folder;
  AllocateQuestion question{.jobs = folder.write("jobs.json", kTwoJobs)};
  EXPECT_EQ(refusal_of_allocate(question),
            "plan allocate: must have --nodes, or one log: --events, --sacct or --swf");
  question.nodes = 1;
  EXPECT_EQ(refusal_of_allocate(question),
            "--nodes: must be at least what the jobs have now, 2, got 1");
  question.nodes = 8, question.objective = "deadline";
  EXPECT_EQ(refusal_of_allocate(question),
            "objective: deadline needs a deadline and samples for job a");
  question.objective = "speedup";
  question.jobs = folder.write("slow.json", R"({"jobs": [{"rates": {"1": 0, "2": 1}}]})");
  EXPECT_EQ(refusal_of_allocate(question),
            "objective: speedup must be bounded; job job processes no samples on one node");
  question.jobs = folder.write("both.json", R"({"jobs": [{"name": "a"}]})");
  EXPECT_EQ(refusal_of_allocate(question),
            question.jobs +
                ": jobs[0]: must have either rates or a model with machine and global_batch, not "
                "both");
  question.jobs = folder.write("unknown.json", R"({"jobs": [{"rates": {"1": 2}, "leest": 2}]})");
  EXPECT_NE(refusal_of_allocate(question).find("did you mean \"least\""), std::string::npos);
}

}  // namespace
}  // namespace foretrace
