#include "graph/tokenizer.h"

#include <charconv>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::int64_t kTick = 1000;
constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kHex = "0123456789abcdef";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.+-*/()~%$&!?;'").find(c) != std::string_view::npos;
}

/// Length of the plain name at the start of `text`. "->" and ".." end a name, and "#" may not begin
/// one.
std::size_t plain_length(std::string_view text) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("->") || rest.starts_with("..")) break;
    if (!is_plain(rest.front()) && !(i > 0 && rest.front() == '#')) break;
  }
  return i;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Tokenizer::skip_space() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
}

bool Tokenizer::at_end() {
  skip_space();
  return rest_.empty() || rest_.front() == '#';
}

bool Tokenizer::skip(std::string_view token) {
  skip_space();
  if (!rest_.starts_with(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

void Tokenizer::take(std::string_view token) {
  if (!skip(token)) fail(fmt::format("\"{}\"", token));
}

std::string Tokenizer::take_name(std::string_view expected) {
  skip_space();
  if (rest_.starts_with('"')) return take_quoted();
  const std::size_t length = plain_length(rest_);
  if (length == 0) fail(expected);
  std::string name(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return name;
}

std::string Tokenizer::take_quoted() {
  std::string name;
  rest_.remove_prefix(1);
  while (!rest_.empty()) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '"') return name;
    name += c == '\\' ? take_escaped() : c;
  }
  throw Error("a \" is missing");
}

char Tokenizer::take_escaped() {
  const char c = rest_.empty() ? ' ' : rest_.front();
  if (c == 'x' && rest_.size() >= 3) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(rest_.data() + 1, rest_.data() + 3, value, 16);
    if (error == std::errc() && end == rest_.data() + 3) {
      rest_.remove_prefix(3);
      return static_cast<char>(value);
    }
  }
  if (!rest_.empty()) rest_.remove_prefix(1);
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  if (c == '"' || c == '\\') return c;
  throw Error("in quotes must follow \\ one of \" \\ n t xHH, found " + in_quotes({&c, 1}));
}

std::string_view Tokenizer::take_word(std::string_view expected, std::string_view stops) {
  skip_space();
  std::size_t length = 0;
  while (length < rest_.size() && kSpace.find(rest_[length]) == std::string_view::npos &&
         stops.find(rest_[length]) == std::string_view::npos) {
    ++length;
  }
  if (length == 0) fail(expected);
  const std::string_view word = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return word;
}

Nanoseconds Tokenizer::take_ticks() {
  skip_space();
  const bool negative = skip("-");
  if (rest_.empty() || !is_digit(rest_.front())) fail("a number of ticks");
  constexpr std::int64_t kMax = std::int64_t{1}
                                << 53;  // 104 days, so that thousands of such times can be added.
  std::int64_t value = 0;
  std::int64_t unit = kTick;
  bool fraction = false;
  while (!rest_.empty() && (is_digit(rest_.front()) ||
                            (!fraction && rest_.front() == '.' && !rest_.starts_with("..")))) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '.') {
      fraction = true;
      continue;
    }
    if (fraction && (unit /= 10) == 0) throw Error("a tick has at most three decimals");
    if (value > kMax / kTick) throw Error("a time must be less than 104 days");
    value = value * 10 + (c - '0');
  }
  if (value > kMax / unit) throw Error("a time must be less than 104 days");
  return Nanoseconds((negative ? -value : value) * unit);
}

void Tokenizer::fail(std::string_view expected) {
  skip_space();
  const std::string found =
      rest_.empty() ? "the end of the line" : fmt::format("\"{}\"", rest_.substr(0, 20));
  throw Error(fmt::format("expected {}, found {}", expected, found));
}

std::string in_quotes(std::string_view name) {
  if (!name.empty() && plain_length(name) == name.size()) return std::string(name);
  std::string text = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      text += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string to_ticks(Nanoseconds time) {
  const std::int64_t count = time.count();
  std::string text = count < 0 ? "-" : "";
  const std::uint64_t size =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  text += std::to_string(size / kTick);
  if (size % kTick == 0) return text;
  std::string decimals = std::to_string(kTick + static_cast<std::int64_t>(size % kTick)).substr(1);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return text + '.' + decimals;
}

}  // namespace foretrace
