#pragma once

// Options that several commands have.

#include <functional>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "foretrace/import.h"

namespace foretrace {

/// Gives `command` the options of a Command, and runs it when it is called, unless it would write
/// over what it reads.
template <class Command>
void add_command(CLI::App& command, Session& session) {
  const auto added = std::make_shared<Command>();
  added->add_to(command);
  command.callback([added, &command, &session] {
    session.files.read_command_line(command);
    added->run(session);
  });
}

/// How traces are read: --no-cache, --cache-dir and --max-unpacked.
struct CacheOptions {
  bool off = false;
  std::string folder;
  std::string most_unpacked;
  void add_to(CLI::App& command);
  /// Where to keep copies of slow traces; empty: nowhere.
  std::string chosen() const;
  /// As in ImportOptions. Throws Error if it is no size.
  std::int64_t max_unpacked() const;
};

/// --execution-trace.
struct ExecutionTraceOption {
  std::string path;
  void add_to(CLI::App& command);
};

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

/// Of the commands that examine traces: how to answer, and where copies of traces are kept.
struct AnswerOptions {
  bool quiet = false;
  FormatOption format{{"text", "json"}, "text"};
  CacheOptions cache;
  OutputOption output;
  void add_to(CLI::App& command);
};

/// The argument of those that take one.
void add_trace(CLI::App& command, std::string& trace);

/// Indented, with a line break at the end.
void print_json(const nlohmann::json& value, std::ostream& out);

}  // namespace foretrace
