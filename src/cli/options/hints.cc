#include "cli/options/hints.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <set>

#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

/// The command that people call by another name; empty if there is none.
std::string_view command_called(std::string_view word) {
  struct OtherNames {
    std::vector<std::string_view> words;
    std::string_view command;
  };
#define WORDS(...) \
  { __VA_ARGS__ }
  static const std::vector<OtherNames> all = {
#define NAMED(words, command) {words, command},
#include "cli/options/wanted.def"
#undef NAMED
  };
#undef WORDS
  for (const OtherNames& one : all) {
    const auto is_word = [&](std::string_view other) {
      return letters_and_digits(other) == letters_and_digits(word);
    };
    if (std::ranges::any_of(one.words, is_word)) return one.command;
  }
  return {};
}

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

/// Puts the first given path for TRACE, and for FOLDER if it is one, so that the text can be copied
/// into a shell.
std::string with_paths(std::string_view text, const std::vector<std::string>& given) {
  std::string all(text);
  const auto path = std::ranges::find_if(given, exists);
  if (path == given.end()) return all;
  std::error_code none;
  for (const std::string word : {" TRACE", " FOLDER"}) {
    if (word == " FOLDER" && !std::filesystem::is_directory(*path, none)) continue;
    for (std::size_t at = 0; (at = all.find(word, at)) != all.npos; at += path->size() + 1)
      all.replace(at, word.size(), ' ' + *path);
  }
  return all;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool has_option(const CLI::App& command, const std::string& option) {
  const std::vector<std::string> names = option_names(command);
  return std::ranges::find(names, option) != names.end();
}

/// The argument of the command that has this name in small letters: MODEL for "model".
std::string argument_called(const CLI::App& command, std::string_view word) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && lower_case(option->get_single_name()) == word)
      return option->get_single_name();
  }
  return {};
}

/// The commands that have this option: "info, kernels".
std::string commands_with(const CLI::App& app, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (has_option(*command, option)) names.push_back(command->get_name());
  }
  return joined(names);
}

/// The steps that a word and its value mean as a change, or advice in their place; empty if neither
/// is known.
std::string change_hint(const std::string& word, const std::string& value) {
  if (const std::string_view advice = alternative_to(word); !advice.empty())
    return ": " + std::string(advice);
  if (transform_called(word).empty()) return {};
  try {
    const std::vector<std::string> steps = read_steps(value.empty() ? word : word + '=' + value);
    return "; give changes as --with " + joined(steps, ",");
  } catch (const Error&) {
    return "; give changes as --with " + transform_called(word);
  }
}

/// The words between dashes, sorted.
std::vector<std::string> sorted_parts(std::string_view words) {
  std::vector<std::string> parts(1);
  for (const char c : words) {
    if (c == '-')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::ranges::sort(parts);
  return parts;
}

/// The option with the same words ("--total-steps" for "--steps-total"), or of which the word is a
/// part ("--limit" for "--memory-limit"), which is part of the word, or which begins with the
/// word's last part ("--memory-limit" for "--gpu-memory").
std::string option_like(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kMinLetters = 3;
  if (word.size() < kMinLetters) return {};
  const std::string asked = fmt::format("-{}-", word);
  for (const std::string& option : known) {
    if (sorted_parts(option.substr(2)) == sorted_parts(word)) return option;
  }
  for (const std::string& option : known) {
    const std::string parts = fmt::format("{}-", option.substr(1));
    if (parts.find(asked) != parts.npos || asked.find(parts) != asked.npos) return option;
  }
  const std::size_t last = word.rfind('-') + 1;
  const std::string begins = fmt::format("--{}-", word.substr(last));
  const auto like = std::ranges::find_if(
      known, [&](const std::string& option) { return option.starts_with(begins); });
  return last == 0 || like == known.end() ? std::string() : *like;
}

}  // namespace

std::string command_hint(std::string_view word, const std::vector<std::string>& names,
                         const std::vector<std::string>& given) {
  if (const std::string_view name = command_called(word); !name.empty())
    return fmt::format(" (did you mean \"{}\"?)", name);
  if (const std::string_view text = question_about(word); !text.empty())
    return ": " + with_paths(text, given);
  if (const std::string change = change_hint(std::string(word), {}); change.starts_with(": "))
    return change;
  if (const std::string step = transform_called(word); !step.empty())
    return with_paths(
        fmt::format(": ask `foretrace predict TRACE --with {}`", joined(read_steps(word), ",")),
        given);
  if (const std::string steps = devices_like(word); !steps.empty())
    return with_paths(": ask `foretrace predict TRACE --with STEP`, where STEP is " + steps, given);
  return did_you_mean(word, names);
}

std::string option_hint(const CLI::App& app, const CLI::App& command, const std::string& option,
                        const std::string& value) {
  const std::string word = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  const bool reads_trace = !argument_called(command, "trace").empty();
  if (has_option(command, "--with") || reads_trace) {
    const std::string hint = change_hint(word, value);
    if (hint.starts_with(": ") || (!hint.empty() && has_option(command, "--with"))) return hint;
  }
  if (const std::string argument = argument_called(command, word); !argument.empty())
    return fmt::format("; give {} without it", argument);
  const std::vector<std::string> known = option_names(command);
  if (const std::string like = option_like(word, known); !like.empty())
    return fmt::format(" (did you mean \"{}\"?)", like);
  if (const std::string_view text = question_about(word); reads_trace && !text.empty())
    return ": " + std::string(text);
  if (const std::string others = commands_with(app, option); !others.empty())
    return fmt::format(", which is one of {}", others);
  return did_you_mean(option, known);
}

std::string argument_hint(const CLI::App& command, const std::string& extra) {
  if (has_option(command, "--with") && !transform_called(extra).empty())
    return "; give changes as --with " + extra;
  if (has_option(command, "--memory-limit") && letters_and_digits(extra).ends_with("b") &&
      extra.find_first_of("0123456789") == 0)
    return "; give memory as --memory-limit " + extra;
  if (!argument_called(command, "trace").empty() && exists(extra))
    return "; `foretrace diff A B` compares two recordings";
  return {};
}

}  // namespace foretrace
