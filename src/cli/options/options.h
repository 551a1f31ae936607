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
#include "cli/options/part.h"
#include "foretrace/import.h"

namespace foretrace {

/// Adds the options of a Command to `command`, and runs it when it is called, unless it would
/// overwrite one of its inputs.
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

/// How traces are read: --no-cache, --cache-dir and --max-unpacked, and others that a command adds.
class ReadingOptions {
 public:
  void add_to(CLI::App& command);
  /// --execution-trace.
  void add_execution_trace_to(CLI::App& command);
  /// --steps and --window.
  void add_part_to(CLI::App& command) { part_.add_to(command); }

  /// Throws Error on an invalid size or range.
  ImportOptions options() const;

 private:
  bool no_cache_ = false;
  std::string cache_folder_, max_unpacked_, execution_trace_;
  PartOption part_;
};

/// Warns on stderr about the cost of a large recording, and how to read only a part of it, before
/// it is read; silent if only a part is requested.
void say_if_large(const std::string& path, const ImportOptions& reading, bool quiet);

/// --output: results go to a file instead of standard output.
struct OutputOption {
  std::string path;
  void add_to(CLI::App& command);
  /// The same by another name, such as --html.
  void add_to(CLI::App& command, const std::string& name, const std::string& help);
  /// Throws Error if the file cannot be written.
  void write(Session& session, const std::function<void(std::ostream&)>& answer) const;
};

/// --format of a command that has these.
struct FormatOption {
  std::vector<std::string_view> names;
  std::string chosen;
  void add_to(CLI::App& command);
  /// Throws Error, with the nearest, if the chosen one is not among the names.
  void check() const;
};

/// For commands that examine traces: the format of the answer, and where copies of traces are kept.
struct AnswerOptions {
  bool quiet = false;
  FormatOption format{{"text", "json"}, "text"};
  ReadingOptions reading;
  OutputOption output;
  void add_to(CLI::App& command);
};

/// The argument of commands that take one trace.
void add_trace(CLI::App& command, std::string& trace);

/// Indented, with a line break at the end.
void print_json(const nlohmann::json& value, std::ostream& out);
/// Writes what to_json() of report.h makes of an answer; options.cc lists the answers of commands.
template <class Answer>
void print_answer(const Answer& answer, std::ostream& out);

}  // namespace foretrace
