#pragma once

// Commands of the command line. The file of a command adds its options and its action. Results go
// to `out`, everything else goes to stderr.

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_files.h"

namespace foretrace {

/// Exit codes of the process; the numbers are part of the contract.
enum ExitCode : int {
  kAnswered = 0,
  kCheckFailed = 1,
  kWrongUse = 2,
  kUnusableTrace = 3,
  kUndecided = 4,
  kBug = 70,
};

struct Session {
  CLI::App& app;  ///< The whole program, for help.
  std::ostream& out;
  int exit_code = kAnswered;
  CommandFiles files{};
  bool is_brief = false;
};

struct CommandEntry {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& command, Session& session);
};

/// Finds the nested command of a command such as `memory`. Returns nullptr if there is none of this
/// name.
const CLI::App* inner_command(const CLI::App& outer, std::string_view name);

/// Sorted by name.
const std::vector<CommandEntry>& commands();

#define COMMAND(name, summary) void add_##name(CLI::App& command, Session& session);
#include "cli/commands.def"
#undef COMMAND

/// Runs the program and returns its exit code. Never throws; an error is one line on `err`. With a
/// `root`, no file outside that folder is opened, and none is written.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
        const std::string& root = "");

}  // namespace foretrace
