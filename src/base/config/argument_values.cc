#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <map>
#include <optional>

#include "base/config/config.h"

namespace foretrace {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct ShellWord {
  std::string text{};
  std::size_t begin = 0, end = 0;
};

constexpr std::string_view kSlurm = "#SBATCH ";  ///< Begins lines that are arguments, too.

/// Splits a script into words as a shell does. Substitutions, $(...) and ${...}, stay as they are.
class ShellWords {
 public:
  explicit ShellWords(std::string_view text) : text_(text) {}

  std::optional<ShellWord> next() {
    skip();
    if (at_ == text_.size()) return std::nullopt;
    ShellWord word{.begin = at_};
    while (at_ < text_.size() && !ends(text_[at_])) take(word.text);
    word.end = at_;
    return word;
  }

 private:
  static bool ends(char c) { return is_blank(c) || c == '(' || c == ')' || c == ';'; }

  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with(kSlurm))
        at_ += kSlurm.size();
      else if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (ends(text_[at_]) || text_.substr(at_, 2) == "\\\n")
        ++at_;
      else
        return;
    }
  }

  void take(std::string& word) {
    const char c = text_[at_];
    if (c == '\\') {
      if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') word += text_[at_ + 1];
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'' || c == '"') {
      const std::size_t end = std::min(text_.find(c, at_ + 1), text_.size());
      word += text_.substr(at_ + 1, end - at_ - 1);
      at_ = std::min(end + 1, text_.size());
    } else if (text_.substr(at_, 2) == "$(" || text_.substr(at_, 2) == "${") {
      take_substitution(word);
    } else {
      word += c, ++at_;
    }
  }

  /// Takes $(...) or ${...} with whatever is inside.
  void take_substitution(std::string& word) {
    const std::size_t begin = at_++;
    int depth = 0;
    do {
      depth += text_[at_] == '(' || text_[at_] == '{' ? 1 : 0;
      depth -= text_[at_] == ')' || text_[at_] == '}' ? 1 : 0;
    } while (++at_ < text_.size() && depth > 0);
    word += text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Variables that a script gives plain values.
class Variables {
 public:
  /// Does nothing if the word is no assignment.
  void assign(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || word[0] == '-' ||
        !std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name))
      return;
    values_[word.substr(0, equals)] = replaced(word.substr(equals + 1));
  }

  /// Replaces $NAME, ${NAME} and ${NAME:-default}. What has no value stays.
  std::string replaced(const std::string& text) const {
    std::string made;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = text[i] == '$' ? end_of_name(text, i + 1) : i + 1;
      const std::string part = text.substr(i, end - i);
      made += text[i] == '$' ? value_of(part) : part;
      i = end;
    }
    return made;
  }

 private:
  static std::size_t end_of_name(const std::string& text, std::size_t at) {
    if (at < text.size() && text[at] == '{')
      return std::min(text.find('}', at), text.size() - 1) + 1;
    while (at < text.size() && is_name(text[at])) ++at;
    return at;
  }

  /// The value of "$NAME" or "${NAME:-default}", or the text itself.
  std::string value_of(const std::string& part) const {
    const bool has_braces = part.size() > 2 && part[1] == '{' && part.back() == '}';
    const std::string inside = has_braces ? part.substr(2, part.size() - 3) : part.substr(1);
    const std::size_t colon = has_braces ? inside.find(':') : std::string::npos;
    const auto found = values_.find(inside.substr(0, colon));
    if (found != values_.end()) return found->second;
    return colon != std::string::npos && colon + 2 < inside.size() ? inside.substr(colon + 2)
                                                                   : part;
  }

  std::map<std::string, std::string> values_;
};

bool is_option(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word[2])) != 0;
}

std::string key_of(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace

std::vector<ConfigValue> argument_values(std::string_view text) {
  ShellWords words(text);
  Variables variables;
  std::vector<ConfigValue> values;
  auto word = words.next();
  while (word) {
    if (!is_option(word->text)) {
      variables.assign(word->text);
      word = words.next();
      continue;
    }
    ConfigValue value{.text = "true", .begin = word->end, .end = word->end};
    if (const std::size_t blank = word->text.find(' '); blank != std::string::npos) {
      // One word in quotes, which a script splits later. Its value has no place of its own.
      value.key = key_of(word->text.substr(2, blank - 2));
      value.text = variables.replaced(word->text.substr(blank + 1));
      std::erase(value.text, '\'');
      values.push_back(std::move(value));
      word = words.next();
      continue;
    }
    const std::size_t equals = word->text.find('=');
    value.key = key_of(word->text.substr(2, equals == std::string::npos ? equals : equals - 2));
    if (equals != std::string::npos) {
      value.text = variables.replaced(word->text.substr(equals + 1));
      value.begin = word->begin + equals + 1;
      word = words.next();
    } else {
      word = words.next();
      if (word && !is_option(word->text)) {
        value.text = variables.replaced(word->text);
        value.begin = word->begin, value.end = word->end;
        word = words.next();
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<ConfigValue> log_values(std::string_view text) {
  std::vector<ConfigValue> values;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t dots = line.find(" ...");
    if (dots == std::string_view::npos) continue;
    const std::size_t value = line.find_first_not_of('.', dots + 1);
    std::string_view name = line.substr(0, dots);
    name.remove_prefix(std::min(name.size(), name.find_last_of(" \t:]") + 1));
    if (value == std::string_view::npos || line[value] != ' ' || name.empty() ||
        !std::ranges::all_of(name, is_name))
      continue;
    std::string shown(line.substr(value + 1));
    while (!shown.empty() && is_blank(shown.back())) shown.pop_back();
    if (shown == "None") shown = "null";
    if (shown == "True" || shown == "False") shown = shown == "True" ? "true" : "false";
    values.push_back({.key = std::string(name), .text = std::move(shown)});
  }
  return values;
}

std::string argument_text(const ConfigChange& change) {
  std::string name = change.key;
  if (name.find('.') == std::string::npos) std::ranges::replace(name, '_', '-');
  return "--" + name + (change.value == "true" ? "" : " " + change.value);
}

}  // namespace foretrace
