#pragma once

// Text from untrusted sources, made harmless where it is shown. A name in a trace, a path or a
// scenario may contain any bytes: an escape sequence that repaints a terminal, a line break
// followed by a command for a build server, a mark that reverses the order of letters. Two walls
// stop them:
//
//     name --shown()--> cell or sentence --ShownOn--> terminal, log, file
//
// ShownOn is around every answer and all of stderr, so that nothing can be printed past it: it
// escapes everything that a terminal or a build server would obey, whatever its source. It cannot
// distinguish our line breaks from those of a name; shown(), in the pieces of cells and sentences,
// keeps a name in its line. Escapes are those of JSON ("\u001b"), so that an answer in JSON means
// the same behind the wall; an invalid UTF-8 byte becomes "\xff".

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace foretrace {

/// `text` on one line: control characters, including line breaks and tabs, marks that order letters
/// and characters without a width become escapes. Idempotent.
std::string shown(std::string_view text);

/// The same for a text of ours whose line breaks shall stay.
std::string shown_lines(std::string_view text);

/// A whole answer, as ShownOn passes it; for answers written to files in pieces.
std::string shown_answer(std::string_view text);

/// Markdown that shows `text` literally, on one line, at the begin of a block: no markup, HTML,
/// heading, list, link, image, formula, mention (@name) or reference (#12).
std::string markdown_text(std::string_view text);

/// The same inside a line, such as a cell of a table: text with a meaning only at the start of a
/// block, "-" or "1.", stays as it is.
std::string markdown_cell(std::string_view text);

/// A cell of CSV that a spreadsheet does not read as a formula: texts that begin with =, +, - or @
/// and are not numbers get a leading apostrophe, as spreadsheets mark texts. Not in quotes yet.
std::string csv_cell(std::string_view text);
/// The text that csv_cell() was given, if that had nothing to show as an escape.
std::string_view text_of_csv_cell(std::string_view cell);

class ShownBuffer;

/// While it lives, all output to `out` is escaped; lines stay lines, but - what shown() escapes,
/// except line breaks and tabs, is escaped; - "::" at the start of a line, and "##[", "##vso[" and
/// the like anywhere, by which build servers
///    recognize commands, become ":\u003a" and "##\u005b".
/// REQUIRES: `out` outlives it, and keeps its buffer.
class ShownOn {
 public:
  explicit ShownOn(std::ostream& out);
  ShownOn(const ShownOn&) = delete;
  ShownOn& operator=(const ShownOn&) = delete;
  ~ShownOn();

 private:
  std::ostream& out_;
  std::streambuf* below_;
  std::unique_ptr<ShownBuffer> buffer_;
};

/// While it lives, commands that begin a line with "::" pass the wall around `out`, if there is
/// one; for writers that escape the content of a command.
class CommandsPass {
 public:
  explicit CommandsPass(std::ostream& out);
  CommandsPass(const CommandsPass&) = delete;
  CommandsPass& operator=(const CommandsPass&) = delete;
  ~CommandsPass();

 private:
  ShownBuffer* wall_;
};

}  // namespace foretrace
