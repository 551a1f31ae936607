#pragma once

// Commands of the command line. Most ask a question (question.h); the others have a file in
// commands/. Both list their settings, and options, help and files follow from the list. Results go
// to `out`, everything else goes to stderr.

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/question.h"
#include "question/files.h"

namespace foretrace {

/// One run of the program.
struct Invocation {
  CLI::App& app;  ///< The whole program, for help.
  std::ostream& out;
  int exit_code = kAnswered;
  QuestionFiles files{};
};

/// A command that is no question.
class Command : public Described {
 public:
  virtual void run(Invocation& invocation) = 0;
  /// Text that help shows below the options.
  virtual std::string remarks() const { return {}; }
  /// Whether words are only taken for arguments once a positional argument was given.
  virtual bool runs_a_program() const { return false; }
};

#define COMMAND(name, summary) std::unique_ptr<Command> make_##name##_command();
#include "cli/commands.def"
#undef COMMAND

struct CommandEntry {
  std::string name;  ///< "plan" or "plan show".
  std::string_view summary;
};
/// All commands that are not nested in another, sorted by name.
std::vector<CommandEntry> outer_commands();

/// Adds all commands to the program.
void add_commands(CLI::App& app, Invocation& invocation);

/// Finds the nested command of a command such as `memory`. Returns nullptr if there is none of this
/// name.
const CLI::App* inner_command(const CLI::App& outer, std::string_view name);

}  // namespace foretrace
