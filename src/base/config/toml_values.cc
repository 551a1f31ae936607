#include <toml++/toml.h>

#include <algorithm>
#include <fmt/core.h>

#include "base/config/config.h"
#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Where lines of a text begin, to find a place that is known by line and column, both from 1.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') begins_.push_back(i + 1);
    }
  }
  std::size_t at(const toml::source_position& place) const {
    if (place.line == 0 || place.line > begins_.size()) return 0;
    return behind_characters(text_, begins_[place.line - 1], place.column - 1);
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> begins_ = {0};
};

class TomlValues {
 public:
  explicit TomlValues(std::string_view text) : text_(text), places_(text) {}

  void add(const std::string& key, const toml::node& node, int depth) {
    if (depth > kMaxNesting)
      throw Error(fmt::format("{}: must nest at most {} deep", key, kMaxNesting));
    if (const toml::table* table = node.as_table()) {
      for (const auto& [name, child] : *table)
        add(key.empty() ? std::string(name.str()) : key + '.' + std::string(name.str()), child,
            depth + 1);
    } else if (const toml::array* array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i)
        add(key + '.' + std::to_string(i), (*array)[i], depth + 1);
    } else {
      add_value(key, node);
    }
  }

  std::vector<ConfigValue> take() {
    std::ranges::stable_sort(values_, {}, &ConfigValue::begin);
    return std::move(values_);
  }

 private:
  void add_value(const std::string& key, const toml::node& node) {
    ConfigValue value{.key = key, .is_word = node.is_string()};
    value.begin = places_.at(node.source().begin), value.end = places_.at(node.source().end);
    if (const auto* word = node.as_string()) {
      value.text = word->get();
    } else {
      value.text = text_.substr(value.begin, value.end - value.begin);
      std::erase(value.text, '_');
    }
    values_.push_back(std::move(value));
  }

  std::string_view text_;
  Places places_;
  std::vector<ConfigValue> values_;
};

}  // namespace

std::vector<ConfigValue> toml_values(std::string_view text) {
  try {
    const toml::table table = toml::parse(text);
    TomlValues values(text);
    values.add("", table, 0);
    return values.take();
  } catch (const toml::parse_error& error) {
    throw Error(
        fmt::format("line {}: must be TOML: {}", error.source().begin.line, error.description()));
  }
}

}  // namespace foretrace
