// Switches with fewer cables above them than below bound every closed form: a test for each
// command.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/question/collective.h"
#include "foretrace/question/generate.h"
#include "foretrace/question/plan.h"
#include "foretrace/question/scale.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// 16 hosts, four on each leaf switch.
class Oversubscription : public testing::Test {
 protected:
  std::string machine(int ratio) const {
    return folder_.write("machine" + std::to_string(ratio) + ".json",
                         R"({"extends": "dgx-h100", "hosts": 16, "network": {"use": "fat_tree",)"
                         R"( "rails": false, "oversubscription": )" +
                             std::to_string(ratio) + "}}");
  }

 private:
  Folder folder_;
};

TEST_F(Oversubscription, SlowsCollectives) {
  const auto us = [&](const std::string& name, int ratio, std::int64_t ranks) {
    CollectiveQuestion question;
    question.name = name, question.machine = machine(ratio), question.ranks = ranks;
    question.sizes = {Bytes{1'000'000'000}};
    return static_cast<double>(price_collective(question).rows.at(0).time.count()) / 1e3;
  };
  for (const char* name : {"all_reduce", "all_gather", "all_to_all"}) {
    EXPECT_GT(us(name, 4, 128), 2.5 * us(name, 1, 128)) << name;
    EXPECT_EQ(us(name, 4, 32), us(name, 1, 32)) << name << " below one switch";
  }
}

TEST_F(Oversubscription, SlowsGeneratedSteps) {
  const auto time = [&](int ratio, const char* layout) {
    return generate_step({.model = "llama3-8b", .machine = machine(ratio), .layout = layout})
        .step->time;
  };
  const char* wide = "dp=128,zero=1,recompute=full,global_batch=128,overlap=false";
  EXPECT_GT(time(4, wide), time(1, wide) + 300ms);
  const char* narrow = "dp=32,zero=1,recompute=full,global_batch=32,overlap=false";
  EXPECT_EQ(time(4, narrow), time(1, narrow));
}

TEST_F(Oversubscription, SlowsPlans) {
  const auto time = [&](int ratio) {
    PlanQuestion question{
        .model = "mpt-7b", .machine = machine(ratio), .fix = "zero=1,overlap=false"};
    question.gpus = {128}, question.global_batch = 128, question.top = 1;
    return plan(question).ranked.at(0).time;
  };
  EXPECT_GT(time(4), time(1));
}

TEST_F(Oversubscription, SlowsScaledJobs) {
  const auto time = [&](int ratio) {
    ScaleQuestion question;
    question.step_time = 100ms, question.gpus = {128}, question.machine = machine(ratio);
    question.schemes = {"data_parallel:gradient_bytes=4GB"};
    return scale(question).points.at(0).step_time;
  };
  EXPECT_GT(time(4), time(1) + 10ms);
}

}  // namespace
}  // namespace foretrace
