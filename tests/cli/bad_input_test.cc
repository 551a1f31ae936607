// Whatever the input, the program answers, or prints one line and exits with the code for whose
// fault it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "cli/command_line.h"

namespace foretrace {
namespace {

constexpr auto kSample = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";

class BadInput : public testing::Test {
 protected:
  /// One line on stderr, nothing on stdout.
  void expect_refused(const std::string& arguments, int exit_code, const std::string& says) {
    const Outcome outcome = foretrace_run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err << "does not say: " << says;
  }

  void expect_unusable(const std::string& name, const std::string& text, const std::string& says) {
    SCOPED_TRACE(name);
    expect_refused("predict '" + folder_.write(name, text) + "'", 3, says);
  }

  /// Expects an answer with a note about the bad part.
  Outcome expect_answer(const std::string& name, const std::string& text, const std::string& note) {
    const Outcome outcome = foretrace_run("predict '" + folder_.write(name, text) + "'");
    EXPECT_EQ(outcome.exit_code, 0) << name << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << name;
    EXPECT_NE(outcome.out.find(note), std::string::npos) << name << ": " << outcome.out;
    return outcome;
  }

  void expect_wrong_scenario(const std::string& text, const std::string& says) {
    const std::string path = folder_.write("scenario.json", text);
    expect_refused(std::string("predict '") + kSample + "' --scenario '" + path + "'", 2, says);
  }

