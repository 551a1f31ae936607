#include "transform/synonyms.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields/assignments.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "foretrace/transform.h"

namespace foretrace {
namespace {

/// Words for something that Foretrace does not do, and what to ask for instead.
struct Alternative {
  std::vector<std::string_view> words;
  std::string_view text;
};

#define WORDS(...) \
  { __VA_ARGS__ }

const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all = {
#define SYNONYM(transform, words, settings, value)
#define ALTERNATIVE(words, text) {words, text},
#define ELSEWHERE(words, text)
#include "transform/synonyms.def"
#undef ELSEWHERE
#undef ALTERNATIVE
#undef SYNONYM
  };
  return all;
}

const std::vector<Alternative>& other_questions() {
  static const std::vector<Alternative> all = {
#define SYNONYM(transform, words, settings, value)
#define ALTERNATIVE(words, text)
#define ELSEWHERE(words, text) {words, text},
#include "transform/synonyms.def"
#undef ELSEWHERE
#undef ALTERNATIVE
#undef SYNONYM
  };
  return all;
}

/// Returns the letters and digits in lower case, so that "Torch.Compile" equals "torch_compile".
std::string normalized(std::string_view words) {
  std::string text;
  for (const char c : words) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80) text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

bool is_among(std::string_view word, const std::vector<std::string_view>& words) {
  const std::string wanted = normalized(word);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view other) { return normalized(other) == wanted; });
}

/// The transform that a name or synonym means, with the settings that the name implies.
struct Meaning {
  const TransformEntry* entry = nullptr;
  std::string_view settings, value;
};

const TransformEntry& entry_of(std::string_view name) {
  const auto found = std::find_if(transforms().begin(), transforms().end(),
                                  [&](const TransformEntry& entry) { return entry.name == name; });
  CHECK(found != transforms().end());
  return *found;
}

const Alternative* find_alternative(std::string_view name,
                                    const std::vector<Alternative>& all = alternatives()) {
  const auto found = std::ranges::find_if(
      all, [&](const Alternative& alternative) { return is_among(name, alternative.words); });
  return found == all.end() ? nullptr : &*found;
}

/// The setting that takes a value without a name: "loader=4".
std::string_view main_setting(std::string_view transform) {
  for (const Synonym& synonym : synonyms()) {
    if (synonym.transform == transform && !synonym.value.empty()) return synonym.value;
  }
  return {};
}

std::optional<Meaning> meaning_of(std::string_view name) {
  if (normalized(name).empty()) return std::nullopt;
  for (const TransformEntry& entry : transforms()) {
    if (normalized(entry.name) == normalized(name))
      return Meaning{&entry, {}, main_setting(entry.name)};
  }
  if (find_alternative(name)) return std::nullopt;
  for (const Synonym& synonym : synonyms()) {
    if (is_among(name, synonym.words))
      return Meaning{&entry_of(synonym.transform), synonym.settings, synonym.value};
  }
  return std::nullopt;
}

bool has_setting(const TransformEntry& entry, std::string_view path) {
  const std::string name(path.substr(0, path.find('.')));
  return json_schema(*entry.make()).at("properties").contains(name);
}

bool selects_by(const TransformEntry& entry, std::string_view name) {
  const nlohmann::json settings = json_schema(*entry.make()).at("properties");
  const auto where = settings.find("where");
  return where != settings.end() && where->at("properties").contains(std::string(name));
}

/// Returns the transform's own name for the setting `name`; `name` itself if nothing fits.
std::string setting_of(const TransformEntry& entry, std::string_view name) {
  if (has_setting(entry, name)) return std::string(name);
  if (selects_by(entry, name)) return fmt::format("where.{}", name);
  for (const Synonym& synonym : synonyms()) {
    const bool fits = synonym.transform == entry.name && !synonym.value.empty();
    if (fits && is_among(name, synonym.words)) return std::string(synonym.value);
  }
  return std::string(name);
}

