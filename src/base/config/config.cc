#include "base/config/config.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Ordered = nlohmann::ordered_json;

void add_json(const std::string& key, const Ordered& json, std::vector<ConfigValue>& values) {
  if (!json.is_structured()) {
    ConfigValue value{.key = key, .is_word = json.is_string()};
    value.text = json.is_string() ? json.get<std::string>() : json_line(json);
    return values.push_back(std::move(value));
  }
  std::size_t index = 0;
  for (const auto& [name, child] : json.items()) {
    const std::string inner = json.is_array() ? std::to_string(index++) : name;
    add_json(key.empty() ? inner : key + '.' + inner, child, values);
  }
}

/// "args.--micro-batch-size" -> "args.micro_batch_size"
std::string without_dashes(std::string key) {
  const std::size_t dashes = key.starts_with("--") ? 0 : key.find(".--");
  if (dashes == std::string::npos) return key;
  const std::size_t name = dashes == 0 ? 0 : dashes + 1;
  key.erase(name, 2);
  std::replace(key.begin() + static_cast<std::ptrdiff_t>(name), key.end(), '-', '_');
  return key;
}

/// Whether a few lines of a text are "name ..... value".
bool is_log(std::string_view text) {
  constexpr std::size_t kFew = 5;
  return log_values(text).size() >= kFew;
}

ConfigForm form_of(const std::string& path, std::string_view text) {
  if (path.ends_with(".py"))
    throw Error(
        "is a program, which is not run; give the configuration that it prints, as JSON, YAML or "
        "TOML");
  if (path.ends_with(".json")) return ConfigForm::json;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return ConfigForm::yaml;
  if (path.ends_with(".toml")) return ConfigForm::toml;
  if (text.find_first_not_of(" \t\r\n") != text.npos &&
      text[text.find_first_not_of(" \t\r\n")] == '{')
    return ConfigForm::json;
  return is_log(text) ? ConfigForm::log : ConfigForm::arguments;
}

/// Edits a text from its end, so that places before an edit stay right.
class TextEdits {
 public:
  void replace(std::size_t begin, std::size_t end, std::string text) {
    edits_.push_back({begin, end, std::move(text)});
  }
  std::string applied(std::string text) {
    std::ranges::stable_sort(edits_,
                             [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
    for (const Edit& edit : edits_) text.replace(edit.begin, edit.end - edit.begin, edit.text);
    return text;
  }

 private:
  struct Edit {
    std::size_t begin, end;
    std::string text;
  };
  std::vector<Edit> edits_;
};

const ConfigValue* last_named(const Config& config, std::string_view key) {
  const auto found =
      std::find_if(config.values.rbegin(), config.values.rend(), [&](const ConfigValue& value) {
        return value.key == key ||
               (key.find('.') == key.npos && value.key.ends_with('.' + std::string(key)));
      });
  return found == config.values.rend() ? nullptr : &*found;
}

std::string parent_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}
std::string name_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }

/// The last value that has the same parent as a key.
const ConfigValue* neighbor_of(const Config& config, const std::string& key) {
  const ConfigValue* last = nullptr;
  for (const ConfigValue& value : config.values) {
    if (parent_of(value.key) == parent_of(key)) last = &value;
  }
  return last;
}

std::string json_changed(const Config& config, const std::vector<ConfigChange>& changes) {
  auto json = parse_json<Ordered>(config.text);
  for (const ConfigChange& change : changes) {
    Ordered* place = &json;
    for (std::string rest = change.key; !rest.empty();) {
      const std::size_t dot = rest.find('.');
      if (!place->is_object() && !place->is_null())
        throw Error(fmt::format("{}: has no place, as a part of it has a value", change.key));
      place = &(*place)[rest.substr(0, dot)];
      rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    }
    *place = change.value.empty() ? Ordered()
             : change.is_word     ? Ordered(change.value)
                                  : parse_json<Ordered>(change.value);
  }
  return indented_json(json) + '\n';
}

