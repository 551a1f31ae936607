#pragma once

// --brief: the head of an answer in place of all of it.
//
//     Bound by   input ...          an entry: a line, and those that go on with it, indented
//     Would help loader ...         entries are shown while they fit into five lines
//
//     Worth doing, each alone       behind the first empty line: not shown

#include <ostream>
#include <streambuf>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace foretrace {

inline constexpr int kBriefLines = 5;

/// While it lives, `out` passes on only the head of what is written to it, if `is_brief` is set by
/// then. REQUIRES: `out` and `is_brief` outlive it, and `out` keeps its buffer.
class BriefOn final : private std::streambuf {
 public:
  BriefOn(std::ostream& out, const bool& is_brief);
  BriefOn(const BriefOn&) = delete;
  BriefOn& operator=(const BriefOn&) = delete;
  ~BriefOn() override;

 private:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

  void add(char letter);
  void end_line();
  void end_entry();

  std::ostream& out_;
  std::streambuf& below_;
  const bool& is_brief_;
  std::string entry_, line_;
  int entry_lines_ = 0, shown_lines_ = 0;
  bool is_over_ = false, is_full_ = false;
};

/// --brief for a command and those nested in it.
void add_brief(CLI::App& command, bool& is_brief);
/// Throws Error where an answer that programs read is to be cut.
void check_brief(const CLI::App& command, bool is_brief);

}  // namespace foretrace
