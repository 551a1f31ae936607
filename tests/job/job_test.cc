// The files that a job is read from, and the choice of the rank that a question is answered for.

#include "job/job.h"

#include <gtest/gtest.h>

#include <sstream>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "import/files.h"
#include "job/chosen_rank.h"

namespace foretrace {
namespace {

std::string trace_of_rank(int rank) {
  return R"({"schemaVersion": 1, "distributedInfo": {"rank": )" + std::to_string(rank) +
         R"(, "world_size": 2}, "traceEvents": [)"
         R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": )" +
         std::to_string(10 * (rank + 1)) + R"(, "args": {"device": 0, "stream": 7}}]})";
}

/// "rank0.json.gz kineto", a line for each input, with paths relative to the folder.
std::string inputs_of(const std::vector<InputFile>& inputs, const std::string& folder) {
  std::ostringstream out;
  for (const InputFile& input : inputs) {
    EXPECT_EQ(input.sha256, sha256_of_file(input.path)) << input.path;
    out << '\n' << input.path.substr(folder.size() + 1) << ' ' << input.format;
  }
  return out.str();
}

std::string inputs_of(const std::string& path, const std::string& folder) {
  const std::string found = inputs_of(read_job(path).inputs(), folder);
  EXPECT_EQ(inputs_of(predict(Job(path), {}).inputs, folder), found);
  return found;
}

TEST(Job, ListsTheTracesInTheFoldersOfAFolder) {
  const Folder folder;
  folder.write("README.md", "Recorded on two machines.");
  folder.write("r0/rank0.json.gz", gzip(trace_of_rank(0)));
  folder.write("r1/rank1.json.gz", gzip(trace_of_rank(1)));
  EXPECT_EQ(inputs_of(folder.path(), folder.path()), R"(
r0/rank0.json.gz kineto
r1/rank1.json.gz kineto)");
}

TEST(Job, ListsNoFileThatIsNoTrace) {
  const Folder folder;
  folder.write("rank0.json.gz", gzip(trace_of_rank(0)));
  folder.write("log.txt", "step 0 took 12 ms");
  folder.write("model.ckpt", std::string(100'000, '\1'));
  EXPECT_EQ(inputs_of(folder.path(), folder.path()), "\nrank0.json.gz kineto");
}

TEST(Job, ListsAnArchiveOnce) {
  const Folder folder;
  const std::string archive =
      folder.write("job.tar.gz",
                   gzip(tar({{"rank0.json", trace_of_rank(0)}, {"rank1.json", trace_of_rank(1)}})));
  EXPECT_EQ(inputs_of(archive, folder.path()), "\njob.tar.gz kineto");
  EXPECT_EQ(inputs_of(archive + ":rank1.json", folder.path()), "\njob.tar.gz kineto");
}

TEST(Job, DropsTracesUnlessTheyAreAskedFor) {
  const Folder folder;
  folder.write("rank1.json", trace_of_rank(1));
  folder.write("rank0.json", trace_of_rank(0));
  const JobRanks job = read_job(folder.path());
  ASSERT_EQ(job.ranks.size(), 2U);
  for (std::int32_t i = 0; i < 2; ++i) {
    const Rank& rank = job.ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.number, i);
    EXPECT_FALSE(rank.trace.has_value());
    EXPECT_GT(rank.inference.graph.task_count(), 0U);
    EXPECT_EQ(job.place(rank), folder.path() + ": rank " + std::to_string(i));
  }
  const JobRanks kept = read_job(folder.path(), {.keep_traces = true});
  ASSERT_TRUE(kept.ranks[1].trace.has_value());
  EXPECT_EQ(kept.ranks[1].trace->devices.size(), 1U);
}

TEST(Job, SaysWhichRankHasNothingThatTakesTime) {
  const Folder folder;
  folder.write("rank0.json", trace_of_rank(0));
  folder.write("rank1.json", R"({"schemaVersion": 1,
      "distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [
      {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "s": "t",
       "ts": 5, "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512}}]})");
  try {
    read_job(folder.path());
    ADD_FAILURE();
  } catch (const TraceError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(folder.path() + ": rank 1: "))
        << error.what();
  }
  const JobRanks job = read_job(folder.path(), {.keep_refused = true});
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].refused, "");
  EXPECT_NE(job.ranks[1].refused, "");
}

TEST(ChosenRank, IsTheFirstOfEqualOnes) {
  SlowestRank slowest;
  EXPECT_TRUE(slowest.consider(0, 0ns));
  EXPECT_TRUE(slowest.consider(1, 5ns));
  EXPECT_FALSE(slowest.consider(2, 5ns));
  EXPECT_FALSE(slowest.consider(3, 4ns));
  EXPECT_EQ(slowest.rank(), 1U);
  EXPECT_EQ(slowest.most(), 5ns);
}

TEST(ChosenRank, ThatIsFullestIsFirstTheOneThatDoesNotFit) {
  MemoryPeak fits{.device = 0, .peak_allocated = Bytes{90}, .peak_reserved = Bytes{100}};
  MemoryPeak refused{.device = 0, .peak_allocated = Bytes{10}, .peak_reserved = Bytes{20}};
  refused.out_of_memory = Refusal{};
  FullestRank fullest;
  fullest.consider(0, need_of({fits}));
  fits.peak_allocated = Bytes{95};
  EXPECT_TRUE(fullest.consider(1, need_of({fits})));
  EXPECT_TRUE(fullest.consider(2, need_of({refused})));
  EXPECT_FALSE(fullest.consider(3, need_of({})));
  EXPECT_EQ(fullest.rank(), 2U);
}

TEST(ChosenRank, IsAStragglerOnlyIfTheOthersWait) {
  EXPECT_FALSE(straggler_among({}).has_value());
  EXPECT_FALSE(straggler_among({{0, 100ns, 100ns}}).has_value());
  EXPECT_FALSE(straggler_among({{0, 100ns, 60ns}, {1, 100ns, 62ns}}).has_value());
  const auto found = straggler_among({{0, 100ns, 60ns}, {1, 100ns, 100ns}, {2, 100ns, 60ns}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 1U);
  EXPECT_EQ(found->others_work, 60ns);
  EXPECT_EQ(found->others_wait, 40ns);
}

}  // namespace
}  // namespace foretrace