std::string value_text(const Config& config, const ConfigChange& change) {
  if (change.value.empty()) return "null";
  return change.is_word && config.form == ConfigForm::toml ? '"' + change.value + '"'
                                                           : change.value;
}

/// Adds a value behind its neighbor: in a line of its own as far to the right, or in the same
/// braces.
void insert_beside(const Config& config, const ConfigValue& neighbor, const ConfigChange& change,
                   TextEdits& edits) {
  const std::string_view text = config.text;
  const std::size_t line = text.rfind('\n', neighbor.begin) + 1;
  const std::size_t shown = text.find_first_not_of(" \t", line);
  std::string added = name_of(change.key);
  if (text.substr(shown, 2) == "--") added = argument_text({.key = added, .value = "true"});
  added += (config.form == ConfigForm::toml ? " = " : ": ") + value_text(config, change);
  if (text.substr(line, neighbor.begin - line).find('{') != text.npos)
    return edits.replace(neighbor.end, neighbor.end, ", " + added);
  const std::size_t end = std::min(text.find('\n', neighbor.end), text.size());
  edits.replace(end, end, '\n' + std::string(text.substr(line, shown - line)) + added);
}

/// The value beside which all changes belong that have no parent of their own: one of those that
/// the file has already, if these stand together.
const ConfigValue* common_neighbor(const Config& config, const std::vector<ConfigChange>& changes) {
  const ConfigValue* last = nullptr;
  for (const ConfigChange& change : changes) {
    const ConfigValue* value = last_named(config, change.key);
    // A word behind a flag of arguments may be another one.
    const bool is_flag = change.value == "true" || change.value == "false";
    if (value == nullptr || value->begin == value->end || is_flag || change.value.empty()) continue;
    if (last != nullptr && parent_of(last->key) != parent_of(value->key)) return nullptr;
    if (last == nullptr || last->begin < value->begin) last = value;
  }
  return last;
}

/// Adds values whose parents the file does not have, at its end.
std::string with_new_parents(const Config& config, std::string text,
                             const std::vector<ConfigChange>& added) {
  std::string parent;
  for (const ConfigChange& change : added) {
    if (text.empty() || text.back() != '\n') text += '\n';
    const std::string above = parent_of(change.key);
    const bool is_toml = config.form == ConfigForm::toml;
    const std::string heading = fmt::format("[{}]\n", above);
    if (const std::size_t at = text.find(heading); is_toml && above != parent && at != text.npos) {
      // The file has the table, and nothing in it.
      text.insert(at + heading.size(),
                  fmt::format("{} = {}\n", name_of(change.key), value_text(config, change)));
      continue;
    }
    if (above != parent) text += is_toml ? fmt::format("\n[{}]\n", above) : above + ":\n";
    parent = above;
    text += fmt::format("{}{}{}{}\n", is_toml || above.empty() ? "" : "  ", name_of(change.key),
                        is_toml ? " = " : ": ", value_text(config, change));
  }
  return text;
}

/// `made` are those of `changes` that change something.
std::string edited(const Config& config, const std::vector<ConfigChange>& made,
                   const std::vector<ConfigChange>& changes) {
  TextEdits edits;
  std::vector<ConfigChange> orphans;
  for (const ConfigChange& change : made) {
    const ConfigValue* const value = last_named(config, change.key);
    if (value != nullptr) edits.replace(value->begin, value->end, value_text(config, change));
    if (value != nullptr || change.value.empty()) continue;
    const bool has_parent = change.key.find('.') != std::string::npos;
    const ConfigValue* const neighbor =
        has_parent ? neighbor_of(config, change.key) : common_neighbor(config, changes);
    if (neighbor != nullptr)
      insert_beside(config, *neighbor, change, edits);
    else if (has_parent)
      orphans.push_back(change);
    else
      throw Error(fmt::format("{}: is in none of the file's sections; add it where it belongs",
                              change.key));
  }
  return with_new_parents(config, edits.applied(config.text), orphans);
}

