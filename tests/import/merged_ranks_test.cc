#include "import/kineto/merged_ranks.h"

#include <gtest/gtest.h>

#include "foretrace/import.h"
#include "import/files.h"
#include "import/recorded.h"

namespace foretrace {
namespace {

/// A trace of one rank, whose processes have `mark` in front of their number.
std::string events_of(const std::string& mark, int start) {
  const auto pid = [&](const std::string& number) {
    return R"("pid": )" + (mark.empty() ? number : "\"" + mark + number + "\"");
  };
  const std::string time = std::to_string(start);
  return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", )" + pid("83") +
         R"(, "tid": 83, "ts": )" + time + R"(, "dur": 2, "args": {"correlation": 1}}, )" +
         R"({"ph": "X", "cat": "kernel", "name": "k", )" + pid("0") + R"(, "tid": 7, "ts": )" +
         time + R"(, "dur": 9, "args": {"correlation": 1}})";
}

std::string file_of(const std::string& events) { return R"({"traceEvents": [)" + events + "]}"; }

TEST(MergedRanks, AreReadAsIfTheyWereApart) {
  const Folder folder;
  const std::string path = folder.write(
      "all.json", file_of(events_of("[TP00] ", 5) + ", " + events_of("[TP01] ", 8) +
                          R"(, {"ph": "X", "cat": "kernel", "name": "x", "pid": 3, "ts": 0})"));
  const std::vector<Trace> traces = import_all(path);
  ASSERT_EQ(traces.size(), 2U);
  for (int rank = 0; rank < 2; ++rank) {
    const Trace& trace = traces[static_cast<std::size_t>(rank)];
    EXPECT_EQ(describe(trace), describe(read_text(file_of(events_of("", 5 + 3 * rank)))));
    EXPECT_EQ(trace.rank, rank);
    EXPECT_EQ(trace.world_size, 2);
    EXPECT_TRUE(trace.rank_is_known);
  }
  EXPECT_EQ(describe(import_trace(path + ":1")), describe(traces[1]));
  EXPECT_EQ(failure([&] { import_trace(path + ":2"); }),
            path + ":2: there is no such rank; the ranks are 0 to 1");
  EXPECT_EQ(
      failure([&] { import_trace(path); }),
      path + ": must contain one trace, but contains 2: \"" + path + ":0\", \"" + path + ":1\"");
}

TEST(MergedRanks, AreKnownByAMarkThatHasANumber) {
  EXPECT_EQ(rank_mark("[TP00] 83"), "[TP00] ");
  EXPECT_EQ(rank_mark("rank 12: 0"), "rank 12: ");
  for (const char* other : {"83", "stream 7", "GPU 0 Counters", "Spans", "", "rank0", "a-b"})
    EXPECT_EQ(rank_mark(other), "") << other;
}

TEST(MergedRanks, AreFoundWhereverTheyBegin) {
  std::string text = file_of(events_of("[r10] ", 1));
  for (int i = 0; i < 40'000; ++i) text += " \"pid\" : \"[r2] " + std::to_string(i) + "\"";
  TextSource source(text, 7001);
  EXPECT_EQ(rank_marks(source), (std::vector<std::string>{"[r2] ", "[r10] "}));
  EXPECT_FALSE(has_rank_marks(R"({"pid": 3, "tid": "[r1] 3"})"));
}

}  // namespace
}  // namespace foretrace
