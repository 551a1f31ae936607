// Agents ask like people at a shell: conversations with the real program.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command_line.h"
#include "foretrace/question.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr const char* kLoaded = "resnet18-v100-loader0.pt.trace.json.gz";

Json request(int id, const std::string& method, const Json& params = Json::object()) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}};
}

Json tool_call(int id, const std::string& name, const Json& arguments) {
  return request(id, "tools/call", {{"name", name}, {"arguments", arguments}});
}

/// The answers of a server, started on the samples, to these lines.
std::vector<Json> answers_to(const std::vector<std::string>& lines,
                             const std::string& root = "traces") {
  std::string input;
  for (const std::string& line : lines) input += line + "\n";
  const Outcome outcome = foretrace_run("mcp --root '" + root + "'", "", input);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<Json> answers;
  std::istringstream out(outcome.out);
  for (std::string line; std::getline(out, line);) answers.push_back(Json::parse(line));
  return answers;
}

std::vector<Json> answers_to_messages(const std::vector<Json>& messages,
                                      const std::string& root = "traces") {
  std::vector<std::string> lines;
  for (const Json& message : messages) lines.push_back(message.dump());
  return answers_to(lines, root);
}

std::string text_of(const Json& answer) {
  return answer.at("result").at("content").at(0).at("text").get<std::string>();
}

TEST(Mcp, AnswersTenQuestionsInARow) {
  const std::vector<Json> answers = answers_to_messages({
      request(1, "initialize", {{"protocolVersion", "2024-11-05"}}),
      {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}},
      request(2, "tools/list"),
      tool_call(3, "list_transforms", Json::object()),
      tool_call(4, "list_transforms", {{"name", "loader"}}),
      tool_call(5, "doctor", {{"trace", kLoaded}}),
      tool_call(6, "advise", {{"trace", kLoaded}}),
      tool_call(7, "predict", {{"trace", kLoaded}, {"with", {"loader:workers=4"}}}),
      tool_call(8, "predict",
                {{"trace", kLoaded}, {"with", {"loader"}}, {"vary", "loader.workers=0..8"}}),
      tool_call(9, "diff",
                {{"before", kLoaded}, {"after", "resnet18-v100-loader4.pt.trace.json.gz"}}),
      tool_call(10, "predict", {{"trace", kLoaded}, {"explain", true}}),
      tool_call(11, "memory", {{"trace", "gpt-a100-gpu-bound.pt.trace.json.gz"}}),
      request(12, "ping"),
  });
  ASSERT_EQ(answers.size(), 12U);  // The notification gets no answer.
  EXPECT_EQ(answers[0]["result"]["protocolVersion"], "2024-11-05");
  for (std::size_t i = 2; i < 11; ++i) {
    EXPECT_EQ(answers[i]["id"], i + 1);
    EXPECT_FALSE(answers[i]["result"]["isError"].get<bool>()) << answers[i];
    EXPECT_LT(text_of(answers[i]).size(), 8'200U);
  }
  EXPECT_NE(text_of(answers[4]).find("85.35 ms"), std::string::npos) << text_of(answers[4]);
  EXPECT_NE(text_of(answers[5]).find("loader:workers=2"), std::string::npos);
  for (const char* part : {"85.35 ms -> 48.91 ms", "between ", "Based on", "Assumes"})
    EXPECT_NE(text_of(answers[6]).find(part), std::string::npos) << part;
}

TEST(Mcp, SchemasAreThoseOfTheSettings) {
  const Json listed = answers_to_messages({request(1, "tools/list")}).at(0)["result"]["tools"];
  ASSERT_EQ(listed.size(), questions().size() + 2);
  for (const Json& tool : listed) {
    EXPECT_EQ(tool["inputSchema"]["type"], "object") << tool;
    EXPECT_FALSE(tool["description"].get<std::string>().empty());
  }
  const auto diff =
      std::ranges::find_if(listed, [](const Json& tool) { return tool["name"] == "diff"; });
  EXPECT_EQ((*diff)["inputSchema"]["required"], Json({"before", "after"}));
  const auto predict =
      std::ranges::find_if(listed, [](const Json& tool) { return tool["name"] == "predict"; });
  EXPECT_EQ((*predict)["inputSchema"]["properties"]["with"]["type"], "array");
}

