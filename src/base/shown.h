#pragma once

// Text from untrusted sources, made harmless where it is shown. A name in a trace, a path or a
// scenario may contain any bytes: an escape sequence that repaints a terminal, a line break
// followed by a command for a build server, a mark that reverses the order of letters. Two walls
// stop them:
//
//     name --shown()--> cell or sentence --EscapedOutput--> terminal, log, file
//
// EscapedOutput wraps every answer and all of stderr, so that nothing can be printed past it: it
// escapes everything that a terminal or a build server would interpret, whatever its source. It
// cannot distinguish our line breaks from those of a name; shown(), applied to the pieces of cells
// and sentences, keeps a name on its line. Escapes are those of JSON ("\u001b"), so that an answer
// in JSON means the same behind the wall; an invalid UTF-8 byte becomes "\xff".

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace foretrace {

/// Returns `text` on one line: control characters (including line breaks and tabs), marks that
/// reverse the order of letters, and characters without width become escapes. Idempotent.
std::string shown(std::string_view text);

/// Like shown(), but keeps line breaks and tabs; for our own texts.
std::string shown_lines(std::string_view text);

/// Escapes a whole answer as EscapedOutput does; for answers written to files in pieces.
std::string shown_answer(std::string_view text);

/// Returns Markdown that shows `text` literally, on one line, at the start of a block: without
/// markup, HTML, heading, list, link, image, formula, mention (@name) or reference (#12).
std::string markdown_text(std::string_view text);

/// Like markdown_text(), but for text inside a line, such as a cell of a table: marks with a
/// meaning only at the start of a block, "-" or "1.", stay as they are.
std::string markdown_cell(std::string_view text);

/// Returns a CSV cell that a spreadsheet does not read as a formula: texts that begin with =, +, -
/// or @ and are not numbers get a leading apostrophe, which spreadsheets use to mark texts. Does
/// not add quotes.
std::string csv_cell(std::string_view text);
/// Inverse of csv_cell(), for texts without characters that it escapes.
std::string_view text_of_csv_cell(std::string_view cell);

class EscapingBuffer;

/// While it lives, all output to `out` is escaped. Lines stay lines, but
///
///     what shown() escapes, except line breaks and tabs, becomes an escape
///     "::" at the start of a line becomes ":\u003a"
///     "##[", "##vso[" and the like become "##\u005b" and so on, anywhere in a line
///
/// because build servers recognize commands by these marks.
/// REQUIRES: `out` outlives it, and keeps its buffer.
class EscapedOutput {
 public:
  explicit EscapedOutput(std::ostream& out);
  EscapedOutput(const EscapedOutput&) = delete;
  EscapedOutput& operator=(const EscapedOutput&) = delete;
  ~EscapedOutput();

 private:
  std::ostream& out_;
  std::streambuf* below_;
  std::unique_ptr<EscapingBuffer> buffer_;
};

/// While it lives, commands that begin a line with "::" pass the EscapedOutput around `out`, if
/// there is one; for writers that escape the content of a command.
class CommandPassthrough {
 public:
  explicit CommandPassthrough(std::ostream& out);
  CommandPassthrough(const CommandPassthrough&) = delete;
  CommandPassthrough& operator=(const CommandPassthrough&) = delete;
  ~CommandPassthrough();

 private:
  EscapingBuffer* buffer_;
};

}  // namespace foretrace
