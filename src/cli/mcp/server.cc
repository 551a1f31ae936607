#include "cli/mcp/server.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/shown.h"
#include "base/wording.h"
#include "cli/options/run.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/names.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

// The tools that agents can call. Each tool is a class that describes its settings once, for the
// JSON Schema and for reading arguments, and that returns the command lines that answer the call.

/// The words of a command. Texts from an agent come after "--", or after the "=" of an option, so
/// that none of them is read as an option.
using CommandLine = std::vector<std::string>;

class Tool : public Described {
 public:
  virtual std::vector<CommandLine> command_lines() const = 0;
  /// The settings that must be given.
  virtual std::vector<std::string> required() const { return {}; }
};

struct ToolEntry {
  std::string_view name, summary;
  std::unique_ptr<Tool> (*make)();
};

constexpr std::string_view kTraceHelp =
    "Path of a trace, or of a folder with the traces of all ranks of one job";

constexpr std::string_view kStepsHelp =
    "What to change: a list of transforms with their settings, such as \"loader:workers=4\"; see "
    "list_transforms";

CommandLine command_line(std::string_view name, const CommandLine& options,
                         const std::vector<std::string>& files) {
  // Agents read files; which programs run is for their user to decide.
  CommandLine line = {std::string(name), "--quiet", "--no-run"};
  line.insert(line.end(), options.begin(), options.end());
  line.emplace_back("--");
  line.insert(line.end(), files.begin(), files.end());
  return line;
}

/// A tool about one trace.
class TraceTool : public Tool {
 public:
  void describe(Fields& fields) override { fields.text("trace", trace_, kTraceHelp); }
  std::vector<std::string> required() const override { return {"trace"}; }

 protected:
  CommandLine command(std::string_view name, const CommandLine& options = {}) const {
    return command_line(name, options, {trace_});
  }

  std::string trace_;
};

class StepsTool : public TraceTool {
 public:
  void describe(Fields& fields) override {
    TraceTool::describe(fields);
    fields.texts("steps", steps_, kStepsHelp);
    fields.name_or_path("machine", machine_, "Another device to predict for, such as h100-sxm");
  }

 protected:
  CommandLine predict(CommandLine options = {}) const {
    for (const std::string& step : steps_) options.push_back("--with=" + step);
    if (!machine_.empty()) options.push_back("--machine=" + machine_);
    return command("predict", options);
  }

  std::vector<std::string> steps_;
  std::string machine_;
};

class ListTransforms final : public Tool {
 public:
  void describe(Fields& fields) override {
    fields.text("name", name_, "Explain this transform with all its settings; empty: list all");
  }
  std::vector<CommandLine> command_lines() const override {
    if (name_.empty()) return {{"list", "transforms"}};
    return {{"help", "--", name_}};
  }

 private:
  std::string name_;
};

class OpenJob final : public TraceTool {
 public:
  std::vector<CommandLine> command_lines() const override {
    return {command("predict", {"--brief"}), command("doctor")};
  }
};

class Predict final : public StepsTool {
 public:
  void describe(Fields& fields) override {
    StepsTool::describe(fields);
    fields.text("memory_limit", memory_limit_, "Device memory to fit into, such as 16GB");
  }
  std::vector<CommandLine> command_lines() const override {
    if (memory_limit_.empty()) return {predict()};
    return {predict({"--memory-limit=" + memory_limit_})};
  }

 private:
  std::string memory_limit_;
};

class VarySetting final : public StepsTool {
 public:
  void describe(Fields& fields) override {
    StepsTool::describe(fields);
    fields.text("setting", setting_,
                "The setting to vary and its values, such as loader.workers=0..16 or "
                "amp.matmul=2,3");
    fields.text("until", until_, "Find the last value for which this holds: step_time <= 50ms");
  }
  std::vector<std::string> required() const override { return {"trace", "setting"}; }
  std::vector<CommandLine> command_lines() const override {
    CommandLine options = {"--vary=" + setting_};
    if (!until_.empty()) options.push_back("--until=" + until_);
    return {predict(options)};
  }

 private:
  std::string setting_, until_;
};

class ExplainStep final : public StepsTool {
 public:
  std::vector<CommandLine> command_lines() const override { return {predict({"--explain"})}; }
};

