#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/assignments.h"
#include "base/fields/settings.h"
#include "base/json_text.h"
#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr auto kNowhere = std::string_view::npos;

/// Returns one past the slash that ends a /regular expression/, or 0.
std::size_t end_of_expression(std::string_view text) {
  for (std::size_t at = 1; (at = text.find('/', at)) != kNowhere; ++at) {
    const bool escaped = text[at - 1] == '\\';
    if (!escaped && (at + 1 == text.size() || text[at + 1] == ',')) return at + 1;
  }
  return 0;
}

/// Returns one past the quote or bracket that closes the first one, or 0. Brackets inside quotes do
/// not count.
std::size_t end_of_nested(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      if (c == '\\') ++at;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (!quoted && depth == 0) return at + 1;
  }
  return 0;
}

struct Assignment {
  std::string_view path;
  std::string_view value;
};

/// Removes the first assignment and the comma after it from `rest`.
Assignment take_assignment(std::string_view& rest) {
  const std::size_t equals = rest.find('=');
  const std::size_t comma = rest.find(',');
  if (equals == kNowhere || comma < equals || equals == 0) {
    throw Error(fmt::format("must be setting=value, got \"{}\"", rest.substr(0, comma)));
  }
  Assignment found{rest.substr(0, equals), {}};
  rest.remove_prefix(equals + 1);
  std::size_t end = std::min(rest.find(',', end_of_enclosed(rest)), rest.size());
  found.value = rest.substr(0, end);
  rest.remove_prefix(end);
  if (!rest.empty()) {
    rest.remove_prefix(1);
    if (rest.empty()) throw Error("must be setting=value after the last comma, got nothing");
  }
  return found;
}

Json parse_or_null(std::string_view text) {
  Json json = try_parse_json<Json>(text);
  return json.is_discarded() ? Json() : json;
}

// converted() returns the JSON value for a text that was given for a setting of this type. A text
// that does not fit is passed on as it is, so that the error is the same as for a scenario file.

Json converted(std::string_view text, const bool*) {
  if (text == "true") return true;
  if (text == "false") return false;
  return text;
}
template <class Number>
Json converted_number(std::string_view text) {
  const auto number = parse_number<Number>(text);
  return number ? Json(*number) : Json(text);
}
Json converted(std::string_view text, const std::int64_t*) {
  return converted_number<std::int64_t>(text);
}
Json converted(std::string_view text, const double*) { return converted_number<double>(text); }
Json converted(std::string_view text, const std::string*) {
  const bool quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
  const Json json = quoted ? parse_or_null(text) : Json();
  return json.is_string() ? json : Json(text);
}
Json converted(std::string_view text, const Nanoseconds*) { return text; }
Json converted(std::string_view text, const Bytes*) { return text; }
Json converted(std::string_view text, const Bandwidth*) { return text; }
Json converted(std::string_view text, const Throughput*) { return text; }
template <class Value>
Json converted(std::string_view text, const std::optional<Value>*) {
  if (text.empty() || text == "null") return Json();
  return converted(text, static_cast<const Value*>(nullptr));
}
/// Accepts ["a","b"], [a,b] or a single a.
Json converted(std::string_view text, const std::vector<std::string>*) {
  const bool listed = text.size() > 1 && text.front() == '[' && text.back() == ']';
  if (!listed) return Json::array({converted(text, static_cast<const std::string*>(nullptr))});
  if (Json json = parse_or_null(text); json.is_array()) return json;
  Json list = Json::array();
  std::string_view rest = text.substr(1, text.size() - 2);
  while (true) {
    const std::size_t comma = rest.find(',');
    list.push_back(std::string(rest.substr(0, comma)));
    if (comma == kNowhere) return list;
    rest.remove_prefix(comma + 1);
  }
}
Json converted(std::string_view text, const Described*) {
  if (Json json = parse_or_null(text); json.is_object()) return json;
  throw Error("is a group of settings; give them one by one, as in group.name=value");
}

/// Stores one assignment at its place in a JSON object of settings.
class Assigner final : public Fields {
 public:
  Assigner(std::string_view path, std::string_view value, Json& json) : value_(value), json_(json) {
    const std::size_t dot = path.find('.');
    name_ = path.substr(0, dot);
    if (dot != kNowhere) inner_ = path.substr(dot + 1);
  }

  /// Assigns the settings in `object`.
  void assign(Described& object) {
    object.describe(*this);
    if (!found_) throw Error(no_such_setting(name_, setting_names(object)));
  }

  void visit(const Setting& setting) override {
    if (setting.name != name_) return;
    found_ = true;
    within(name_, [&] {
      Json& place = json_[std::string(name_)];
      if (!inner_.empty()) return assign_inner(setting, place);
      if (!place.is_null()) throw Error("is given twice");
      place = std::visit([&](const auto* kind) { return converted(value_, kind); }, setting.value);
    });
  }

 private:
  void assign_inner(const Setting& setting, Json& place) {
    auto* const* nested = std::get_if<Described*>(&setting.value);
    if (!nested) throw Error(fmt::format("has no settings of its own, got \"{}\"", inner_));
    if (place.is_null()) place = Json::object();
    Assigner(inner_, value_, place).assign(**nested);
  }

  std::string_view name_;
  std::string_view inner_;  ///< The part after the first dot; may be empty.
  std::string_view value_;
  Json& json_;
  bool found_ = false;
};

}  // namespace

std::size_t end_of_enclosed(std::string_view value) {
  if (value.empty()) return 0;
  switch (value.front()) {
    case '/':
      return end_of_expression(value);
    case '"':
    case '[':
    case '{':
      return end_of_nested(value);
    default:
      return 0;
  }
}

void read_words(const std::vector<std::string>& words, const Setting& setting) {
  if (std::holds_alternative<std::vector<std::string>*>(setting.value))
    return read_setting(words, setting);
  for (const std::string& word : words) {
    if (std::holds_alternative<std::string*>(setting.value)) {
      read_setting(word, setting);
      continue;
    }
    read_setting(std::visit([&](const auto* kind) { return converted(word, kind); }, setting.value),
                 setting);
  }
}

Json read_assignments(std::string_view text, Described& object) {
  Json json = Json::object();
  while (!text.empty()) {
    const Assignment assignment = take_assignment(text);
    Assigner(assignment.path, assignment.value, json).assign(object);
  }
  return json;
}

std::string assignments_text(const Json& settings) {
  std::string text;
  for (const auto& [name, value] : settings.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name,
                        value.is_string() ? value.get<std::string>() : json_line(value));
  return text;
}

void read_assigned(std::string_view text, Described& object) {
  read_json(read_assignments(text, object), object);
}

}  // namespace foretrace
