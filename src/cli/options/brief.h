#pragma once

// --brief prints only the head of an answer.
//
//     Bound by   input ...          an entry is a line and the indented lines that continue it
//     Would help loader ...         entries are shown while they fit into five lines
//
//     Worth doing, each alone       nothing after the first empty line is shown

#include <ostream>
#include <streambuf>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): it is the library's.
class App;
}  // namespace CLI

namespace foretrace {

inline constexpr int kBriefLines = 5;

/// While this object lives, `out` passes on only the head of what is written to it, if `is_brief`
/// is set by then. REQUIRES: `out` and `is_brief` outlive it, and `out` keeps its buffer.
class BriefFilter final : private std::streambuf {
 public:
  BriefFilter(std::ostream& out, const bool& is_brief);
  BriefFilter(const BriefFilter&) = delete;
  BriefFilter& operator=(const BriefFilter&) = delete;
  ~BriefFilter() override;

 private:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

  void add(char letter);
  void end_line();
  void end_entry();

  std::ostream& out_;
  std::streambuf& target_;
  const bool& is_brief_;
  std::string entry_, line_;
  int entry_lines_ = 0, shown_lines_ = 0;
  bool is_over_ = false, is_full_ = false;
};

/// Adds --brief to a command and to its nested commands.
void add_brief(CLI::App& command, bool& is_brief);
/// Throws Error if --brief comes with a --format that programs read, which must not be cut.
void check_brief(const CLI::App& command, bool is_brief);

}  // namespace foretrace