class Advise final : public TraceTool {
 public:
  void describe(Fields& fields) override {
    TraceTool::describe(fields);
    fields.flag("all", all_, "Also show ceilings, and what is not advised and why");
  }
  std::vector<CommandLine> command_lines() const override {
    if (!all_) return {command("advise")};
    return {command("advise", {"--all"})};
  }

 private:
  bool all_ = false;
};

class DiffJobs final : public Tool {
 public:
  void describe(Fields& fields) override {
    fields.text("before", before_, kTraceHelp);
    fields.text("after", after_, "A later recording of the same job");
  }
  std::vector<std::string> required() const override { return {"before", "after"}; }
  std::vector<CommandLine> command_lines() const override {
    return {command_line("diff", {}, {before_, after_})};
  }

 private:
  std::string before_, after_;
};

class JobMemory final : public TraceTool {
 public:
  std::vector<CommandLine> command_lines() const override { return {command("memory")}; }
};

template <class ToolType>
std::unique_ptr<Tool> make_tool() {
  return std::make_unique<ToolType>();
}

const std::vector<ToolEntry>& tools() {
  static const std::vector<ToolEntry> all = {
      {"list_transforms", "The changes that can be predicted; one of them with its settings",
       &make_tool<ListTransforms>},
      {"open_job", "Step time of a recorded job, how well it replays, and what its trace lacks",
       &make_tool<OpenJob>},
      {"predict", "Step time after changes, with an interval, its basis and its assumptions",
       &make_tool<Predict>},
      {"advise", "What limits a job, which changes would help, and how sure that is",
       &make_tool<Advise>},
      {"diff", "What changed between two recordings of a job, and the cost of each change",
       &make_tool<DiffJobs>},
      {"vary", "Step times for several values of one setting", &make_tool<VarySetting>},
      {"explain_step",
       "What the critical path of a step works on and waits for, as recorded or "
       "after changes",
       &make_tool<ExplainStep>},
      {"memory", "What device memory is used for at its peak", &make_tool<JobMemory>},
  };
  return all;
}

using Json = nlohmann::json;

/// Supported revisions of the protocol, newest first.
constexpr std::array<std::string_view, 2> kRevisions = {"2025-06-18", "2024-11-05"};
constexpr std::size_t kLongestMessage = 1 << 20;  ///< Bytes.
constexpr std::size_t kLongestAnswer = 8'000;     ///< Bytes of text; longer answers are cut.

/// Error codes of JSON-RPC.
enum RpcCode : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
};

struct RpcError {
  RpcCode code;
  std::string message;
};

/// Reads the next line. Of a line that is too long, only the first kLongestMessage + 1 bytes are
/// kept. Returns false at the end of the input.
bool next_message(std::istream& in, std::string& line) {
  line.clear();
  char letter = 0;
  bool any = false;
  while (in.get(letter)) {
    any = true;
    if (letter == '\n') return true;
    if (line.size() <= kLongestMessage) line += letter;
  }
  return any;
}

/// Returns the text, cut after a whole line if it is longer than an agent should have to read.
std::string shortened_answer(const std::string& text) {
  if (text.size() <= kLongestAnswer) return text;
  const std::size_t end = text.rfind('\n', kLongestAnswer) + 1;
  const auto hidden_lines =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  return fmt::format("{}({} more lines)\n", text.substr(0, end), hidden_lines);
}

Json listed_tools() {
  Json list = Json::array();
  for (const ToolEntry& entry : tools()) {
    const auto tool = entry.make();
    Json schema = json_schema(*tool);
    if (const auto required = tool->required(); !required.empty()) schema["required"] = required;
    list.push_back({{"name", entry.name},
                    {"description", entry.summary},
                    {"inputSchema", std::move(schema)},
                    {"annotations", {{"readOnlyHint", true}, {"openWorldHint", false}}}});
  }
  return list;
}

class Server {
 public:
  explicit Server(std::string root) : root_(std::move(root)) {}

