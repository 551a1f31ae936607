#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/json_file.h"
#include "foretrace/error.h"
#include "foretrace/question/predict.h"
#include "scenario/asserts.h"
#include "scenario/plan.h"
#include "scenario/scenario_file.h"
#include "support/folder.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// The effective settings of a scenario given as text, or the message of the Error.
std::string parsed(const char* text) {
  try {
    return write_scenario(parse_scenario(parse_json_text(text))).dump();
  } catch (const Error& error) {
    return error.what();
  }
}

/// A folder with scenario files of its own.
class ScenarioFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, text);
  }

  /// The message of the Error without the folder.
  std::string message(const std::string& path) {
    try {
      read_scenario(path);
      return "no error";
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string prefix = folder_.path() + "/";
      for (std::size_t at; (at = text.find(prefix)) != std::string::npos;)
        text.erase(at, prefix.size());
      return text;
    }
  }

  Folder folder_;
};

TEST(Scenario, KeepsTransformsInOrderWithTheirSettings) {
  const Scenario scenario = parse_scenario(Json::parse(R"({
      "version": 1, "trace": "x.json.gz",
      "transforms": [{"use": "scale", "factor": 0.5, "where": {"name": "/a,b/"}},
                     {"use": "prefetch", "$comment": "why"},
                     {"use": "insert", "duration": "5us", "lane": "a,b"}],
      "reports": ["json"], "assert": [{"step_time": "<= 120ms", "speedup": ">= 1.2"}]})"));
  EXPECT_EQ(scenario.trace, "x.json.gz");
  EXPECT_EQ(scenario.uses,
            (std::vector<std::string>{"scale:factor=0.5,where.name=\"/a,b/\"", "prefetch",
                                      "insert:duration=5us,lane=\"a,b\""}));
  EXPECT_EQ(scenario.reports, std::vector<std::string>{"json"});
  EXPECT_EQ(scenario.asserts, (std::vector<std::string>{"speedup >= 1.2", "step_time <= 120ms"}));
}

TEST(Scenario, ItsUsesCanBeGivenOnTheCommandLine) {
  const Scenario scenario = parse_scenario(Json::parse(R"({"transforms": [
      {"use": "scale", "factor": 0.25, "by": "-2us", "where": {"name": "a,\"b", "layer": "2-3", "step": 4}},
      {"use": "loader", "cores": 3, "pin_memory": true, "first_touch": "1.5GB/s"}]})"));
  for (std::size_t i = 0; i < scenario.uses.size(); ++i) {
    EXPECT_EQ(write_json(*read_transform_text(scenario.uses[i])),
              write_json(*scenario.transforms[i]))
        << scenario.uses[i];
  }
}

