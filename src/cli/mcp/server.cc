#include "cli/mcp/server.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/core.h>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/shown.h"
#include "base/wording.h"
#include "cli/manual/manual.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/names.h"
#include "foretrace/question.h"
#include "foretrace/transform.h"
#include "foretrace/units.h"
#include "foretrace/version.h"
#include "import/holds_trace.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Supported revisions of the protocol, newest first.
constexpr std::array<std::string_view, 2> kRevisions = {"2025-06-18", "2024-11-05"};
constexpr std::size_t kLongestMessage = 1 << 20;  ///< Bytes.
constexpr std::int64_t kLongestAnswer =
    8'000;  ///< Bytes of text, unless the agent says another limit.
constexpr std::int64_t kLeastLimit = 200;

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
std::string shortened_answer(const std::string& text, std::int64_t limit = kLongestAnswer) {
  if (std::ssize(text) <= limit) return text;
  const std::size_t end = text.rfind('\n', static_cast<std::size_t>(limit)) + 1;
  const auto hidden_lines =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  return fmt::format("{}({} more lines; a larger limit shows them)\n", text.substr(0, end),
                     hidden_lines);
}

constexpr std::string_view kListTransforms = "list_transforms", kListTraces = "list_traces";

/// The recordings in a folder with their sizes, then those in folders inside. Links are not
/// followed.
std::string listed_traces(const std::string& root) {
  namespace fs = std::filesystem;
  constexpr int kMaxFiles = 10'000;                // That are looked at.
  std::vector<std::pair<int, std::string>> lines;  // By depth.
  std::error_code none;
  int seen = 0;
  fs::recursive_directory_iterator file(root, fs::directory_options::skip_permission_denied, none);
  for (; !none && file != fs::recursive_directory_iterator() && seen < kMaxFiles;
       file.increment(none), ++seen) {
    if (file->symlink_status(none).type() != fs::file_type::regular || !holds_trace(file->path()))
      continue;
    const Bytes size{static_cast<std::int64_t>(file->file_size(none))};
    lines.emplace_back(
        file.depth(),
        fmt::format("{}  {}\n", file->path().lexically_relative(root).string(), to_text(size)));
  }
  std::ranges::sort(lines);
  std::string text = lines.empty() ? "there is no recording in " + root + "\n" : "";
  for (const auto& [depth, line] : lines) text += line;
  return text;
}

/// The changes that can be predicted, for an agent that looks for one.
class ListedTransforms final : public Described {
 public:
  void describe(Fields& fields) override {
    fields.text("name", name_, "Explain this transform with all its settings; empty: list all");
  }

  std::string text() const {
    std::ostringstream out;
    if (!name_.empty()) {
      if (!write_transform_help(name_, out)) throw Error(no_such_transform(name_));
      return out.str();
    }
    for (const TransformEntry& entry : transforms())
      out << fmt::format("{}: {}\n", entry.name, entry.summary);
    return out.str();
  }

 private:
  std::string name_;
};

/// An agent may say this beside the settings of a question.
constexpr std::string_view kForm = "form", kLimit = "limit";

/// Answers of several ranks, where structured content has to be an object.
constexpr std::string_view kAnswers = "answers";

/// The names of the forms that an agent can read.
std::vector<std::string_view> forms_of(const Question& question) {
  std::vector<std::string_view> names;
  for (const Form& form : question.forms()) {
    if (form.is_printed) names.push_back(form.name);
  }
  return names;
}

/// The schema of what an answer has as structured content, which is always an object.
Json structured_schema(const Question& question) {
  Json schema = answer_schema(question);
  const bool has_kinds = schema.contains("anyOf");
  Json kinds = has_kinds ? schema["anyOf"] : Json::array({schema});
  for (Json& kind : kinds) {
    if (kind["type"] == "object") continue;
    kind = {{"type", "object"},
            {"properties", {{std::string(kAnswers), kind}}},
            {"required", {kAnswers}}};
  }
  return has_kinds ? Json{{"type", "object"}, {"anyOf", std::move(kinds)}} : kinds.front();
}

std::string written(const Asked& asked, const std::string& form) {
  std::ostringstream text;
  {
    const EscapedOutput wall(text);
    write_answer(*asked.question, *asked.answer, form, text);
  }
  return std::move(text).str();
}

/// Returns what is written as JSON as structured content.
Json structured_content(const std::string& json) {
  Json content = parse_json<Json>(json);
  return content.is_object() ? content : Json{{kAnswers, std::move(content)}};
}

