#include "cli/options/run.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <new>
#include <optional>

#include "base/shown.h"
#include "base/wording.h"
#include "cli/options/command.h"
#include "cli/options/hints.h"
#include "foretrace/error.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

/// Shows commands to try first.
void write_overview(std::ostream& out) {
  out << "Foretrace predicts from one trace how long a training job would take after a change.\n\n"
         "  foretrace info job.json.gz                     what a trace contains\n"
         "  foretrace advise job.json.gz                   what limits the job, and what would "
         "help\n"
         "  foretrace predict job.json.gz --with amp       what if: --with may be repeated\n"
         "  foretrace memory job.json.gz --memory-limit rtx-4090    would it fit\n"
         "  foretrace scale job.json.gz --machine dgx-h100 --gpus 1..64   on more GPUs\n\n"
         "A trace is what the PyTorch profiler, Nsight Systems or `foretrace collect` wrote.\n"
         "`foretrace list commands` shows all commands, `foretrace list transforms` all changes,\n"
         "and `foretrace help COMMAND` the options of one.\n";
}

void check_command(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CommandEntry& command : outer_commands()) {
    if (command.name == argv[1]) return;
    names.push_back(command.name);
  }
  const std::string word = argv[1];
  const std::vector<std::string> given(argv + 2, argv + argc);
  std::error_code none;
  const auto exists = [&](const std::string& path) { return std::filesystem::exists(path, none); };
  if (exists(word) && !given.empty() && exists(given.front()))
    throw Error(fmt::format(
        "which command? `foretrace diff {} {}` shows which is faster and why; `foretrace list "
        "commands` shows all",
        word, given.front()));
  if (exists(word))
    throw Error(
        fmt::format("which command? `foretrace advise {}` shows what limits the job and what would "
                    "help; `foretrace list commands` shows all",
                    word));
  throw Error(fmt::format("there is no command '{}'{}; `foretrace list commands` shows all", word,
                          command_hint(word, names, given)));
}

/// Refuses arguments that the command does not take, and suggests what may have been meant.
[[noreturn]] void refuse_extras(const CLI::App& app, const CLI::App& outer) {
  const CLI::App& command =
      outer.get_subcommands().empty() ? outer : *outer.get_subcommands().front();
  const std::string name = outer.get_name() + (&command == &outer ? "" : " " + command.get_name());
  const std::string see = fmt::format("; see `foretrace help {}`", name);
  const std::vector<std::string> extras = command.remaining();
  const auto option =
      std::ranges::find_if(extras, [](const std::string& extra) { return extra.starts_with('-'); });
  if (option != extras.end()) {
    const bool has_value = option + 1 != extras.end() && !(option + 1)->starts_with('-');
    throw Error(fmt::format("{}: there is no option '{}'{}{}", name, *option,
                            option_hint(app, command, *option, has_value ? *(option + 1) : ""),
                            see));
  }
  const std::string extra = extras.empty() ? "" : extras.front();
  throw Error(fmt::format("{}: '{}' is an unexpected argument{}{}", name, extra,
                          argument_hint(command, extra), see));
}

/// Turns any other error that CLI11 reports about the command line into ours.
[[noreturn]] void refuse(const CLI::ParseError& error, const CLI::App& app, int argc,
                         const char* const* argv) {
  std::string command = argv[1][0] == '-' ? "" : std::string(argv[1]);
  const CLI::App* outer = inner_command(app, command);
  if (outer && argc > 2 && inner_command(*outer, argv[2])) command += ' ' + std::string(argv[2]);
  std::string about;
  std::string what = error.what();
  if (const std::size_t count = what.find(": 1 required "); count != what.npos)
    what = fmt::format("{} needs a value, {}", what.substr(0, count),
                       what.substr(count + 13, what.rfind(' ') - count - 13));
  if (outer && what.ends_with(" is required")) {
    const std::string missing = what.substr(0, what.find(' '));
    if (const CLI::Option* option = outer->get_option_no_throw(missing);
        option && missing.starts_with("--"))
      about = fmt::format(" ({})", option->get_description());
  }
  throw Error(fmt::format("{}{}{}; see `foretrace {}`", command.empty() ? "" : command + ": ", what,
                          about, command.empty() ? "--help" : "help " + command));
}

