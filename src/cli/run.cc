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
#include "foretrace/error.h"
#include "foretrace/version.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

/// Names that people use for commands, each with the name that the command has here.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"analyse", "advise"},   {"analyze", "advise"},   {"bottleneck", "advise"},
    {"capture", "collect"},  {"ci", "check"},         {"compare", "diff"},
    {"dataloader", "input"}, {"estimate", "predict"}, {"explain", "advise"},
    {"export", "convert"},   {"gate", "check"},       {"gpus", "list"},
    {"loader", "input"},     {"mem", "memory"},       {"oom", "memory"},
    {"optimise", "advise"},  {"optimize", "advise"},  {"profile", "collect"},
    {"record", "collect"},   {"regression", "check"}, {"run", "predict"},
    {"show", "info"},        {"simulate", "predict"}, {"stats", "info"},
    {"suggest", "advise"},   {"summary", "info"},     {"trace", "collect"},
    {"transforms", "list"},  {"what-if", "predict"},  {"whatif", "predict"},
    {"why", "advise"},
};

/// Words for what people want to know, and how to ask it.
constexpr std::pair<std::string_view, std::string_view> kWanted[] = {
    {"collectives", "`foretrace doctor` and `foretrace predict` on the folder of all ranks"},
    {"cost", "`foretrace plan MODEL --machine NAME --prices FILE`, which ranks layouts by price"},
    {"dollars",
     "`foretrace plan MODEL --machine NAME --prices FILE`, which ranks layouts by price"},
    {"fit", "`foretrace memory TRACE --memory-limit 24GB`, or --memory-limit rtx-4090"},
    {"fits", "`foretrace memory TRACE --memory-limit 24GB`, or --memory-limit rtx-4090"},
    {"gpu", "`foretrace predict TRACE --machine rtx-4090`; `foretrace list devices` shows all"},
    {"hotspots", "`foretrace kernels TRACE`, by op and shape"},
    {"price", "`foretrace plan MODEL --machine NAME --prices FILE`, which ranks layouts by price"},
    {"kv_cache", "`foretrace serve MODEL --machine NAME`, which shows the memory of the cache"},
    {"max_num_seqs", "`foretrace serve MODEL --machine NAME --vary max_num_seqs=32,64,128`"},
    {"ranks", "`foretrace advise FOLDER`, which names the rank that the others wait for"},
    {"straggler", "`foretrace advise FOLDER`, which names the rank that the others wait for"},
    {"tpot", "`foretrace serve MODEL --machine NAME --load concurrency=32`"},
    {"top", "`foretrace kernels TRACE`, by op and shape"},
    {"ttft", "`foretrace serve MODEL --machine NAME --load concurrency=32`"},
    {"utilization", "`foretrace advise TRACE`, which says what keeps the device from being busy"},
};

/// Words for figures that Foretrace does not predict.
constexpr std::string_view kNotPredicted[] = {
    "accuracy", "carbon", "checkpoint_interval", "energy", "loss", "mtbf", "power"};

/// Returns " (did you mean "diff"?)", or where the answer is, or an empty text if nothing is near.
std::string command_hint(std::string_view word, const std::vector<std::string>& names) {
  for (const auto& [other, name] : kOtherNames) {
    if (other == word) return fmt::format(" (did you mean \"{}\"?)", name);
  }
  for (const auto& [other, command] : kWanted) {
    if (other == word) return fmt::format(": ask {}", command);
  }
  for (const std::string_view other : kNotPredicted) {
    if (other == word) return ": that is not predicted";
  }
  if (const std::string_view substitute = alternative_to(word); !substitute.empty())
    return ": " + std::string(substitute);
  return did_you_mean(word, names);
}

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
  std::error_code none;
  if (std::filesystem::exists(word, none))
    throw Error(
        fmt::format("which command? `foretrace advise {}` shows what limits the job and what would "
                    "help; `foretrace list commands` shows all",
                    word));
  throw Error(fmt::format("there is no command '{}'{}; `foretrace list commands` shows all", word,
                          command_hint(word, names)));
}

/// Suggests "--memory-limit" for "--limit", and --with for the name of a transform ("--amp").
/// Returns an empty text if nothing is near.
std::string option_hint(const std::string& extra, const std::vector<std::string_view>& known) {
  const std::string word = extra.substr(std::min(extra.find_first_not_of('-'), extra.size()));
  const bool changes = std::find(known.begin(), known.end(), "--with") != known.end();
  if (changes && !transform_called(word).empty())
    return "; give changes as --with " + transform_called(word);
  if (const std::string_view substitute = alternative_to(word); changes && !substitute.empty())
    return ": " + std::string(substitute);
  if (word.size() < 3) return did_you_mean(extra, known);
  for (const std::string_view option : known) {
    const std::string parts = fmt::format("{}-", option.substr(1));
    if (parts.find(fmt::format("-{}-", word)) != std::string::npos)
      return fmt::format(" (did you mean \"{}\"?)", option);
  }
  return did_you_mean(extra, known);
}

/// Refuses arguments that the command does not take, and suggests what may have been meant.
[[noreturn]] void refuse_extras(const CLI::App& outer) {
  const CLI::App& command =
      outer.get_subcommands().empty() ? outer : *outer.get_subcommands().front();
  const std::string name = outer.get_name() + (&command == &outer ? "" : " " + command.get_name());
  const std::string see = fmt::format("; see `foretrace help {}`", name);
  const std::vector<std::string> extras = command.remaining();
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) options.push_back("--" + known);
  }
  const std::vector<std::string_view> known(options.begin(), options.end());
  for (const std::string& extra : extras) {
    if (!extra.starts_with('-')) continue;
    throw Error(fmt::format("{}: there is no option '{}'{}{}", name, extra,
                            option_hint(extra, known), see));
  }
  const std::string extra = extras.empty() ? "" : extras.front();
  const bool changes = std::find(known.begin(), known.end(), "--with") != known.end();
  const std::string step = changes ? transform_called(extra) : "";
  throw Error(fmt::format("{}: '{}' is an unexpected argument{}{}", name, extra,
                          step.empty() ? "" : "; give changes as --with " + extra, see));
}

/// Turns any other error that CLI11 reports about the command line into ours.
[[noreturn]] void refuse(const CLI::ParseError& error, const CLI::App& app, int argc,
                         const char* const* argv) {
  std::string command = argv[1][0] == '-' ? "" : std::string(argv[1]);
  const CLI::App* outer = inner_command(app, command);
  if (outer && argc > 2 && inner_command(*outer, argv[2])) command += ' ' + std::string(argv[2]);
  throw Error(fmt::format("{}{}; see `foretrace {}`", command.empty() ? "" : command + ": ",
                          error.what(), command.empty() ? "--help" : "help " + command));
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
    refuse_extras(*invocation.app.get_subcommand(argv[1]));
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