TEST(Scenario, ReadsBackWhatItWrites) {
  const Json written =
      write_scenario(parse_scenario(Json::parse(R"({"machine": "a100", "trace": "t",
      "transforms": [{"use": "prefetch", "buffers": 3}], "assert": [{"peak_memory": "< 16GB"}]})")));
  EXPECT_EQ(written.at("transforms")[0].at("buffers"), 3);
  EXPECT_EQ(write_scenario(parse_scenario(written)), written);
}

TEST(Scenario, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"transforms": [{"use": "prefetch"}, {"use": "loader", "workers": -1}]})",
       "transforms[1]: workers: must be at least 0, got -1"},
      {R"({"transforms": [{"use": "prefetch", "bufers": 2}]})",
       "transforms[0]: there is no setting \"bufers\"; the settings are buffers, where (did you "
       "mean \"buffers\"?)"},
      {R"({"transforms": [{"use": "prefetsch"}]})",
       "transforms[0]: there is no transform \"prefetsch\" (did you mean \"prefetch\"?); "
       "`foretrace list transforms` "
       "shows all"},
      {R"({"transforms": [{"use": "insert", "duration": 5}]})",
       "transforms[0]: duration: must be a string with a unit, such as \"5us\", got 5"},
      {R"({"transforms": [{"use": "scale", "where": {"name": "/[/"}}]})",
       "transforms[0]: where: name: must be a regular expression, got /[/: a [ without its ]"},
      {R"({"transforms": ["amp"]})", "transforms[0]: must be an object such as {\"use\": \"amp\"}"},
      {R"({"transforms": {"use": "amp"}})", "transforms: must be a list"},
      {R"({"transfroms": []})",
       "there is no key \"transfroms\" in a scenario; the keys are assert, extends, machine, "
       "matrix, memory, reports, samples_per_step, sweep, tokens_per_step, trace, transforms, "
       "version (did you mean \"transforms\"?)"},
      {R"({"version": 2})", "version: must be 1, got 2"},
      {R"({"version": "1"})", "version: must be a whole number"},
      {R"({"trace": 5})", "trace: must be a string"},
      {R"({"samples_per_step": 0})", "samples_per_step: must be a number above 0, got 0"},
      {R"({"tokens_per_step": "8"})", "tokens_per_step: must be a number above 0, got \"8\""},
      {R"([])", "must be an object such as {\"version\": 1, \"transforms\": [{\"use\": \"amp\"}]}"},
      {R"({"assert": [{"step_tim": "<= 1ms"}]})",
       "assert[0]: there is no \"step_tim\" to assert; must be one of step_time, upper, lower, "
       "speedup, "
       "peak_memory, peak_reserved, out_of_memory, replay_error or a figure of a transform such as "
       "loader.disk_bytes (did you mean \"step_time\"?)"},
      {R"({"assert": [{"loder.miss_share": "<= 1"}]})",
       "assert[0]: there is no transform \"loder\" (did you mean \"loader\"?)"},
      {R"({"assert": [{"loader.disk_bytes": "<= 1GX"}]})",
       "assert[0]: loader.disk_bytes: must be a number such as 1.5 or 0.01, got \"1GX\""},
      {R"({"memory": {"limit": "16GB", "max_split_siz": "1MB"}})",
       "memory: there is no setting \"max_split_siz\"; the settings are expandable_segments, "
       "garbage_collection_threshold, limit, max_non_split_rounding, max_split_size, "
       "memory_fraction, roundup_power2_divisions (did you mean \"max_split_size\"?)"},
      {R"({"assert": [{"step_time": "120ms"}]})",
       "assert[0]: step_time: must be a comparison such as \"<= 120ms\", got \"120ms\""},
      {R"({"assert": [{"speedup": ">= 2x"}]})",
       "assert[0]: speedup: must be a number such as 1.5 or 0.01, got \"2x\""},
      {R"({"assert": [{"step_time": 120}]})",
       "assert[0]: step_time: must be a string such as \"<= 120ms\""},
      {R"({"extends": "base.json"})",
       "extends: must only be used in scenario files, because its path is relative to the file"},
      {R"({"sweep": {"transforms[0].buffers": [1, 2]}})",
       "sweep: there is no transforms[0]; the scenario has 0"},
      {R"({"transforms": [{"use": "prefetch"}], "sweep": {"transforms[0].buffers": [1, 0]}})",
       "sweep: transforms[0].buffers: [1]: buffers: must be at least 1, got 0"},
      {R"({"transforms": [{"use": "prefetch"}], "sweep": {"buffers": [1]}})",
       "sweep: must be a setting such as \"loader.workers\" or \"transforms[0].workers\", got "
       "\"buffers\""},
      {R"({"transforms": [{"use": "prefetch"}], "sweep": {"loader.workers": [1]}})",
       "sweep: no step uses \"loader\": add it with --with loader, or vary one of memory, "
       "prefetch"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(parsed(text), message) << text;
}

TEST(Scenario, SyntaxErrorsHaveALineAndAColumn) {
  EXPECT_EQ(parsed("{\n  \"version\": 1,\n  \"trace\" \"x\"\n}").substr(0, 22),
            "line 3, column 13: mus");
  EXPECT_EQ(parsed("").substr(0, 16), "line 1, column 1");
  EXPECT_EQ(parsed("{\"version\": 1, \"version\": 1}"), "\"version\" is given twice in one object");
  EXPECT_THROW(parse_json_text({"{}\0!", 4}), Error);
  EXPECT_EQ(parsed((std::string(100, '[') + std::string(100, ']')).c_str()),
            "must be at most 64 levels deep");
  EXPECT_EQ(parsed("{\"transforms\": [{\"use\": \"scale\", \"factor\": 1e999}]}"),
            "must have numbers that fit 64 bits");
}

TEST(Scenario, HasAtMostAThousandSteps) {
  std::string steps = R"({"use": "amp"})";
  for (int i = 1; i < 1000; ++i) steps += R"(, {"use": "amp"})";
  const auto scenario = [](const std::string& all) { return R"({"transforms": [)" + all + "]}"; };
  EXPECT_EQ(parsed(scenario(steps).c_str()).find("must"), std::string::npos);
  EXPECT_EQ(parsed(scenario(steps + R"(, {"use": "amp"})").c_str()),
            "transforms[1000]: must be at most 1000 steps in one question, because each is applied "
            "to everything that those before it added");
}

// The second would take the first one's workers for the recorded ones.
TEST(Scenario, StepsThatStartFromTheRecordingAreGivenOnce) {
  EXPECT_EQ(parsed(R"({"transforms": [{"use": "loader", "workers": 4}, {"use": "amp"},
                      {"use": "loader", "workers": 8}]})"),
            "transforms[2]: is given twice, but starts from what was recorded: give one of them");
  EXPECT_EQ(parsed(R"({"transforms": [{"use": "torch_compile"}, {"use": "torch_compile"}]})"),
            "transforms[1]: is given twice, but starts from what was recorded: give one of them");
}