/// Returns the help of the requested command, or of its nested one.
std::string help_text(const CLI::App& app) {
  std::string path;
  const CLI::App* asked = &app;
  while (!asked->get_subcommands().empty()) {
    path += (path.empty() ? "" : " ") + asked->get_name();
    asked = asked->get_subcommands().front();
  }
  return path.empty() ? app.help() : asked->help(path);
}

int parse_and_call(int argc, const char* const* argv, Invocation& invocation) {
  if (argc < 2 || (argc == 2 && std::string_view(argv[1]) == "help")) {
    write_overview(invocation.out);
    return kAnswered;
  }
  check_command(argc, argv);
  try {
    invocation.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    invocation.out << help_text(invocation.app);
  } catch (const CLI::CallForAllHelp&) {
    invocation.out << invocation.app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::CallForVersion&) {
    invocation.out << "foretrace " << kVersion << '\n';
  } catch (const CLI::ExtrasError& error) {
    if (argc < 2 || argv[1][0] == '-') refuse(error, invocation.app, argc, argv);
    refuse_extras(invocation.app, *invocation.app.get_subcommand(argv[1]));
  } catch (const CLI::ParseError& error) {
    refuse(error, invocation.app, argc, argv);
  }
  invocation.out.flush();
  if (!invocation.out) throw Error("cannot write the result to standard output");
  return invocation.exit_code;
}

/// Shortens words and whole texts that only a damaged or hostile name makes so long; both ends
/// stay.
std::string brief_error(std::string_view text) {
  const auto cut = [](std::string_view part, std::size_t most) {
    if (part.size() <= most) return std::string(part);
    std::size_t end = part.size() - most / 4;
    while (end < part.size() && (static_cast<unsigned char>(part[end]) & 0xc0U) == 0x80) ++end;
    return shortened(part, most / 2) + std::string(part.substr(end));
  };
  constexpr std::size_t kMaxWord = 1'000, kMaxText = 8'000;
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size() - 1) + 1;
    all += cut(text.substr(at, end - at), kMaxWord);
    at = end;
  }
  return cut(all, kMaxText);
}

}  // namespace

const CLI::App* inner_command(const CLI::App& outer, std::string_view name) {
  const auto found =
      outer.get_subcommands([&](const CLI::App* inner) { return inner->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
        const std::string& root) {
  CLI::App app(
      "Foretrace predicts from one trace how long a training job would take after a change.",
      "foretrace");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Invocation invocation{app, out};
  invocation.files.confine_to(root);
  add_commands(app, invocation);
  // No name in a trace can repaint a terminal or pass commands to a build server, wherever it is
  // printed.
  const EscapedOutput wall_of_out(out), wall_of_err(err);
  std::optional<EscapedOutput> wall_of_cerr;
  if (&err != &std::cerr) wall_of_cerr.emplace(std::cerr);
  try {
    return parse_and_call(argc, argv, invocation);
  } catch (const TraceError& error) {
    err << "foretrace: " << shown(brief_error(error.what())) << '\n';
    return kUnusableTrace;
  } catch (const Error& error) {
    err << "foretrace: " << shown(brief_error(error.what())) << '\n';
    return kWrongUse;
  } catch (const std::bad_alloc&) {
    err << "foretrace: this needs more memory than is available; if the trace is large, --steps or "
           "--window reads only a part of it\n";
    return kUnusableTrace;
  } catch (const std::exception& error) {
    err << "foretrace: this is a bug, please report it: " << shown(brief_error(error.what()))
        << '\n';
    return kBug;
  }
}

}  // namespace foretrace
