// convert and anonymize, run as a user runs them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command_line.h"

namespace foretrace {
namespace {

constexpr const char* kConvertedSample = "traces/gpt-a100-launch-bound.pt.trace.json.gz";

nlohmann::json numbers(const std::string& trace) {
  const Outcome outcome = foretrace_run("predict '" + trace + "' --with amp --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  nlohmann::json json = nlohmann::json::parse(outcome.out, nullptr, false);
  json.erase("inputs");
  json["scenario"].erase("trace");
  return json;
}

TEST(Convert, EveryFormThatHoldsAllRecordsGivesTheSameAnswer) {
  const Folder folder;
  for (const char* ending : {".json", ".json.gz", ".ftrace", ".pftrace", ".pftrace.gz"}) {
    const std::string path = folder / ("sample" + std::string(ending));
    const Outcome outcome =
        foretrace_run(std::string("convert ") + kConvertedSample + " '" + path + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(numbers(path), numbers(kConvertedSample)) << ending;
  }
}

TEST(Convert, AnUnknownEndingIsAnErrorThatNamesThoseThereAre) {
  const Outcome outcome = foretrace_run("convert a b.txt");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("convert: OUT must end in one of .ftrace (ftrace)"), outcome.err.npos);
  EXPECT_NE(outcome.err.find("got 'b.txt'"), outcome.err.npos);
  const Outcome to = foretrace_run("convert a b --to kinto");
  EXPECT_EQ(to.exit_code, 2);
  EXPECT_NE(to.err.find("(did you mean \"kineto\"?)"), to.err.npos) << to.err;
}

TEST(Convert, AFolderOfRanksBecomesAFolderOfRanks) {
  const Folder folder;
  for (const char* rank : {"0", "1"}) {
    const Outcome outcome = foretrace_run(std::string("convert ") + kConvertedSample + " '" +
                                          (folder / "in/rank") + rank + ".ftrace'");
    EXPECT_NE(outcome.exit_code, 0);  // The folder is missing, and writing a file makes none.
  }
  const std::string one =
      R"({"distributedInfo": {"rank": RANK, "world_size": 2}, "traceEvents": [{"ph": "X",
          "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})";
  std::filesystem::create_directories(folder / "in");
  for (const char* rank : {"0", "1"}) {
    std::string text = one;
    text.replace(text.find("RANK"), 4, rank);
    folder.write("in/x" + std::string(rank) + ".json", text);
  }
  const std::string in = "'" + (folder / "in") + "' '";
  EXPECT_EQ(foretrace_run("convert " + in + (folder / "x.ftrace") + "'").exit_code, 2);
  ASSERT_EQ(foretrace_run("convert " + in + (folder / "out") + "' --to kineto").exit_code, 0);
  ASSERT_EQ(foretrace_run("convert " + in + (folder / "job-*.ftrace") + "'").exit_code, 0);
  for (const char* made :
       {"out/rank0.json.gz", "out/rank1.json.gz", "job-0.ftrace", "job-1.ftrace"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / made)) << made;
  }
}

TEST(Convert, StepsAndWindowsCutAPart) {
  const Folder folder;
  const std::string out = "'" + (folder / "part.json") + "'";
  const std::string convert = std::string("convert ") + kConvertedSample + " " + out;
  ASSERT_EQ(foretrace_run(convert + " --steps 4-6").exit_code, 0);
  const nlohmann::json json = numbers(folder / "part.json");
  // Three of six steps are left. With so few steps, the last one counts.
  EXPECT_EQ(json["measured"]["steps"].size(), 3U);
  EXPECT_EQ(json["measured"]["steps"].size() + 2,
            numbers(kConvertedSample)["measured"]["steps"].size());
  EXPECT_EQ(foretrace_run(convert + " --window 1ms-9ms").exit_code, 0);
  for (const char* wrong : {"--steps 99", "--steps x", "--steps 5-4", "--window 5", "--window 1-2",
                            "--window 9s-10s", "--window 2ms-1ms", "--steps 3 --window 1ms-2ms"}) {
    EXPECT_EQ(foretrace_run(convert + " " + wrong).exit_code, 2) << wrong;
  }
}

TEST(Convert, DoesNotOverwriteWhatItReads) {
  const Folder folder;
  ASSERT_EQ(
      foretrace_run(std::string("convert ") + kConvertedSample + " '" + (folder / "x.json") + "'")
          .exit_code,
      0);
  const std::string twice = "'" + (folder / "x.json") + "'";
  EXPECT_EQ(foretrace_run("convert " + twice + " " + twice).exit_code, 2);
  EXPECT_EQ(foretrace_run("info " + twice).exit_code, 0);
}

TEST(Anonymize, SaysWhatItKept) {
  const Folder folder;
  const Outcome outcome = foretrace_run(std::string("anonymize ") + kConvertedSample + " '" +
                                        (folder / "x.json.gz") + "' --list-kept");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("replaced ")) << outcome.err;
  EXPECT_NE(outcome.out.find("cudaLaunchKernel\n"), outcome.out.npos);
  EXPECT_EQ(numbers(folder / "x.json.gz")["predicted"]["step_time_ns"],
            numbers(kConvertedSample)["predicted"]["step_time_ns"]);
}

}  // namespace
}  // namespace foretrace