  Folder folder_;
};

std::string events(const std::string& list) { return "{\"traceEvents\": [" + list + "]}"; }

std::string kernel(const std::string& start, const std::string& duration) {
  return R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )" + start +
         ", \"dur\": " + duration + R"(, "args": {"device": 0, "stream": 7, "correlation": 1}})";
}

TEST_F(BadInput, AFileThatIsNotThere) { expect_refused("predict nowhere.json", 3, "nowhere.json"); }

TEST_F(BadInput, ANameOfTwentyKilobytesIsShortened) {
  for (const std::string& command :
       {"predict " + std::string(20'000, 'x'), "predict --" + std::string(20'000, 'x'),
        "predict nowhere.json --with " + std::string(20'000, 'x')}) {
    const Outcome outcome = foretrace_run(command);
    EXPECT_TRUE(outcome.exit_code == 2 || outcome.exit_code == 3) << outcome.exit_code;
    EXPECT_LT(outcome.err.size(), 2'000U) << command.substr(0, 40);
    EXPECT_NE(outcome.err.find("xxx..."), std::string::npos) << command.substr(0, 40);
  }
}

TEST_F(BadInput, ARecordingMakesNoFolderButItsOwn) {
  expect_refused("collect -o /dev/null -- true", 2,
                 "must be a file or a folder, got the device '/dev/null'");
  const std::string missing = folder_ / "a/b";
  expect_refused("collect -o " + missing + "/run.ftrace -- true", 2, "No such file or directory");
  expect_refused("collect -o " + missing + "/ -- true", 2, "No such file or directory");
  expect_refused("collect -o " + (folder_ / "runs/") + " -- true", 3, "CUDA");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(BadInput, AnEmptyFile) {
  expect_unusable("empty.json", "", "empty");
  expect_unusable("empty.json.gz", "", "empty");
}

TEST_F(BadInput, BinaryNoise) {
  std::mt19937 random(1);
  std::string noise(5000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const char* name :
       {"noise", "noise.json", "noise.json.gz", "noise.ftrace", "noise.json.zst"}) {
    expect_unusable(name, noise, "must be");
  }
}

TEST_F(BadInput, AFolderWithoutTraces) {
  folder_.write("README.txt", "nothing here");
  expect_refused("predict '" + (folder_ / "") + "'", 3, "must contain a trace");
}

TEST_F(BadInput, ACompressedFileThatIsCutOff) {
  const std::string whole = contents_of(kSample);
  const std::string path = folder_.write("cut.json.gz", whole.substr(0, whole.size() / 2));
  const Outcome outcome = foretrace_run("predict '" + path + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("warning: "), std::string::npos) << outcome.out;
  expect_refused("predict '" + path + "' --strict", 3, "--strict");
}

TEST_F(BadInput, ACompressedFileThatIsCutOffAtOnce) {
  expect_unusable("stub.json.gz", contents_of(kSample).substr(0, 40), "stub.json.gz");
}

TEST_F(BadInput, JsonThatIsCutOff) {
  const std::string whole = events(kernel("0", "10") + "," + kernel("20", "10"));
  expect_answer("cut.json", whole.substr(0, whole.size() - 20), "warning: ");
  expect_unusable("stub.json", whole.substr(0, 10), "stub.json");
}

TEST_F(BadInput, DeeplyNestedJson) {
  std::string nested = "1";
  for (int i = 0; i < 30; ++i) nested = "{\"a\": [" + nested + "]}";
  expect_unusable("nested.json", nested, "nested.json");
  expect_answer(
      "args.json",
      events(
          kernel("0", "10") +
          R"(, {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"x": )" +
          nested + "}}"),
      "How much");
  std::string deep(100000, '[');
  expect_unusable("deep.json", deep, "deep.json");
}

TEST_F(BadInput, TimesThatCannotBe) {
  for (const char* duration : {"-5", "NaN", "Infinity", "\"x\"", "null", "1e300"}) {
    SCOPED_TRACE(duration);
    expect_answer("odd.json", events(kernel("0", "10") + "," + kernel("20", duration)), "Notes");
  }
}

TEST_F(BadInput, NothingButTimesThatCannotBe) {
  expect_unusable("negative.json", events(kernel("0", "-5")), "negative.json");
  expect_unusable("instant.json", events(kernel("0", "0")), "nothing");
}

TEST_F(BadInput, IdsThatOccurTwice) {
  const std::string call =
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0, "dur": 2, "args": {"correlation": 1}})";
  expect_answer("twice.json",
                events(call + "," + call + "," + kernel("5", "10") + "," + kernel("15", "10")),
                "How much");
}

TEST_F(BadInput, ATraceWithoutEvents) { expect_unusable("none.json", events(""), "none.json"); }

TEST_F(BadInput, ScenariosThatAreWrong) {
  expect_wrong_scenario("", "scenario.json");
  expect_wrong_scenario("{", "scenario.json");
  expect_wrong_scenario("[]", "must be an object");
  expect_wrong_scenario(R"({"version": 2})", "version: must be 1, got 2");
  expect_wrong_scenario(R"({"transform": []})", "did you mean \"transforms\"?");
  expect_wrong_scenario(R"({"transforms": [{"use": "anp"}]})", "transforms[0]");
  expect_wrong_scenario(R"({"transforms": [{"use": "prefetch", "depth": 2}]})",
                        "there is no setting \"depth\"");
  expect_wrong_scenario(R"({"transforms": [{"use": "prefetch", "buffers": 0}]})",
                        "transforms[0]: buffers: must be at least 1, got 0");
  expect_wrong_scenario(R"({"transforms": [{"use": "set_duration", "duration": 5}]})",
                        "transforms[0]: duration");
  expect_wrong_scenario(R"({"transforms": [{"use": "set_duration", "duration": "5 parsecs"}]})",
                        "parsecs");
  expect_wrong_scenario(R"({"assert": [{"step_time": "<= 120"}]})", "assert[0]");
}

// A copy that its caller waits for cannot wait for a later launch of that caller.
TEST_F(BadInput, DependenciesInACycle) {
  expect_wrong_scenario(
      R"({"transforms": [{"use": "add_dependency", "match": "step",
                          "from": {"kind": "launch"}, "to": {"kind": "copy_in"}}]})",
      "cycle");
}

}  // namespace
}  // namespace foretrace