TEST(Mcp, ListsTheRecordingsAndCutsWhatIsLong) {
  const std::vector<Json> answers = answers_to_messages({
      tool_call(1, "list_traces", Json::object()),
      tool_call(2, "advise", {{"trace", kLoaded}, {"limit", 400}}),
      tool_call(3, "advise", {{"trace", kLoaded}, {"limit", 20}}),
      tool_call(4, "predict", {{"trace", kLoaded}, {"with", "amp"}}),
  });
  const std::string listed = text_of(answers[0]);
  EXPECT_NE(listed.find(kLoaded), std::string::npos) << listed;
  EXPECT_NE(listed.find("gpt-a100-two-ranks/rank0"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("README"), std::string::npos) << listed;
  EXPECT_LT(text_of(answers[1]).size(), 460U);
  EXPECT_TRUE(text_of(answers[1]).ends_with(" more lines; a larger limit shows them)\n"));
  EXPECT_EQ(text_of(answers[2]), "limit: must be a whole number, at least 200");
  EXPECT_EQ(text_of(answers[3]), R"(with: must be a list of strings; one is enough: ["amp"])");
}

TEST(Mcp, OpensNothingOutsideOfItsRoot) {
  const Folder folder;
  const std::string inside = folder / "inside";
  std::filesystem::create_directories(inside + "/ranks");
  folder.write("secret.json", "{\"traceEvents\": []}");
  std::filesystem::create_symlink("../secret.json", inside + "/link.json");
  std::filesystem::create_symlink("../../secret.json", inside + "/ranks/rank0.json");
  std::vector<Json> messages;
  for (const std::string& path :
       {std::string("../secret.json"), std::string("link.json"), std::string("ranks"),
        folder / "secret.json", std::string("/etc/hostname"), std::string("..")})
    messages.push_back(tool_call(1, "info", {{"trace", path}}));
  messages.push_back(
      tool_call(1, "predict", {{"trace", "none.json"}, {"machine", "../secret.json"}}));
  messages.push_back(tool_call(
      1, "predict", {{"trace", "none.json"}, {"with", {"replace:donor=../secret.json"}}}));
  messages.push_back(tool_call(1, "diff", {{"before", "none.json"}, {"after", "../secret.json"}}));
  // Paths that are quoted, escaped, in JSON, in a list, or behind many other steps.
  std::string many;
  for (int i = 0; i < 20; ++i) many += "amp,";
  for (const std::string& step : {std::string(R"(kernel_from:trace="../secret.json")"),
                                  std::string(R"(x",kernel_from:trace="\u002e\u002e/secret.json")"),
                                  many + "kernel_from:trace=../secret.json",
                                  std::string("kernel_from:trace=[../secret.json]")})
    messages.push_back(tool_call(1, "predict", {{"trace", "none.json"}, {"with", {step}}}));
  for (const std::string& scenario :
       {std::string(R"({"version": 1, "trace": "../secret.json"})"),
        std::string(R"({"version": 1, "trace": "\u002e./secret.json"})"),
        std::string(
            R"({"version": 1, "transforms": [{"use": "replace", "donor": "..\/secret.json"}]})")}) {
    messages.push_back(tool_call(1, "predict", {{"trace", "none.json"}, {"scenario", scenario}}));
    messages.push_back(tool_call(1, "sweep", {{"scenario", scenario}}));
  }
  for (const Json& answer : answers_to_messages(messages, inside)) {
    EXPECT_TRUE(answer["result"]["isError"].get<bool>());
    EXPECT_NE(text_of(answer).find(": must be in "), std::string::npos) << answer;
  }
}

TEST(Mcp, WritesNothing) {
  const Folder folder;
  const std::string inside = folder / "inside";
  std::filesystem::create_directories(inside);
  std::filesystem::copy(std::string(FORETRACE_SOURCE_DIR "/traces/") + kLoaded,
                        inside + "/job.json.gz");
  const std::vector<Json> answers = answers_to_messages(
      {tool_call(1, "predict", {{"trace", "job.json.gz"}, {"perfetto", "timeline.json"}}),
       tool_call(2, "validate", {{"write_ledger", "ledger.json"}}),
       tool_call(3, "check",
                 {{"trace", "job.json.gz"}, {"baseline", "baseline.json"}, {"bless", true}})},
      inside);
  for (const Json& answer : answers)
    EXPECT_NE(text_of(answer).find("no file may be written here"), std::string::npos) << answer;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(inside), {}), 1);
}

TEST(Mcp, AnswersInJsonAreStructured) {
  const std::vector<Json> answers =
      answers_to_messages({tool_call(1, "predict", {{"trace", kLoaded}, {"form", "json"}}),
                           tool_call(2, "validate", {{"trace", {kLoaded}}, {"form", "json"}}),
                           tool_call(3, "info", {{"trace", kLoaded}, {"form", "jsn"}})});
  const Json& structured = answers[0]["result"]["structuredContent"];
  EXPECT_EQ(structured["schema"], "foretrace.prediction/1");
  EXPECT_EQ(structured, Json::parse(text_of(answers[0])));
  EXPECT_EQ(answers[1]["result"]["structuredContent"]["answers"].size(), 1U);
  const std::string refusal = text_of(answers[2]);
  EXPECT_TRUE(refusal.starts_with("form: must be one of text, ")) << refusal;
  EXPECT_TRUE(refusal.ends_with(", got \"jsn\"")) << refusal;
}