TEST_F(ScenarioFiles, NameThePlaceOfAnError) {
  EXPECT_EQ(message(write("amp.json",
                          R"({"transforms": [{"use": "amp"}, {"use": "split", "slices": 0}]})")),
            "amp.json: transforms[1]: slices: must be at least 1, got 0");
  EXPECT_EQ(message(write("broken.json", "{")).substr(0, 31), "broken.json: line 1, column 2: ");
  EXPECT_EQ(message(folder_ / "missing.json"), "missing.json: cannot be read");
  EXPECT_EQ(message(folder_.path()), folder_.path() + ": cannot be read");
  EXPECT_EQ(message(write("sweep.json", R"({"transforms": [{"use": "prefetch"}],
                                            "sweep": {"transforms[0].buffers": [1, 2]}})")),
            "sweep.json: sweep: asks many questions; use `foretrace sweep`");
}

TEST_F(ScenarioFiles, ExtendOneAnother) {
  write("base/base.json",
        R"({"trace": "../t.json", "machine": "a100", "transforms": [{"use": "amp"}]})");
  const Scenario scenario = read_scenario(write(
      "more.json",
      R"({"extends": "base/base.json", "machine": "h100", "transforms": [{"use": "prefetch"}]})"));
  EXPECT_EQ(scenario.uses, (std::vector<std::string>{"amp", "prefetch"}));
  EXPECT_EQ(scenario.machine, "h100");
  EXPECT_EQ(scenario.trace, folder_ / "t.json");
}

TEST_F(ScenarioFiles, HavePathsRelativeToTheFileTheyAreWrittenIn) {
  write("a/base.json", R"({"trace": "t.json", "machine": "gpus/mine", "transforms": [
      {"use": "amp", "device": "gpu.json"}, {"use": "kernel_from", "trace": "../donor"}]})");
  write("b/more.json", R"({"extends": "../a/base.json", "transforms": [
      {"use": "faster_device", "to": "./gpu.json", "from": "v100"}]})");
  const Scenario scenario = read_scenario(write("c/d/top.json", R"({
      "extends": "../../b/more.json", "transforms": [
      {"use": "encode", "device": "/gpu.json"}, {"use": "move", "to": "gpu.json"}]})"));
  EXPECT_EQ(scenario.trace, folder_ / "a/t.json");
  EXPECT_EQ(scenario.machine, folder_ / "a/gpus/mine");
  EXPECT_EQ(scenario.uses,
            (std::vector<std::string>{"amp:device=" + (folder_ / "a/gpu.json"),
                                      "kernel_from:trace=" + (folder_ / "donor"),
                                      "faster_device:from=v100,to=" + (folder_ / "b/gpu.json"),
                                      "encode:device=/gpu.json", "move:to=gpu.json"}));
  EXPECT_EQ(scenario.transforms[1]->donor(), folder_ / "donor");
}

