// The output of one shard of a sweep for its launcher.

#include <gtest/gtest.h>

#include "cli/command_line.h"

namespace foretrace {
namespace {

TEST(SweepShard, LeavesItToTheWholeThatNoAnswerWillDo) {
  const Folder folder;
  const std::string never = folder.write(
      "never.json", R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": [1, 2]},
                        "assert": [{"step_time": "<= 1ns"}]})");
  const std::string ask = "sweep " + never +
                          " --trace traces/gpt-a100-gpu-bound.pt.trace.json.gz --no-memory --quiet "
                          "--output " +
                          (folder / "a.jsonl");
  EXPECT_EQ(foretrace_run(ask).exit_code, 1);
  // mpirun ends all ranks as soon as one of them fails.
  EXPECT_EQ(foretrace_run(ask + " --shard 1/2").exit_code, 0);
}

}  // namespace
}  // namespace foretrace
