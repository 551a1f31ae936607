#include "base/shown.h"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <streambuf>
#include <string>
#include <string_view>

#include "base/parse_number.h"

namespace foretrace {
namespace {

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

struct Range {
  char32_t first, last;
};

/// Control characters, marks that reverse the order of letters, and characters without width:
/// hidden in a name, they make two names look the same, or hide a command from a comparison that
/// skips them.
constexpr Range kUnsafe[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180e, 0x180e},  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xfffe, 0xffff},
    {0x1bca0, 0x1bca3}, {0xe0000, 0xe0fff}};

/// Characters, besides the ASCII blank, that trimming removes from the start of a line.
constexpr Range kBlanks[] = {{0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
                             {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

template <std::size_t size>
bool is_in(const Range (&ranges)[size], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return range.first <= code && code <= range.last; });
}

void append_hex(std::string_view prefix, std::uint32_t value, int digits, std::string& to) {
  to += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    to += "0123456789abcdef"[value >> shift & 15U];
}

/// Escapes as JSON does; a character beyond 16 bits becomes two surrogates.
void append_escape(char32_t code, std::string& to) {
  if (code == '\n') {
    to += "\\n";
  } else if (code == '\r') {
    to += "\\r";
  } else if (code == '\t') {
    to += "\\t";
  } else if (code > 0xffff) {
    append_hex("\\u", 0xd800 + ((code - 0x10000) >> 10U), 4, to);
    append_hex("\\u", 0xdc00 + (code & 0x3ffU), 4, to);
  } else {
    append_hex("\\u", code, 4, to);
  }
}

/// Length in bytes of the character that begins with `lead`; 1 if none does.
std::size_t length_of(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

constexpr char32_t kNoCharacter = 0xffffffff;

/// Decodes a character, or returns kNoCharacter. REQUIRES: the length fits the first byte, and all
/// other bytes are 0x80 to 0xbf.
char32_t decoded(std::string_view bytes) {
  if (bytes.size() == 1) return kNoCharacter;
  constexpr char32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  char32_t code = static_cast<unsigned char>(bytes[0]) & (0xffU >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kMin[bytes.size()] || is_surrogate || code > 0x10ffff ? kNoCharacter : code;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool Escaping::is_harmless(char c) const {
  return line_ == Line::goes_on && hashes_ == 0 && c >= ' ' && c <= '~' && c != '#';
}

void Escaping::add(std::string_view text, std::string& to) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (pending_.empty()) {
      while (end < text.size() && is_harmless(text[end])) ++end;
    }
    to += text.substr(at, end - at);
    at = end;
    if (at == text.size()) return;
    const char c = text[at++];
    const bool goes_on = (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
    if (!pending_.empty() && !goes_on) this->end(to);
    static_cast<unsigned char>(c) < 0x80 ? add_ascii(c, to) : add_wide(c, to);
  }
}

void Escaping::end(std::string& to) {
  for (const char c : pending_) append_hex("\\x", static_cast<unsigned char>(c), 2, to);
  if (!pending_.empty()) line_ = Line::goes_on, hashes_ = 0;
  pending_.clear();
}

/// Returns whether a build server would recognize a command that ends with `c`; tracks the
/// characters before it.
bool Escaping::is_end_of_command(char c) {
  const bool is_second_colon = line_ == Line::has_colon && c == ':';
  const bool is_bracket = hashes_ == 2 && c == '[';
  if (line_ == Line::begins && c == ':') {
    line_ = Line::has_colon;
  } else if (line_ != Line::begins || (c != ' ' && c != '\t')) {
    line_ = Line::goes_on;
  }
  if (c == '#') {
    hashes_ = std::min(hashes_ + 1, 2);
  } else if (hashes_ < 2 || !is_letter(c)) {
    hashes_ = 0;
  }
  return (is_second_colon && commands_ == Commands::escaped) ||
         (is_bracket && commands_ != Commands::stay);
}

void Escaping::add_ascii(char c, std::string& to) {
  const bool is_command = is_end_of_command(c);
  const bool breaks = c == '\n' || c == '\t';
  if (breaks && line_breaks_ == LineBreaks::stay) {
    if (c == '\n') line_ = Line::begins;
    to += c;
  } else if (is_command || c < ' ' || c == 0x7f) {
    append_escape(static_cast<unsigned char>(c), to);
  } else {
    to += c;
  }
}

void Escaping::add_wide(char c, std::string& to) {
  pending_ += c;
  if (pending_.size() < length_of(static_cast<unsigned char>(pending_[0]))) return;
  const char32_t code = decoded(pending_);
  if (code == kNoCharacter) return end(to);
  if (is_in(kUnsafe, code)) {
    append_escape(code, to);
  } else {
    to += pending_;
  }
  pending_.clear();
  hashes_ = 0;
  if (line_ != Line::begins || !is_in(kBlanks, code)) line_ = Line::goes_on;
}

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
