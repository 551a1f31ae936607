#pragma once

// Commands of the command line. The file of a command adds its options and its action. Results go
// to `out`, everything else goes to stderr.

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_files.h"
#include "cli/options/run.h"

namespace foretrace {

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

}  // namespace foretrace
