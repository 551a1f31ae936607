#pragma once

#include <string>
#include <string_view>

namespace foretrace {

enum class LineBreaks { stay, escaped };
/// `pass`: commands that begin a line pass.
enum class Commands { stay, pass, escaped };

/// Escapes text that a terminal or a build server would obey; see shown.h. Text may come in pieces.
///
/// How build servers recognize commands: GitHub takes "::" at the start of a line, blanks aside,
/// and "##[" anywhere in it (actions/runner, ActionCommand.cs); Azure takes "##vso[" anywhere
/// (azure-pipelines-agent, Command.cs), TeamCity "##teamcity[". Sections of GitLab and folds of
/// Travis need control characters.
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
  /// How far the line has come to a "::" that would be obeyed.
  enum class Line { begins, has_colon, goes_on };

  void add_ascii(char c, std::string& to);
  void add_wide(char c, std::string& to);
  bool is_end_of_command(char c);
  bool is_harmless(char c) const;

  LineBreaks line_breaks_;
  Commands commands_;
  Line line_ = Line::begins;
  int hashes_ = 0;       ///< Number of '#' before here, followed by letters; at most 2.
  std::string pending_;  ///< Bytes of a character whose end has not come.
};

}  // namespace foretrace
