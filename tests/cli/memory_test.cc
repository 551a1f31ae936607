#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command_line.h"

namespace foretrace {
namespace {

constexpr const char* kMemorySample = "traces/gpt-a100-gpu-bound.pt.trace.json.gz";

std::string memory(const std::string& arguments) {
  return std::string("memory ") + kMemorySample + " " + arguments;
}

TEST(MemoryCommand, ATraceWithoutMemoryEventsSaysHowToRecordThem) {
  const Outcome outcome = foretrace_run("memory traces/gpt-a100-launch-bound.pt.trace.json.gz");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("profile_memory=True"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("collect --memory"), std::string::npos) << outcome.err;
}

TEST(MemoryCommand, WrongUseIsToldByItsOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"--step 99",
       "foretrace: --step: there is no step 99; there are ProfilerStep#3 to "
       "ProfilerStep#8\n"},
      {"--device 3", "foretrace: --device: the trace has memory events of 0, not of 3\n"},
      {"--top 0", "foretrace: --top: must be at least 1, got 0\n"},
      {"--top -1", "foretrace: --top: must be at least 1, got -1\n"},
      {"--host-bandwidth 0GB/s", "foretrace: --host-bandwidth: must be more than 0, got '0GB/s'\n"},
  };
  for (const auto& [option, message] : cases) {
    const Outcome outcome = foretrace_run(memory(option));
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_EQ(outcome.err, message);
  }
}

TEST(MemoryCommand, WrongUseOfAProgramIsToldByItsOwnName) {
  EXPECT_EQ(foretrace_run("memory replay").err,
            "foretrace: memory replay: FILE is required; see `foretrace help memory replay`\n");
  EXPECT_EQ(foretrace_run("memory replay a b").err,
            "foretrace: memory replay: 'b' is an unexpected argument; see `foretrace help memory "
            "replay`\n");
  EXPECT_EQ(foretrace_run(std::string("memory replay ") + kMemorySample).err,
            std::string("foretrace: ") + kMemorySample +
                ": is not text; see `foretrace help memory replay` for the steps it may contain\n");
  EXPECT_EQ(foretrace_run("memory replay /dev/null").err,
            "foretrace: /dev/null: has no steps; see `foretrace help memory replay`\n");
  EXPECT_TRUE(foretrace_run("help memory replay").out.starts_with("Simulate a few lines"));
}

TEST(MemoryCommand, ALimitBelowWhatWasThereIsSaidSo) {
  EXPECT_NE(foretrace_run(memory("--memory-limit 1GB"))
                .out.find("\nwhat was in use before the recording takes 1.854 GB by itself\n"),
            std::string::npos);
}

TEST(MemoryCommand, ALimitDecidesTheExitCode) {
  const Outcome small = foretrace_run(memory("--memory-limit 8GB --format json"));
  EXPECT_EQ(small.exit_code, 1);
  const nlohmann::json refused = nlohmann::json::parse(small.out)["allocator"]["out_of_memory"];
  EXPECT_EQ(refused["op"], "aten::linear");
  EXPECT_EQ(refused["requested_bytes"], 2'097'152'000);
  EXPECT_EQ(foretrace_run(memory("--memory-limit 12GB")).exit_code, 0);
}

TEST(MemoryCommand, ThePageIsOneSmallFile) {
  const Folder folder;
  const std::string path = folder / "page.html";
  ASSERT_EQ(foretrace_run(memory("--html '" + path + "'")).exit_code, 0);
  EXPECT_TRUE(contents_of(path).starts_with("<!doctype html>"));
  EXPECT_LT(contents_of(path).size(), 6'000'000U);
}

}  // namespace
}  // namespace foretrace
