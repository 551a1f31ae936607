// Where recordings are written, and what is printed when there is none.

#include <gtest/gtest.h>

#include <filesystem>

#include "collect/recording.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// The line that collect prints; the program's own output is not compared here.
std::string said(const Recording& recording) { return recording.ended.err; }

bool says(const Recording& recording, const std::string& text) {
  return said(recording).find(text) != std::string::npos;
}

TEST(Output, APathWithASlashIsAFolderOfRanks) {
  for (const char* folder : {"runs/", "a.b/"}) {
    SCOPED_TRACE(folder);
    const Recording recording({.program = {"steps", "3"}, .output = folder});
    EXPECT_EQ(recording.ended.status, 0) << said(recording);
    EXPECT_TRUE(fs::exists(recording.path(std::string(folder) + "rank0.ftrace")));
    EXPECT_FALSE(fs::exists(recording.path(std::string(folder) + ".ftrace")));
  }
}

TEST(Output, SeveralRanksInAFolderThatWasAskedFor) {
  const Recording recording({.program = {"ranks", "2"}, .output = "runs/"});
  EXPECT_TRUE(fs::exists(recording.path("runs/rank0.ftrace"))) << said(recording);
  EXPECT_TRUE(fs::exists(recording.path("runs/rank1.ftrace"))) << said(recording);
  EXPECT_FALSE(says(recording, "also contains")) << said(recording);
}

TEST(Output, RanksOfALargerJobBeforeAreNotTakenForThisOnes) {
  const Recording larger({.program = {"ranks", "3"}});
  const std::vector<std::string> again = {
      FORETRACE_BINARY, "collect", "-o", larger.path("out.ftrace"), "--", PLAYED_APP, "ranks", "2"};
  const Ended ended = run_program(again, {{"LD_LIBRARY_PATH", STANDIN_13}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.err.find("out also contains rank2.ftrace, which this recording"),
            std::string::npos)
      << ended.err;
}

TEST(Output, IsRefusedBeforeTheProgramRuns) {
  const Recording pickle({.program = {"steps", "3"}, .output = "out.pickle"});
  EXPECT_EQ(pickle.ended.status, 2);
  EXPECT_TRUE(says(pickle, "would contain only memory events: add --memory")) << said(pickle);
  EXPECT_EQ(pickle.ended.out, "") << "the program ran";
}

TEST(Output, AnUnknownEndingIsRefusedWithThoseThatAreAllowed) {
  for (const char* output : {"out.csv", "out.ftrace.bak", "run.v2"}) {
    SCOPED_TRACE(output);
    const Recording recording({.program = {"steps", "3"}, .output = output});
    EXPECT_EQ(recording.ended.status, 2);
    for (const char* allowed : {".ftrace", ".json.gz", ".sqlite", ".pftrace", "end in /"})
      EXPECT_TRUE(says(recording, allowed)) << said(recording);
    EXPECT_EQ(recording.ended.out, "") << "the program ran";
    EXPECT_TRUE(fs::is_empty(recording.path(""))) << "something was left behind";
  }
}

TEST(Output, APathWithoutAnEndingGetsOurs) {
  const Recording recording({.program = {"steps", "3"}, .output = "out"});
  EXPECT_EQ(recording.ended.status, 0) << said(recording);
  EXPECT_TRUE(fs::exists(recording.path("out.ftrace")));
}

TEST(Output, AFileWhereTheFolderShouldBeIsRefused) {
  const Recording first({.program = {"steps", "3"}});
  const Ended ended = run_program({FORETRACE_BINARY, "collect", "-o", first.path("out.ftrace/"),
                                   "--", PLAYED_APP, "steps", "3"},
                                  {{"LD_LIBRARY_PATH", STANDIN_13}});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("must be a folder"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out, "") << "the program ran";
}

TEST(Output, SaysWhyAPartOfTheProgramHadNothing) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--steps", "20-30"}, "no range of the program marked a step of --steps 20-30"},
      {{"--start-after", "1h"}, "the program ended before --start-after 1h"},
      {{"--profiler-api"}, "the program never called cudaProfilerStart"},
      {{"--record", "memory"}, "the program used CUDA, but did nothing that was to be recorded"},
  };
  for (const auto& [options, reason] : cases) {
    SCOPED_TRACE(reason);
    const Recording recording({.options = options, .program = {"steps", "3"}});
    EXPECT_EQ(recording.ended.status, 3);
    EXPECT_TRUE(says(recording, std::string("nothing was recorded: ") + reason)) << said(recording);
  }
}

TEST(Output, SaysThatThereIsNoMemoryHistory) {
  const Recording recording({.options = {"--memory-history"}, .program = {"steps", "3"}});
  EXPECT_EQ(recording.ended.status, 0);
  EXPECT_TRUE(says(recording, "no memory history was written")) << said(recording);
}

TEST(Output, AMemoryHistoryThatCannotBeMovedStaysWhereItIs) {
  const Recording other({.program = {"steps", "3"}});
  fs::create_directory(other.path("snapshot-1.pickle"));
  const std::string program =
      "echo history > \"$FORETRACE_SNAPSHOT-1.pickle\"; exec " PLAYED_APP " steps 3";
  const Ended ended = run_program({FORETRACE_BINARY, "collect", "--memory-history", "-o",
                                   other.path("more.ftrace"), "--", "sh", "-c", program},
                                  {{"LD_LIBRARY_PATH", STANDIN_13}});
  const std::string words = "the memory history stays in ";
  const std::size_t at = ended.err.find(words);
  ASSERT_NE(at, std::string::npos) << ended.err;
  const std::size_t start = at + words.size();
  const std::string kept = ended.err.substr(start, ended.err.find('\n', start) - start);
  EXPECT_TRUE(fs::is_regular_file(kept)) << kept;
}

}  // namespace
}  // namespace foretrace
