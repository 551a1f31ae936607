#pragma once

// Text from strangers, made harmless where it is shown. A name in a trace, a path or a scenario may
// hold any bytes: an escape sequence that repaints a terminal, a line break with a command for a
// build server behind it, a mark that turns the order of letters around. Two walls keep them off:
//
//     name --shown()--> cell or sentence --ShownOn--> terminal, log, file
//
// ShownOn is around every answer and all of stderr, so that nothing can be printed past it: it
// writes what a terminal or a build server would obey as an escape, whoever put it there. It cannot
// tell a line break of ours from one of a name; shown(), in the pieces that cells and sentences are
// made of, keeps a name in its line. Escapes are those of JSON ("\u001b"), so that an answer in
// JSON means the same behind the wall; a byte that is no UTF-8 becomes "\xff".

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace foretrace {

/// `text` on one line: control characters, line breaks and tabs included, marks that order letters
/// and characters without a width become escapes. The same again for what is shown already.
std::string shown(std::string_view text);

/// The same for a text of ours whose line breaks shall stay.
std::string shown_lines(std::string_view text);

/// A whole answer, as ShownOn lets it through; for those that are written to files in pieces.
std::string shown_answer(std::string_view text);

/// Markdown that shows `text` literally, on one line, at the begin of a block: no markup, HTML,
/// heading, list, link, image, formula, mention (@name) or reference (#12).
std::string markdown_text(std::string_view text);

/// The same inside of a line, such as a cell of a table: what has a meaning only at the begin of a
/// block, "-" or "1.", stays as it is.
std::string markdown_cell(std::string_view text);

/// A cell of CSV, which a spreadsheet takes for no formula: texts that begin with =, +, - or @ and
/// are no numbers get an apostrophe in front, as spreadsheets show texts. Not in quotes yet.
std::string csv_cell(std::string_view text);
/// The text that csv_cell() was given, if that had nothing to show as an escape.
std::string_view text_of_csv_cell(std::string_view cell);

class ShownBuffer;

/// As long as it lives, what is written to `out` goes through the wall: lines stay lines, but
///  - what shown() escapes, except line breaks and tabs, is escaped;
///  - "::" at the begin of a line, and "##[", "##vso[" and the like anywhere, by which build
///  servers
///    know commands, become ":\u003a" and "##\u005b".
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

/// As long as it lives, commands that begin a line with "::" pass the wall around `out`, if there
/// is one; for writers that escape what they put into a command.
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
