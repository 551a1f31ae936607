// Scripts with which a shell completes command lines. They are made from the same options that
// parse a command line, so the two cannot disagree. The name of an option's type tells which values
// are possible: "text|json" are words, "FILE" and "TRACE" are paths, "STEP" is a transform.

#include <algorithm>
#include <fmt/core.h>
#include <sstream>

#include "base/wording.h"
#include "cli/options/command.h"
#include "foretrace/transform.h"

namespace foretrace {
namespace {

std::string all_names(const auto& entries) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return joined(names, " ");
}

std::string all_transforms() { return all_names(transforms()); }
std::string all_commands() { return all_names(outer_commands()); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

/// Names of values that are paths.
constexpr std::string_view kPaths[] = {"FILE",     "FOLDER",     "TRACE", "TRACES", "OUT",
                                       "SCENARIO", "PREDICTION", "A",     "B",      "FILES"};

/// The values that may follow an option.
struct CompletionValues {
  std::string words;  ///< Separated by spaces.
  bool paths = false;
};

CompletionValues values_of_type(const std::string& type) {
  if (type == "STEP") return {.words = all_transforms()};
  if (type == "TOPIC")
    return {.words = fmt::format("{} transform allocator {}", all_commands(), all_transforms())};
  CompletionValues values;
  std::istringstream parts(type);
  for (std::string part; std::getline(parts, part, '|');) {
    if (std::find(std::begin(kPaths), std::end(kPaths), part) != std::end(kPaths)) {
      values.paths = true;
    } else if (!part.empty() && part.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ= ") == part.npos) {
      values.words += (values.words.empty() ? "" : " ") + part;
    }
  }
  return values;
}

/// Returns the values of arguments that are not options, including the names of nested commands.
CompletionValues positional_values(const CLI::App& command) {
  CompletionValues all;
  for (const CLI::App* inner : command.get_subcommands({}))
    all.words += (all.words.empty() ? "" : " ") + inner->get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    for (const CompletionValues& one :
         {values_of_type(name), values_of_type(option->get_type_name())}) {
      all.words += (all.words.empty() || one.words.empty() ? "" : " ") + one.words;
      all.paths = all.paths || one.paths;
    }
  }
  return all;
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

std::string bash_reply(const CompletionValues& values) {
  std::string line = "COMPREPLY=(";
  if (!values.words.empty()) line += "$(compgen -W '" + values.words + "' -- \"$current\")";
  if (values.paths)
    line += std::string(values.words.empty() ? "" : " ") + "$(compgen -f -- \"$current\")";
  return line + ")";
}

void write_bash_command(const CLI::App& command, std::ostream& out) {
  out << "    " << command.get_name() << ")\n      case \"$previous\" in\n";
  std::string options;
  for (const CLI::Option* option : command.get_options()) {
    std::string pattern;
    for (const std::string& name : spellings(*option)) {
      options += (options.empty() ? "" : " ") + name;
      pattern += (pattern.empty() ? "" : "|") + name;
    }
    if (pattern.empty() || !takes_value(*option)) continue;
    out << "        " << pattern << ") " << bash_reply(values_of_type(option->get_type_name()))
        << "; return ;;\n";
  }
  out << "      esac\n      if [[ $current == -* ]]; then " << bash_reply({.words = options})
      << "; else " << bash_reply(positional_values(command)) << "; fi ;;\n";
}

/// Bash splits words at '=' and ':', so values are not taken from "${COMP_WORDS[@]}": of a step,
/// only the transform's name is completed.
void write_bash(const CLI::App& app, std::ostream& out) {
  out << "_foretrace() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  COMPREPLY=()\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n    "
      << bash_reply({.words = all_commands() + " --help --version"})
      << "\n    return\n  fi\n"
         "  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : app.get_subcommands({})) write_bash_command(*command, out);
  out << "  esac\n}\ncomplete -o filenames -F _foretrace foretrace\n";
}

void write_zsh(const CLI::App& app, std::ostream& out) {
  out << "#compdef foretrace\nautoload -U +X bashcompinit && bashcompinit\n";
  write_bash(app, out);
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

void write_fish_command(const CLI::App& command, std::ostream& out) {
  const std::string begin =
      fmt::format("complete -c foretrace -n '__fish_seen_subcommand_from {}'", command.get_name());
  const CompletionValues arguments = positional_values(command);
  out << begin << (arguments.paths ? " -F" : " -f");
  if (!arguments.words.empty()) out << " -a " << fish_quoted(arguments.words);
  out << '\n';
  for (const CLI::Option* option : command.get_options()) {
    if (spellings(*option).empty()) continue;
    out << begin;
    for (const std::string& name : option->get_snames()) out << " -s " << name;
    for (const std::string& name : option->get_lnames()) out << " -l " << name;
    if (takes_value(*option)) {
      const CompletionValues values = values_of_type(option->get_type_name());
      out << (values.paths ? " -r -F" : " -x");
      if (!values.words.empty()) out << " -a " << fish_quoted(values.words);
    }
    out << " -d " << fish_quoted(option->get_description()) << '\n';
  }
}

void write_fish(const CLI::App& app, std::ostream& out) {
  for (const CLI::App* command : app.get_subcommands({})) {
    out << "complete -c foretrace -n __fish_use_subcommand -f -a " << command->get_name() << " -d "
        << fish_quoted(command->get_description()) << '\n';
  }
  for (const CLI::App* command : app.get_subcommands({})) write_fish_command(*command, out);
}

class CompletionCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "SHELL", .is_positional = true, .is_required = true})
        .choice("shell", shell_, {"bash", "fish", "zsh"},
                "To enable it in the running shell: source <(foretrace completion bash)");
  }

  void run(Invocation& invocation) override {
    if (shell_ == "bash") return write_bash(invocation.app, invocation.out);
    if (shell_ == "zsh") return write_zsh(invocation.app, invocation.out);
    write_fish(invocation.app, invocation.out);
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion_command() { return std::make_unique<CompletionCommand>(); }

}  // namespace foretrace
