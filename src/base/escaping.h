#pragma once

#include <string>
#include <string_view>

namespace foretrace {

enum class LineBreaks { stay, escaped };
/// Treatment of commands to build servers. `pass` lets commands through that begin a line with
/// "::".
enum class Commands { stay, pass, escaped };

/// Escapes text that a terminal or a build server would interpret; see shown.h. Text may come in
/// pieces.
///
/// Build servers recognize commands like this: GitHub by "::" at the start of a line after optional
/// blanks, and by "##[" anywhere in it (actions/runner, ActionCommand.cs); Azure by "##vso["
/// anywhere (azure-pipelines-agent, Command.cs), TeamCity by "##teamcity[". Sections of GitLab and
/// folds of Travis need control characters.
class Escaping {
 public:
  Escaping(LineBreaks line_breaks, Commands commands)
      : line_breaks_(line_breaks), commands_(commands) {}

  void set(Commands commands) { commands_ = commands; }
  /// Appends the escaped `text` to `to`.
  void add(std::string_view text, std::string& to);
  /// Appends the escape of an unfinished character.
  void end(std::string& to);

 private:
  /// How much of a leading "::" the line has so far.
  enum class Line { begins, has_colon, goes_on };

  void add_ascii(char c, std::string& to);
  void add_wide(char c, std::string& to);
  bool is_end_of_command(char c);
  bool is_harmless(char c) const;

  LineBreaks line_breaks_;
  Commands commands_;
  Line line_ = Line::begins;
  int hashes_ = 0;       ///< Number of '#' before here, followed by letters; at most 2.
  std::string pending_;  ///< Bytes of an incomplete character.
};

}  // namespace foretrace