Json listed_tools(bool is_structured) {
  Json list = Json::array();
  const auto add = [&](std::string_view name, std::string_view summary, Json schema) {
    list.push_back({{"name", name},
                    {"description", summary},
                    {"inputSchema", std::move(schema)},
                    {"annotations", {{"readOnlyHint", true}, {"openWorldHint", false}}}});
  };
  for (const QuestionEntry& entry : questions()) {
    const auto question = entry.make();
    Json schema = json_schema(*question);
    schema["properties"][std::string(kForm)] = {
        {"type", "string"},
        {"enum", forms_of(*question)},
        {"default", "text"},
        {"description", "How the answer is written; json is structured content as well"}};
    schema["properties"][std::string(kLimit)] = {
        {"type", "integer"},
        {"minimum", kLeastLimit},
        {"default", kLongestAnswer},
        {"description", "Longest text, in bytes; the rest is left out, but never of json"}};
    add(entry.name, entry.summary, std::move(schema));
    if (is_structured) list.back()["outputSchema"] = structured_schema(*question);
  }
  ListedTransforms transforms;
  add(kListTransforms, "The changes that can be predicted; one of them with its settings",
      json_schema(transforms));
  add(kListTraces,
      "The recordings that can be asked about, with their sizes; a folder of several "
      "ranks is one job",
      {{"type", "object"}, {"additionalProperties", false}});
  return list;
}

class Server {
 public:
  Server(std::string root, bool is_structured)
      : root_(std::move(root)), is_structured_(is_structured) {}

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
    if (method == "tools/list") return Json{{"tools", listed_tools(is_structured_)}};
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
                     "after a change. list_traces shows what there is; begin with doctor and "
                     "predict, then advise; one recording is enough. Predict a change "
                     "before you make it. Paths are relative to {}; files outside are not opened.",
                     root_)}};
  }

  Json call(const Json& params) const {
    const Json name = params.value("name", Json());
    Json arguments = params.value("arguments", Json::object());
    if (name == kListTransforms) return transforms_result(arguments);
    if (name == kListTraces)
      return tool_result(shortened_answer(shown_answer(listed_traces(root_))), false);
    const QuestionEntry* const entry =
        name.is_string() ? find_question(name.get<std::string>()) : nullptr;
    if (entry == nullptr) {
      std::vector<std::string_view> names;
      for (const QuestionEntry& one : questions()) names.push_back(one.name);
      throw RpcError{kInvalidParams,
                     fmt::format("name: must be one of {}, {}, {}, got {}", joined(names),
                                 kListTransforms, kListTraces, json_line(name))};
    }
    try {
      return answered(*entry, arguments);
    } catch (const Error& error) {
      return tool_result(shown(error.what()), true);
    }
  }

  /// Asks the question. Every error is for the agent to read.
  Json answered(const QuestionEntry& entry, Json& arguments) const {
    std::string form = "text";
    if (arguments.is_object() && arguments.contains(kForm)) {
      form = json_line(arguments[std::string(kForm)]);
      arguments.erase(std::string(kForm));
      const std::vector<std::string_view> forms = forms_of(*entry.make());
      const auto found = std::ranges::find_if(
          forms, [&](std::string_view one) { return json_line(Json(one)) == form; });
      if (found == forms.end())
        throw Error(fmt::format("form: must be one of {}, got {}", joined(forms), form));
      form = *found;
    }
    const std::int64_t limit = taken_limit(arguments);
    const bool is_structured = is_structured_ || form == "json";
    std::vector<std::string> forms = {form};
    if (is_structured) forms.push_back("json");
    const Asked asked = ask(entry.name, arguments, {.root = root_, .forms = forms});
    const std::string text = written(asked, form);
    Json result = tool_result(form == "json" ? text : shortened_answer(text, limit), false);
    for (const std::string& remark : asked.remarks)
      result["content"].push_back({{"type", "text"}, {"text", shown(remark)}});
    if (is_structured)
      result["structuredContent"] =
          structured_content(form == "json" ? text : written(asked, "json"));
    return result;
  }

  /// Takes the limit out of the arguments.
  static std::int64_t taken_limit(Json& arguments) {
    const std::string key(kLimit);
    if (!arguments.is_object() || !arguments.contains(key)) return kLongestAnswer;
    const Json limit = arguments[key];
    arguments.erase(key);
    if (!limit.is_number_unsigned() || limit > std::numeric_limits<std::int64_t>::max() ||
        limit < kLeastLimit)
      throw Error(fmt::format("limit: must be a whole number, at least {}", kLeastLimit));
    return limit.get<std::int64_t>();
  }

  static Json transforms_result(const Json& arguments) {
    try {
      ListedTransforms asked;
      read_json(arguments, asked);
      return tool_result(shown_answer(asked.text()), false);
    } catch (const Error& error) {
      return tool_result(shown(error.what()), true);
    }
  }

  static Json tool_result(const std::string& text, bool is_error) {
    return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", is_error}};
  }

  std::string root_;
  bool is_structured_ = false;
};

}  // namespace

void serve_tools(std::istream& in, std::ostream& out, const std::string& root, bool is_structured) {
  const Server server(root, is_structured);
  std::string line;
  while (next_message(in, line)) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (const auto answer = server.answer(line)) out << json_line(*answer) << '\n' << std::flush;
    if (!out) throw Error("mcp: cannot write to standard output");
  }
}

}  // namespace foretrace