TEST_F(ScenarioFiles, HaveAlternativesAndValuesRelativeToTheFileTheyAreWrittenIn) {
  write("a/matrix.json", R"({"trace": "t.json", "transforms": [{"use": "amp"}], "matrix": {
      "machine": ["v100-sxm2-16gb", "gpu.json"],
      "then": [{"transforms": [{"use": "kernel_from", "trace": "donor"}]}]}})");
  const ScenarioFile file = read_extended(write("b/sweep.json", R"({"extends": "../a/matrix.json",
      "sweep": {"amp.device": ["gpu.json"], "kernel_from.trace": ["donor"], "trace": ["t.json"]}})"));
  const SweepPlan plan(file.json, file.sweep_folder);
  ASSERT_EQ(plan.size(), 2);
  EXPECT_EQ(plan.combinations()[0].names.front(), "v100-sxm2-16gb");
  EXPECT_EQ(plan.combinations()[1].names.front(), "gpu.json");
  const Json other = plan.scenario(1, plan.values(1));
  EXPECT_EQ(other["machine"], folder_ / "a/gpu.json");
  EXPECT_EQ(other["trace"], folder_ / "b/t.json");
  EXPECT_EQ(other["transforms"][0]["device"], folder_ / "b/gpu.json");
  EXPECT_EQ(plan.combinations()[1].scenario["transforms"][1]["trace"], folder_ / "a/donor");
  EXPECT_EQ(other["transforms"][1]["trace"], folder_ / "b/donor");
}

TEST_F(ScenarioFiles, ThatExtendEachOtherEnd) {
  const std::string path = write("a.json", R"({"extends": "a.json"})");
  EXPECT_EQ(message(path), "a.json: extends: must not lead back to a.json");
  write("bad.json", R"({"transforms": [{"use": "ampp"}]})");
  EXPECT_EQ(message(write("b.json", R"({"extends": "bad.json"})")).substr(0, 64),
            "b.json: extends: bad.json: transforms[0]: there is no transform ");
}

TEST(Scenario, AssertsKnowWhenTheyCannotDecide) {
  Scenario scenario;
  scenario.asserts = {"step_time <= 120ms", "step_time <= 90ms", "step_time < 105ms",
                      "speedup >= 1.2", "peak_memory <= 1GB"};
  Prediction prediction;
  prediction.baseline.step_time = 150ms;
  prediction.predicted.step_time = 100ms;
  prediction.lower = 95ms;
  prediction.upper = 110ms;
  prediction.speedup = 1.5;
  prediction.predicted_memory = {
      {.device = 0, .peak_allocated = Bytes{2'000'000'000}, .peak_reserved = {}}};
  const std::vector<CheckedAssert> failures = check_asserts(scenario, prediction);
  ASSERT_EQ(failures.size(), 3U);
  EXPECT_EQ(failures[0].text, "step_time <= 90ms");
  EXPECT_EQ(failures[0].verdict, Verdict::fails);
  EXPECT_EQ(failures[0].found, "100 ms (95 ms to 110 ms)");
  EXPECT_EQ(failures[1].text, "step_time < 105ms");
  EXPECT_EQ(failures[1].verdict, Verdict::undecided);
  EXPECT_EQ(failures[2].text, "peak_memory <= 1GB");
  EXPECT_EQ(failures[2].found, "2 GB");
}

TEST(Scenario, SchemaCoversEveryTransformAndSetting) {
  const Json schema = scenario_schema();
  const Json& steps = schema.at("properties").at("transforms").at("items").at("oneOf");
  ASSERT_EQ(steps.size(), transforms().size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(transforms()[i].name);
    const Json& properties = steps[i].at("properties");
    EXPECT_EQ(properties.at("use").at("const"), transforms()[i].name);
    const Json defaults = write_json(*transforms()[i].make());
    for (const auto& [key, value] : defaults.items()) EXPECT_TRUE(properties.contains(key)) << key;
    EXPECT_EQ(properties.size(), defaults.size() + 2);
    EXPECT_EQ(steps[i].at("additionalProperties"), false);
  }
}

TEST(Scenario, SchemaFileIsCurrent) {
  const std::filesystem::path path =
      std::filesystem::path(FORETRACE_SOURCE_DIR) / "scenarios/scenario.schema.json";
  const std::string current = scenario_schema().dump(2) + "\n";
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_TRUE(file.str() == current)
      << "run `foretrace schema scenario > scenarios/scenario.schema.json`";
}

TEST(Scenario, ExamplesAreRead) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(FORETRACE_SOURCE_DIR) / "scenarios")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json" || name == "scenario.schema.json") continue;
    if (name.starts_with("sweep_")) continue;  // A sweep asks many questions.
    SCOPED_TRACE(name);
    const Scenario scenario = read_scenario(entry.path().string());
    EXPECT_TRUE(!scenario.transforms.empty() || scenario.allocator.limit > Bytes{});
    EXPECT_TRUE(std::filesystem::exists(scenario.trace)) << scenario.trace;
    ++examples;
  }
  EXPECT_GE(examples, 3);
}

}  // namespace
}  // namespace foretrace
