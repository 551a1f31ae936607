#pragma once

// Options that several commands have.

#include <functional>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/brief.h"
#include "cli/options/command.h"
#include "cli/options/trace_part_option.h"
#include "foretrace/import.h"

namespace foretrace {

/// Adds the options of a Command to `command`, and runs the Command when it is called, unless it
/// would overwrite one of its inputs.
template <class Command>
void add_command(CLI::App& command, Session& session) {
  const auto added = std::make_shared<Command>();
  added->add_to(command);
  command.callback([added, &command, &session] {
    check_brief(command, session.is_brief);
    session.files.read_command_line(command);
    added->run(session);
  });
}

/// The options of how traces are read: --no-cache, --no-run, --cache-dir and --max-unpacked, and
/// further ones that some commands add.
class ReadingOptions {
 public:
  void add_to(CLI::App& command);
  /// Adds --execution-trace.
  void add_execution_trace_to(CLI::App& command);
  /// Adds --steps and --window.
  void add_part_to(CLI::App& command) { part_.add_to(command); }

  /// Throws Error on an invalid size or range.
  ImportOptions options() const;

 private:
  bool no_cache_ = false, no_run_ = false;
  std::string cache_folder_, max_unpacked_, execution_trace_;
  TracePartOption part_;
};

/// Warns on stderr, before a large recording is read, about its cost and how to read only a part of
/// it. Does nothing if only a part is requested.
void warn_if_large(const std::string& path, const ImportOptions& reading, bool quiet);

/// --output: results go to a file instead of standard output.
struct OutputOption {
  std::string path;
  void add_to(CLI::App& command);
  /// Adds the option with another name, such as --html.
  void add_to(CLI::App& command, const std::string& name, const std::string& help);
  /// Throws Error if the file cannot be written.
  void write(Session& session, const std::function<void(std::ostream&)>& answer) const;
};

/// --format, with the names of the formats that a command has.
struct FormatOption {
  std::vector<std::string_view> names;
  std::string chosen;
  void add_to(CLI::App& command);
  /// Throws Error, which suggests the nearest name, if the chosen one is unknown.
  void check() const;
};

/// The options of commands that examine traces: how the answer is written and how traces are read.
struct AnswerOptions {
  bool quiet = false;
  FormatOption format{{"text", "json"}, "text"};
  ReadingOptions reading;
  OutputOption output;
  void add_to(CLI::App& command);
};

/// Adds the argument TRACE, for commands that take one trace.
void add_trace(CLI::App& command, std::string& trace);

/// Prints indented JSON with a line break at the end.
void print_json(const nlohmann::json& value, std::ostream& out);
/// Prints the answer as to_json() of report.h converts it. options.cc instantiates this for the
/// answers of all commands.
template <class Answer>
void print_answer(const Answer& answer, std::ostream& out);

}  // namespace foretrace