/// Splits `text` at commas, except inside values such as /a,b/.
std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '=') at += end_of_enclosed(text.substr(at + 1));
    if (at < text.size() && text[at] != ',') continue;
    parts.push_back(without_blanks(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  return parts;
}

/// "name:settings", "name=value" or "name" alone.
struct StepText {
  std::string_view name, settings, value;
  bool has_value = false;

  explicit StepText(std::string_view text) {
    const std::size_t mark = text.find_first_of(":=");
    name = without_blanks(text.substr(0, mark));
    if (mark == std::string_view::npos) return;
    std::string_view rest = without_blanks(text.substr(mark + 1));
    // A colon may also give a value, as in YAML: "num_workers: 4".
    has_value = text[mark] == '=' || rest.find('=') == std::string_view::npos;
    (has_value ? value : settings) = rest;
  }
};

/// Whether a name is a transform and its setting, as in "loader.workers=4" for "loader:workers=4".
bool is_dotted(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && !transform_called(name.substr(0, dot)).empty() &&
         transform_called(name).empty();
}

/// Returns "num_workers=8" for "num_workers 8"; empty if the last word does not begin with a digit.
std::string with_equals(std::string_view text) {
  const std::size_t blank = text.rfind(' ');
  if (blank == std::string_view::npos || text.find_first_of(":=") != std::string_view::npos)
    return {};
  const std::string_view value = text.substr(blank + 1);
  if (value.empty() || std::isdigit(static_cast<unsigned char>(value[0])) == 0) return {};
  return fmt::format("{}={}", without_blanks(text.substr(0, blank)), value);
}

/// Returns "amp,prefetch" for "amp + prefetch"; empty unless each word is a step by itself.
std::string as_list(std::string_view text) {
  std::string list;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of("+& /"), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (!word.empty()) {
      if (!meaning_of(word)) return {};
      list += fmt::format("{}{}", list.empty() ? "" : ",", word);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return list;
}

class StepReader {
 public:
  std::vector<std::string> read(std::string_view text) {
    for (const std::string_view part : split_at_commas(text)) add(part);
    return std::move(steps_);
  }

 private:
  void add(std::string_view text) {
    if (text.empty() && entry_) throw Error("must be a setting or a step after the last comma");
    const StepText part(text);
    if (part.has_value && is_dotted(part.name) && !is_current_setting(part.name)) {
      const std::size_t dot = part.name.find('.');
      return add(fmt::format("{}:{}", text.substr(0, dot), text.substr(dot + 1)));
    }
    const bool is_setting = part.has_value && entry_ != nullptr &&
                            (is_current_setting(part.name) || !meaning_of(part.name));
    if (is_setting) return add_setting(part.name, part.value);
    const std::optional<Meaning> meaning = meaning_of(part.name);
    if (!meaning) {
      const std::string other = find_alternative(part.name) ? "" : with_equals(text);
      if (!other.empty()) return add(other);
      throw Error(no_such_transform(part.name));
    }
    entry_ = meaning->entry;
    steps_.emplace_back(entry_->name);
    has_settings_ = false;
    if (!meaning->settings.empty()) add_settings(meaning->settings);
    if (part.has_value) add_value(part, *meaning);
    if (!part.settings.empty()) add_settings(part.settings);
  }

  bool is_current_setting(std::string_view name) const {
    return entry_ != nullptr && has_setting(*entry_, name);
  }

  void add_value(const StepText& part, const Meaning& meaning) {
    if (!meaning.value.empty()) return add_setting(meaning.value, part.value);
    if (const Alternative* alternative = find_alternative(part.name))
      throw Error(fmt::format("{}: {}", part.name, alternative->text));
    const std::string value = normalized(part.value);
    if (value == "true" || value == "1" || value == "on" || value == "yes") return;
    throw Error(
        fmt::format("{0}: takes no value, got \"{1}\"; settings are given as {2}:setting=value, "
                    "see `foretrace help transform {2}`",
                    part.name, part.value, entry_->name));
  }

  void add_settings(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return add_text(text);
    add_setting(without_blanks(text.substr(0, equals)), without_blanks(text.substr(equals + 1)));
  }

  void add_setting(std::string_view name, std::string_view value) {
    add_text(fmt::format("{}={}", setting_of(*entry_, name), value));
  }

  void add_text(std::string_view setting) {
    steps_.back() += has_settings_ ? ',' : ':';
    steps_.back() += setting;
    has_settings_ = true;
  }

  std::vector<std::string> steps_;
  const TransformEntry* entry_ = nullptr;  ///< Transform of the last step.
  bool has_settings_ = false;
};

/// Words of four letters or more, in small letters.
std::vector<std::string> long_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  std::erase_if(words, [](const std::string& word) { return word.size() < 4; });
  return words;
}

/// Lists up to three transforms whose name, synonyms or summary share words with `name`.
std::string transforms_about(std::string_view name) {
  constexpr std::size_t kMax = 3;
  constexpr std::array<std::string_view, 6> kEverywhere = {"with", "that", "make",
                                                           "into", "each", "train"};
  std::vector<std::string> wanted = long_words(name);
  std::erase_if(wanted, [&](const std::string& word) {
    return std::find(kEverywhere.begin(), kEverywhere.end(), word) != kEverywhere.end();
  });
  std::vector<std::pair<std::ptrdiff_t, std::string_view>> found;
  for (const TransformEntry& entry : transforms()) {
    std::string text = fmt::format("{} {}", entry.name, entry.summary);
    for (const std::string_view word : synonyms_of(entry.name)) text += fmt::format(" {}", word);
    const std::vector<std::string> words = long_words(text);
    const auto fits = std::count_if(wanted.begin(), wanted.end(), [&](const std::string& word) {
      return std::any_of(words.begin(), words.end(), [&](const std::string& other) {
        return other.starts_with(word) || word.starts_with(other);
      });
    });
    if (fits > 0) found.emplace_back(-fits, entry.name);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kMax) found.resize(kMax);
  std::string all;
  for (const auto& [fits, transform] : found)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", transform);
  return all;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

const std::vector<Synonym>& synonyms() {
  static const std::vector<Synonym> all = {
#define SYNONYM(transform, words, settings, value) {#transform, words, settings, value},
#define ALTERNATIVE(words, text)
#define ELSEWHERE(words, text)
#include "transform/synonyms.def"
#undef ELSEWHERE
#undef ALTERNATIVE
#undef SYNONYM
  };
  return all;
}

#undef WORDS

std::vector<std::string_view> synonyms_of(std::string_view transform) {
  std::vector<std::string_view> all;
  for (const Synonym& synonym : synonyms()) {
    if (synonym.transform == transform)
      all.insert(all.end(), synonym.words.begin(), synonym.words.end());
  }
  return all;
}

std::string transform_called(std::string_view name) {
  const std::optional<Meaning> meaning = meaning_of(name);
  return meaning ? std::string(meaning->entry->name) : std::string();
}

std::string setting_path_called(std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::optional<Meaning> meaning = meaning_of(path.substr(0, dot));
  if (!meaning) return std::string(path);
  const std::string_view transform = meaning->entry->name;
  if (dot != std::string_view::npos)
    return fmt::format("{}.{}", transform, setting_of(*meaning->entry, path.substr(dot + 1)));
  if (meaning->value.empty()) return std::string(path);
  return fmt::format("{}.{}", transform, meaning->value);
}

std::vector<std::string> read_steps(std::string_view text) { return StepReader().read(text); }

std::string_view alternative_to(std::string_view name) {
  const Alternative* const alternative = find_alternative(name);
  return alternative ? alternative->text : std::string_view();
}

std::string_view question_about(std::string_view name) {
  const Alternative* const question = find_alternative(name, other_questions());
  return question ? question->text : std::string_view();
}

std::string devices_like(std::string_view name) {
  const std::string wanted = normalized(name);
  if (wanted.size() < 2) return {};
  const bool anywhere = wanted.size() > 2 && wanted.find_first_of("0123456789") != wanted.npos;
  std::string all;
  int count = 0;
  for (const std::string_view device : device_names()) {
    const std::size_t at = normalized(device).find(wanted);
    if ((at != 0 && !(anywhere && at != wanted.npos)) || ++count > 3) continue;
    all += fmt::format("{}faster_device:to={}", all.empty() ? "" : " or ", device);
  }
  return all + (count > 3 ? " ...; `foretrace list devices` shows all" : "");
}

std::string no_such_transform(std::string_view name) {
  const std::string problem = fmt::format("there is no transform \"{}\"", name);
  if (const Alternative* alternative = find_alternative(name))
    return fmt::format("{}: {}", problem, alternative->text);
  constexpr std::string_view kAll = "; `foretrace list transforms` shows all";
  // A scenario accepts only the transforms' own names.
  if (const std::optional<Meaning> meaning = meaning_of(name)) {
    std::string step(meaning->entry->name);
    if (!meaning->settings.empty()) step += fmt::format(":{}", meaning->settings);
    return fmt::format("{} (did you mean \"{}\"?){}", problem, step, kAll);
  }
  const std::size_t arrow = name.find("->");  // "a100 -> h100" asks for the second device.
  const std::string_view device = arrow == name.npos ? name : name.substr(arrow + 2);
  if (const std::string devices = devices_like(device); !devices.empty())
    return fmt::format("{}; to predict for that device, use {}", problem, devices);
  if (const std::string list = as_list(name); !list.empty())
    return fmt::format("{} (did you mean \"{}\"?){}", problem, list, kAll);
  if (const std::string_view question = question_about(name); !question.empty())
    return fmt::format("{}: {}", problem, question);
  std::vector<std::string_view> names;
  for (const TransformEntry& entry : transforms()) names.push_back(entry.name);
  if (const std::string near = did_you_mean(name, names); !near.empty())
    return fmt::format("{}{}{}", problem, near, kAll);
  const std::string related = transforms_about(name);
  return fmt::format("{}{}{}", problem,
                     related.empty() ? "" : fmt::format(" (related: {})", related), kAll);
}

}  // namespace foretrace