  /// Answers one message. Returns nullopt for a notification or a response, which need no answer.
  std::optional<Json> answer(const std::string& line) const {
    Json id;
    try {
      if (line.size() > kLongestMessage)
        throw RpcError{kInvalidRequest, "a message must not be longer than 1 MiB"};
      const Json message = try_parse_json<Json>(line);
      if (message.is_discarded()) {
        throw RpcError{kParseError,
                       nests_too_deeply(line)
                           ? fmt::format("a message must be at most {} levels deep", kMaxNesting)
                           : "the message is not JSON"};
      }
      if (!message.is_object() || message.value("jsonrpc", Json()) != "2.0")
        throw RpcError{kInvalidRequest, "a message must be an object with \"jsonrpc\": \"2.0\""};
      id = message.value("id", Json());
      if (!id.is_null() && !id.is_string() && !id.is_number())
        throw RpcError{kInvalidRequest, "id: must be a string or a number"};
      const Json method = message.value("method", Json());
      if (!method.is_string()) {
        if (message.contains("result") || message.contains("error")) return std::nullopt;
        throw RpcError{kInvalidRequest, "method: must be given"};
      }
      if (!message.contains("id")) return std::nullopt;
      return Json{{"jsonrpc", "2.0"},
                  {"id", id},
                  {"result", result_of(method, message.value("params", Json::object()))}};
    } catch (const RpcError& error) {
      return Json{{"jsonrpc", "2.0"},
                  {"id", id.is_structured() ? Json() : id},
                  {"error", {{"code", error.code}, {"message", error.message}}}};
    }
  }

 private:
  Json result_of(const std::string& method, const Json& params) const {
    if (!params.is_object()) throw RpcError{kInvalidParams, "params: must be an object"};
    if (method == "initialize") return initialize_result(params);
    if (method == "ping") return Json::object();
    if (method == "tools/list") return Json{{"tools", listed_tools()}};
    if (method == "tools/call") return call(params);
    throw RpcError{kMethodNotFound, fmt::format("there is no method '{}'", method)};
  }

  Json initialize_result(const Json& params) const {
    const Json asked = params.value("protocolVersion", Json());
    const bool is_known =
        asked.is_string() &&
        std::ranges::find(kRevisions, asked.get<std::string>()) != kRevisions.end();
    return {
        {"protocolVersion", is_known ? asked : Json(kRevisions.front())},
        {"capabilities", {{"tools", Json::object()}}},
        {"serverInfo", {{"name", "foretrace"}, {"version", kVersion}}},
        {"instructions",
         fmt::format("Foretrace predicts from a recorded trace how long a training step would take "
                     "after a change. Begin with open_job, then advise; predict a change before "
                     "you make it. Paths are relative to {}; files outside are not opened.",
                     root_)}};
  }

  Json call(const Json& params) const {
    const Json name = params.value("name", Json());
    const auto found =
        std::ranges::find_if(tools(), [&](const ToolEntry& entry) { return name == entry.name; });
    if (found == tools().end()) {
      std::vector<std::string_view> names;
      for (const ToolEntry& entry : tools()) names.push_back(entry.name);
      throw RpcError{kInvalidParams, fmt::format("name: must be one of {}, got {}", joined(names),
                                                 json_line(name))};
    }
    const auto tool = found->make();
    const Json arguments = params.value("arguments", Json::object());
    try {
      read_json(arguments, *tool);
      for (const std::string& setting : tool->required()) {
        if (!arguments.contains(setting)) throw Error(setting + ": must be given");
      }
    } catch (const Error& error) {
      return tool_result(shown(error.what()), true);
    }
    std::string text;
    for (const CommandLine& line : tool->command_lines()) {
      std::vector<const char*> words = {"foretrace"};
      for (const std::string& word : line) words.push_back(word.c_str());
      std::ostringstream out, err;
      const int code = run(static_cast<int>(words.size()), words.data(), out, err, root_);
      if (code != kAnswered) return tool_result(err.str(), true);
      text += (text.empty() ? "" : "\n") + out.str();
    }
    return tool_result(shortened_answer(text), false);
  }

  static Json tool_result(const std::string& text, bool is_error) {
    return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", is_error}};
  }

  std::string root_;
};

}  // namespace

void serve_tools(std::istream& in, std::ostream& out, const std::string& root) {
  const Server server(root);
  std::string line;
  while (next_message(in, line)) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (const auto answer = server.answer(line)) out << json_line(*answer) << '\n' << std::flush;
    if (!out) throw Error("mcp: cannot write to standard output");
  }
}

}  // namespace foretrace
