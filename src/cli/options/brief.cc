#include "cli/options/brief.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "foretrace/error.h"

namespace foretrace {

BriefFilter::BriefFilter(std::ostream& out, const bool& is_brief)
    : out_(out), target_(*out.rdbuf()), is_brief_(is_brief) {
  out_.rdbuf(this);
}

BriefFilter::~BriefFilter() {
  if (is_brief_ && !line_.empty()) end_line();
  end_entry();
  out_.rdbuf(&target_);
}

BriefFilter::int_type BriefFilter::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  const char one = traits_type::to_char_type(letter);
  return xsputn(&one, 1) == 1 ? letter : traits_type::eof();
}

std::streamsize BriefFilter::xsputn(const char* text, std::streamsize size) {
  if (!is_brief_) return target_.sputn(text, size);
  for (std::streamsize i = 0; i < size; ++i) add(text[i]);
  return is_full_ ? 0 : size;
}

/// The unfinished entry stays here, because whether it is shown depends on its length.
int BriefFilter::sync() { return is_full_ ? -1 : target_.pubsync(); }

void BriefFilter::add(char letter) {
  if (is_over_) return;
  if (letter == '\n') return end_line();
  line_ += letter;
}

void BriefFilter::end_line() {
  const bool goes_on = line_.starts_with(' ') && entry_lines_ > 0;
  if (!goes_on) end_entry();
  if (line_.empty()) {
    is_over_ = shown_lines_ > 0;
    return;
  }
  entry_ += line_ + '\n', line_.clear();
  ++entry_lines_;
}

/// Shows the entry if it still fits. A first entry that alone is too long is cut.
void BriefFilter::end_entry() {
  if (entry_lines_ == 0 || is_over_) return;
  const bool is_first = shown_lines_ == 0;
  if (shown_lines_ + entry_lines_ > kBriefLines && !is_first) {
    is_over_ = true;
    return;
  }
  std::size_t end = 0;
  for (int line = 0; line < std::min(entry_lines_, kBriefLines); ++line)
    end = entry_.find('\n', end) + 1;
  const auto size = static_cast<std::streamsize>(end);
  is_full_ = is_full_ || target_.sputn(entry_.data(), size) != size;
  shown_lines_ += entry_lines_;
  entry_.clear(), entry_lines_ = 0;
}

void add_brief(CLI::App& command, bool& is_brief) {
  command.add_flag("--brief", is_brief, "Print the head of the answer, at most five lines");
}

void check_brief(const CLI::App& command, bool is_brief) {
  const CLI::Option* format = command.get_option_no_throw("--format");
  if (!is_brief || format == nullptr || format->count() == 0) return;
  if (format->as<std::string>() != "text")
    throw Error("--brief: goes with --format text, got " + format->as<std::string>());
}

}  // namespace foretrace
