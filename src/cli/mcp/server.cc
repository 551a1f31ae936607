#include "cli/mcp/server.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string_view>

#include "base/json_text.h"
#include "base/shown.h"
#include "base/wording.h"
#include "cli/mcp/tools.h"
#include "cli/options/run.h"
#include "foretrace/error.h"
#include "foretrace/names.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

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