/// Takes an argument out; of one that is on or off, only its name: a word behind it is another one.
void remove_argument(const Config& config, const ConfigValue& value, bool is_flag,
                     TextEdits& edits) {
  const std::string_view before(config.text.data(), value.begin);
  const std::size_t begin = before.rfind("--");
  const std::size_t end = std::min(before.find_first_of(" \t\r\n=", begin), value.begin);
  edits.replace(begin, is_flag ? end : value.end, "");
}

/// New arguments stand behind the last one that the file has of `changes`.
std::string arguments_changed(const Config& config, const std::vector<ConfigChange>& made,
                              const std::vector<ConfigChange>& changes) {
  TextEdits edits;
  std::string added;
  for (const ConfigChange& change : made) {
    const ConfigValue* const value = last_named(config, change.key);
    const bool is_off = change.value == "false" || change.value.empty();
    if (value == nullptr && !is_off) added += ' ' + argument_text(change);
    if (value == nullptr || change.value == "true") continue;
    if (value->begin == value->end && value->text != "true")
      throw Error(fmt::format("{}: stands in quotes, where it cannot be changed", change.key));
    if (is_off)
      remove_argument(config, *value, change.value == "false", edits);
    else
      edits.replace(value->begin, value->end, change.value);
  }
  if (added.empty()) return edits.applied(config.text);
  const ConfigValue* const neighbor = common_neighbor(config, changes);
  const std::size_t end = neighbor == nullptr ? config.values.back().end : neighbor->end;
  edits.replace(end, end, added);
  return edits.applied(config.text);
}

}  // namespace

std::size_t behind_characters(std::string_view text, std::size_t at, std::size_t count) {
  const auto goes_on = [&] { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  for (; count > 0 && at < text.size(); --count) {
    ++at;
    while (at < text.size() && goes_on()) ++at;
  }
  return at;
}

std::vector<ConfigValue> json_values(std::string_view text) {
  parse_json_text(text);  // Refuses keys that are given twice.
  std::vector<ConfigValue> values;
  const auto json = parse_json<Ordered>(text);
  if (!json.is_object()) throw Error("must be an object with settings");
  add_json("", json, values);
  return values;
}

Config read_config(const std::string& path) {
  return within(path, [&] {
    Config config{.text = read_text_file(path)};
    config.form = form_of(path, config.text);
    switch (config.form) {
      case ConfigForm::json:
        config.values = json_values(config.text);
        break;
      case ConfigForm::yaml:
        config.values = yaml_values(config.text);
        break;
      case ConfigForm::toml:
        config.values = toml_values(config.text);
        break;
      case ConfigForm::arguments:
        config.values = argument_values(config.text);
        break;
      case ConfigForm::log:
        config.values = log_values(config.text);
        break;
    }
    if (config.form == ConfigForm::yaml) {
      for (ConfigValue& value : config.values) value.key = without_dashes(value.key);
    }
    if (config.values.empty()) throw Error("has no settings");
    return config;
  });
}

std::string changed_text(const Config& config, const std::vector<ConfigChange>& changes) {
  std::vector<ConfigChange> made;
  for (const ConfigChange& change : changes) {
    const ConfigValue* value = last_named(config, change.key);
    if ((value == nullptr ? change.usual : value->text) != change.value) made.push_back(change);
  }
  switch (config.form) {
    case ConfigForm::json:
      return json_changed(config, made);
    case ConfigForm::yaml:
    case ConfigForm::toml:
      return edited(config, made, changes);
    case ConfigForm::arguments:
      return arguments_changed(config, made, changes);
    case ConfigForm::log:
      break;
  }
  throw Error("is a log, which cannot be written again; give the file or the command itself");
}

}  // namespace foretrace
