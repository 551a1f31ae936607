#include "studies/system/asks.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <sstream>
#include <utility>

#include "base/json_text.h"
#include "base/numbers/expression.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxAsks = 10'000;  ///< Different questions of one description.

/// Replaces each formula in braces by its value.
std::string with_values(const std::string& text, const NamedNumbers& numbers) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    all += text.substr(at, open - at);
    if (open == text.size()) break;
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos)
      throw Error("must close its brace, got " + json_line(Json(text)));
    all += to_text(formula_value(text.substr(open + 1, close - open - 1), numbers));
    at = close + 1;
  }
  return all;
}

/// Each part of an answer may have assumptions.
void gather_assumptions(const Json& part, std::vector<std::string>& all) {
  for (const auto& item : part.items()) {
    if (part.is_object() && item.key() == "assumptions" && item.value().is_array()) {
      for (const Json& sentence : item.value()) {
        const std::string text = sentence.is_string() ? sentence.get<std::string>() : "";
        if (!text.empty() && std::ranges::find(all, text) == all.end()) all.push_back(text);
      }
    } else if (item.value().is_structured()) {
      gather_assumptions(item.value(), all);
    }
  }
}

double number_at(const Json& answer, const std::string& pointer) {
  const Json* found = nullptr;
  try {
    const Json::json_pointer place(pointer);
    if (answer.contains(place)) found = &answer.at(place);
  } catch (const Json::exception&) {
    found = nullptr;
  }
  if (!found || !found->is_number())
    throw Error(
        fmt::format("must point to a number of the answer, such as /step/step_time_ns, "
                    "got {}",
                    json_line(Json(pointer))));
  return found->get<double>();
}

}  // namespace

double formula_value(const std::string& formula, const NamedNumbers& numbers) {
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& [name, value] : numbers) names.push_back(name), values.push_back(value);
  return Expression(formula, names).at(values);
}

SystemAsk read_ask(const Json& json) {
  if (!json.is_object() || json.size() != 3 || !json.contains("question") ||
      !json["question"].is_string() || !json.contains("settings") ||
      !json["settings"].is_object() || !json.contains("take") || !json["take"].is_object())
    throw Error("must have question, settings and take, and nothing else");
  if (json["question"] == "plan_system")
    throw Error("question: must be another one than plan_system, which could ask itself");
  SystemAsk ask{.question = json["question"].get<std::string>(), .settings = json["settings"]};
  for (const auto& [name, pointer] : json["take"].items()) {
    if (!is_variable(name) || !pointer.is_string())
      throw Error(fmt::format("take: {}: must be a pointer by a name of letters, got {}", name,
                              json_line(Json(pointer))));
    ask.take[name] = pointer.get<std::string>();
  }
  return ask;
}

Asker::Asker(const std::string& path, AskOptions options)
    : folder_(std::filesystem::path(path).parent_path().string()), options_(std::move(options)) {
  if (options_.root.empty()) options_.root = "/";  // All may be read, but nothing written.
  options_.forms = {"json"};
}

Json Asker::filled(const Json& settings, const NamedNumbers& numbers) const {
  Json all = settings;
  for (auto& item : all.items()) {
    Json& value = item.value();
    if (value.is_structured()) value = filled(value, numbers);
    if (!value.is_string()) continue;
    const std::string text =
        within(item.key(), [&] { return with_values(value.get<std::string>(), numbers); });
    const auto beside = std::filesystem::path(folder_) / text;
    std::error_code ignored;
    value =
        !text.empty() && std::filesystem::is_regular_file(beside, ignored) ? beside.string() : text;
  }
  return all;
}

const Json& Asker::answer(const std::string& question, const Json& settings) {
  const std::string key = question + json_line(settings);
  const auto found = answers_.find(key);
  if (found != answers_.end()) return found->second;
  if (answers_.size() == kMaxAsks)
    throw Error(fmt::format("must be at most {} different questions", grouped(kMaxAsks)));
  const Asked asked = ask(question, settings, options_);
  std::ostringstream out;
  write_answer(*asked.question, *asked.answer, "json", out);
  Json& answer = answers_[key] = parse_json<Json>(out.str());
  gather_assumptions(answer, assumptions_);
  return answer;
}

void Asker::add(const SystemAsk& ask, NamedNumbers& numbers) {
  const Json& found = within(ask.question, [&]() -> const Json& {
    return answer(ask.question, filled(ask.settings, numbers));
  });
  for (const auto& taken : ask.take)
    numbers[taken.first] =
        within("take: " + taken.first, [&] { return number_at(found, taken.second); });
}

}  // namespace foretrace
