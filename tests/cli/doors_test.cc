// Each question gives the same JSON through every door: the command line, a program in C++ and an
// agent. A new question needs an example in support/questions.json; nothing else declares it.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fields/settings.h"
#include "cli/command_line.h"
#include "foretrace/question.h"
#include "support/against_schema.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// The question as someone at a shell asks it.
class CommandWriter final : public Fields {
 public:
  explicit CommandWriter(const Json& settings) : settings_(settings) {}

  void visit(const Setting& setting) override {
    const auto found = settings_.find(setting.name);
    if (found == settings_.end()) return;
    std::string option(setting.name);
    std::ranges::replace(option, '_', '-');
    for (const Json& value : found->is_array() ? *found : Json::array({*found})) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      const std::string quoted = " '" + text + "'";
      (setting.form.is_positional ? arguments : options) +=
          setting.form.is_positional ? quoted : " --" + option + quoted;
    }
  }

  std::string arguments, options;

 private:
  const Json& settings_;
};

std::string command_of(const std::string& name, const Json& settings) {
  const std::unique_ptr<Question> question = find_question(name)->make();
  CommandWriter writer(settings);
  question->describe(writer);
  std::string words = name;
  std::ranges::replace(words, '_', ' ');
  return words + writer.arguments + writer.options + " --" + std::string(question->form_setting()) +
         " json --quiet";
}

/// All examples, with the files that they name.
class Doors : public testing::Test {
 protected:
  Doors() {
    const std::string before =
        FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";
    foretrace_run("check " + before + " --bless --baseline '" + (folder_ / "baseline.json") + "'");
    foretrace_run("predict " + before + " --with loader:workers=4 --format json -o '" +
                  (folder_ / "prediction.json") + "'");
    folder_.write("program.txt", "malloc a 12MiB\nfree a\nmalloc b 4MiB\n");
    folder_.write("jobs.json",
                  R"({"jobs": [{"name": "a", "least": 1, "most": 8, "up": "18s", "down": "12s",
                      "samples": 1e8, "rates": {"1": 2831, "8": 20379}}]})");
    const std::string text = contents_of(FORETRACE_SOURCE_DIR "/tests/support/questions.json");
    examples_ = Json::parse(text);
    examples_.erase("$comment");
    for (Json& settings : examples_)
      for (Json& value : settings) value = with_whole_paths(value);
  }

  /// Agents have another current folder.
  Json with_whole_paths(const Json& value) const {
    Json whole = value;
    if (value.is_array()) {
      for (Json& one : whole) one = with_whole_paths(one);
      return whole;
    }
    if (!value.is_string()) return value;
    const auto text = value.get<std::string>();
    if (text.starts_with("FOLDER/")) return folder_ / text.substr(7);
    if (text.starts_with("traces/") || text.starts_with("scenarios/"))
      return FORETRACE_SOURCE_DIR "/" + text;
    return value;
  }

  Folder folder_;
  Json examples_;
};

TEST_F(Doors, EachQuestionHasAnExample) {
  for (const QuestionEntry& entry : questions())
    EXPECT_TRUE(examples_.contains(std::string(entry.name))) << entry.name;
  EXPECT_EQ(examples_.size(), questions().size());
}

TEST_F(Doors, GiveTheSameAnswerToTheByte) {
  std::string messages = R"({"jsonrpc": "2.0", "id": 0, "method": "tools/list"})"
                         "\n";
  int number = 0;
  std::vector<std::pair<std::string, std::string>> wanted;  // By question.
  for (const auto& [name, settings] : examples_.items()) {
    SCOPED_TRACE(name);
    const Outcome shell = foretrace_run(command_of(name, settings));
    EXPECT_LE(shell.exit_code, 1) << shell.err;
    EXPECT_TRUE(Json::accept(shell.out)) << shell.out << shell.err;
    const Asked asked = ask(name, settings, {.forms = {"json"}});
    std::ostringstream program;
    write_answer(*asked.question, *asked.answer, "json", program);
    EXPECT_EQ(program.str(), shell.out);
    EXPECT_EQ(asked.answer->exit_code(), shell.exit_code);
    wanted.emplace_back(name, shell.out);
    Json arguments = settings;
    arguments["form"] = "json";
    messages += Json{{"jsonrpc", "2.0"},
                     {"id", ++number},
                     {"method", "tools/call"},
                     {"params", {{"name", name}, {"arguments", arguments}}}}
                    .dump() +
                "\n";
  }
  const Outcome agent = foretrace_run("mcp --root / --structured", "", messages);
  std::istringstream lines(agent.out);
  std::string listed;
  ASSERT_TRUE(std::getline(lines, listed));
  std::map<std::string, Json> schemas;
  const Json tools = Json::parse(listed).at("result").at("tools");
  for (const Json& tool : tools) schemas[tool.at("name")] = tool.value("outputSchema", Json());
  for (const auto& [name, expected] : wanted) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const Json result = Json::parse(line).at("result");
    EXPECT_EQ(result["content"][0]["text"], expected);
    if (Json::parse(expected).is_object())
      EXPECT_EQ(result["structuredContent"], Json::parse(expected));
    EXPECT_EQ(against_schema(result["structuredContent"], schemas.at(name)),
              std::vector<std::string>{})
        << name;
  }
}

}  // namespace
}  // namespace foretrace
