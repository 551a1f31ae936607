#include "base/shown.h"

#include <algorithm>
#include <fmt/core.h>
#include <streambuf>

#include "base/escaping.h"
#include "base/parse_number.h"

namespace foretrace {
namespace {

std::string escaped(std::string_view text, LineBreaks line_breaks,
                    Commands commands = Commands::stay) {
  Escaping escaping(line_breaks, commands);
  std::string safe;
  safe.reserve(text.size());
  escaping.add(text, safe);
  escaping.end(safe);
  return safe;
}

bool is_numeral(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_numeral(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// An invisible separator between two pieces of text.
constexpr std::string_view kInvisibleSeparator = "<!-- -->";

/// Whether GitHub and GitLab would link the number after the '#': "#12" and "owner/name#12", but
/// not "ProfilerStep#12".
bool is_reference(std::string_view text, std::size_t hash) {
  if (hash + 1 == text.size() || !is_numeral(text[hash + 1])) return false;
  std::size_t begin = hash;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '-' ||
                       text[begin - 1] == '.' || text[begin - 1] == '/'))
    --begin;
  const std::string_view word = text.substr(begin, hash - begin);
  return word.empty() || word.find('/') != word.npos;
}

/// Whether an automatic link begins here: "@name", "mail@host", "://", "www.", "#12".
bool is_linked(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest[0] == '@') return rest.size() > 1 && is_word(rest[1]);
  if (rest[0] == '.') return text.substr(0, at).ends_with("www");
  return rest.starts_with("://") || (rest[0] == '#' && is_reference(text, at));
}

/// Whether `at` is inside a word, where an underscore is no markup.
bool is_inside_word(std::string_view text, std::size_t at) {
  const auto is_part = [&](std::size_t i) { return is_word(text[i]) && text[i] != '_'; };
  return at > 0 && at + 1 < text.size() && is_part(at - 1) && is_part(at + 1);
}

/// Length of the start of `text` that Markdown would read as the mark of a heading, a quote or a
/// list; 0 if none.
std::size_t mark_of_block(std::string_view text) {
  const char first = text.empty() ? ' ' : text[0];
  if (first == '>' || first == '=' || first == '#') return 1;
  std::size_t end = 1;
  if (is_numeral(first)) {
    while (end < text.size() && is_numeral(text[end])) ++end;
    if (end == text.size() || (text[end] != '.' && text[end] != ')')) return 0;
    ++end;
  } else if (first != '-' && first != '+') {
    return 0;
  }
  const bool ends = end == text.size() || text[end] == ' ' || text[end] == first;
  return ends ? end : 0;
}

bool is_number(std::string_view text) {
  return parse_number<double>(text) && is_numeral(text.back());
}

/// Whether a spreadsheet would evaluate it as a formula. Leading apostrophes must be removed
/// before.
bool is_formula(std::string_view text) {
  constexpr std::string_view kWide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};  // = + - @
  if (text.empty()) return false;
  if (std::string_view("=+-@").find(text[0]) != std::string_view::npos) return !is_number(text);
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [&](std::string_view sign) { return text.starts_with(sign); });
}

std::string_view without_apostrophes(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\''), text.size()));
}

}  // namespace

std::string shown(std::string_view text) { return escaped(text, LineBreaks::escaped); }

std::string shown_lines(std::string_view text) { return escaped(text, LineBreaks::stay); }

std::string shown_answer(std::string_view text) {
  return escaped(text, LineBreaks::stay, Commands::escaped);
}

std::string markdown_cell(std::string_view text) {
  const std::string line = shown(text);
  std::string markdown;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '<') {
      markdown += "&lt;";
    } else if (c == '&') {
      markdown += "&amp;";
    } else {
      const bool is_markup = std::string_view("\\`*[]|~$").find(c) != std::string_view::npos;
      if (is_markup || (c == '_' && !is_inside_word(line, i))) markdown += '\\';
      markdown += c;
      if (is_linked(line, i)) markdown += kInvisibleSeparator;
    }
  }
  return markdown;
}

std::string markdown_text(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t mark = mark_of_block(text);
  if (mark == 0) return markdown_cell(text);
  return fmt::format("{}\\{}", text.substr(0, mark - 1), markdown_cell(text.substr(mark - 1)));
}

std::string csv_cell(std::string_view text) {
  return (is_formula(without_apostrophes(text)) ? "'" : "") + shown(text);
}

std::string_view text_of_csv_cell(std::string_view cell) {
  if (cell.starts_with('\'') && is_formula(without_apostrophes(cell))) cell.remove_prefix(1);
  return cell;
}

/// A stream buffer that escapes text on its way to another buffer.
class EscapingBuffer : public std::streambuf {
 public:
  explicit EscapingBuffer(std::streambuf& below) : below_(below) {}

  void let_pass(Commands commands) { escaping_.set(commands); }
  bool end() {
    safe_.clear();
    escaping_.end(safe_);
    return put();
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char character = traits_type::to_char_type(c);
    return xsputn(&character, 1) == 1 ? c : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    safe_.clear();
    escaping_.add(std::string_view(text, static_cast<std::size_t>(size)), safe_);
    return put() ? size : 0;
  }

  /// Keeps an incomplete character back, because stderr is flushed after every piece.
  int sync() override { return below_.pubsync(); }

 private:
  bool put() {
    const auto size = static_cast<std::streamsize>(safe_.size());
    return below_.sputn(safe_.data(), size) == size;
  }

  std::streambuf& below_;
  Escaping escaping_{LineBreaks::stay, Commands::escaped};
  std::string safe_;
};

EscapedOutput::EscapedOutput(std::ostream& out)
    : out_(out), below_(out.rdbuf()), buffer_(std::make_unique<EscapingBuffer>(*below_)) {
  const std::ios_base::iostate state = out_.rdstate();
  out_.rdbuf(buffer_.get());
  out_.setstate(state);
}

EscapedOutput::~EscapedOutput() {
  std::ios_base::iostate state = out_.rdstate();
  if (!buffer_->end()) state |= std::ios_base::badbit;
  out_.rdbuf(below_);
  out_.setstate(state);
}

CommandPassthrough::CommandPassthrough(std::ostream& out)
    : buffer_(dynamic_cast<EscapingBuffer*>(out.rdbuf())) {
  if (buffer_ != nullptr) buffer_->let_pass(Commands::pass);
}

CommandPassthrough::~CommandPassthrough() {
  if (buffer_ != nullptr) buffer_->let_pass(Commands::escaped);
}

}  // namespace foretrace