TEST(Mcp, TakesNoTextForAnOption) {
  const Folder folder;
  for (const Json& answer :
       answers_to_messages({tool_call(1, "info", {{"trace", "--output=" + (folder / "x")}}),
                            tool_call(2, "list_transforms", {{"name", "--man"}}),
                            tool_call(2, "list_transforms", {{"name", "--help"}}),
                            tool_call(2, "info", {{"trace", "--help"}}),
                            tool_call(2, "diff", {{"before", "--help"}, {"after", kLoaded}}),
                            tool_call(3, "memory", {{"trace", "replay"}})}))
    EXPECT_TRUE(answer["result"]["isError"].get<bool>()) << answer;
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST(Mcp, GoesOnAfterMessagesThatItCannotRead) {
  const std::vector<Json> answers = answers_to({
      "not json",
      R"({"jsonrpc": "2.0", "id": 1)",
      "[]",
      R"({"jsonrpc": "1.0", "id": 1, "method": "ping"})",
      R"({"jsonrpc": "2.0", "id": {}, "method": "ping"})",
      R"({"jsonrpc": "2.0", "id": 1, "method": 7})",
      R"({"jsonrpc": "2.0", "id": 1, "method": "no/such"})",
      R"({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []})",
      R"({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "format_disk"}})",
      "\xff\xfe",
      std::string(3 << 20, '['),
      R"({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": )" + std::string(100'000, '[') +
          std::string(100'000, ']') + "}",
      "",
      R"({"jsonrpc": "2.0", "id": "last", "method": "ping"})",
  });
  const std::vector<int> codes = {-32700, -32700, -32600, -32600, -32600, -32600,
                                  -32601, -32602, -32602, -32700, -32600, -32700};
  ASSERT_EQ(answers.size(), codes.size() + 1);
  for (std::size_t i = 0; i < codes.size(); ++i)
    EXPECT_EQ(answers[i]["error"]["code"], codes[i]) << i << ": " << answers[i];
  EXPECT_EQ(answers.back()["id"], "last");
  EXPECT_TRUE(answers.back().contains("result"));
}

TEST(Mcp, SaysWhichSettingIsWrong) {
  const std::vector<Json> answers = answers_to_messages({
      tool_call(1, "advise", {{"trase", "x"}}),
      tool_call(2, "advise", Json::object()),
      tool_call(3, "predict", {{"trace", kLoaded}, {"with", {"loder"}}}),
  });
  EXPECT_NE(text_of(answers[0]).find("did you mean \"trace\""), std::string::npos);
  EXPECT_EQ(text_of(answers[1]), "trace: must be given");
  EXPECT_NE(text_of(answers[2]).find("loader"), std::string::npos) << answers[2];
}

/// Every command with a brief form, with the arguments it needs.
TEST(Brief, IsAtMostFiveLines) {
  const std::string trace = std::string("traces/") + kLoaded;
  const std::string gpt = "traces/gpt-a100-gpu-bound.pt.trace.json.gz";
  for (const std::string& command :
       {"predict " + trace + " --with amp", "advise " + trace, "info " + gpt, "doctor " + trace,
        "memory " + gpt, "input " + trace, "diff " + trace + " " + trace, "validate " + trace,
        std::string("plan show 1f1b"), std::string("collective auto --machine dgx-h100 --ranks 8"),
        std::string("generate gpt3-175b --machine dgx-a100 --layout "
                    "tp=8,pp=8,dp=16,global_batch=3072,recompute=full")}) {
    const Outcome outcome = foretrace_run(command + " --brief");
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
    const auto lines = std::count(outcome.out.begin(), outcome.out.end(), '\n');
    EXPECT_GE(lines, 1) << command;
    EXPECT_LE(lines, 5) << command;
    EXPECT_EQ(foretrace_run(command + " --format brief").out, outcome.out) << command;
  }
  EXPECT_NE(foretrace_run("info " + gpt + " --brief").out.find("150 ms"), std::string::npos);
}

TEST(Brief, IsOfText) {
  const Outcome outcome =
      foretrace_run(std::string("advise traces/") + kLoaded + " --brief --format json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "foretrace: --brief: goes with --format text, got json\n");
}

}  // namespace
}  // namespace foretrace
