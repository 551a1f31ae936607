#include "import/scan/json_scan.h"

#include <array>
#include <bit>
#include <cstring>
#include <fmt/core.h>

#include "base/json_text.h"
#include "foretrace/error.h"
#include "import/scan/json_blocks.h"

namespace foretrace {

namespace {

/// The characters that end a number or a literal.
constexpr std::array<bool, 256> make_scalar_ends() {
  std::array<bool, 256> ends{};
  for (const char c : {',', '}', ']', ':', '"', '{', '[', ' ', '\n', '\r', '\t', '\0'}) {
    ends[static_cast<unsigned char>(c)] = true;
  }
  return ends;
}
constexpr std::array<bool, 256> kScalarEnds = make_scalar_ends();

}  // namespace

bool JsonCursor::scan_any_text(JsonValue& value) {
  const char* scan = at + 1;
  value.begin = scan;
  value.kind = ValueKind::text;
  value.escaped = value.non_ascii = false;
  for (;;) {
    const TextBits bits = look_at_text(scan);
    if (bits.stops == 0) {
      if (bits.high != 0) value.non_ascii = true;
      scan += kBlock;
      continue;
    }
    const auto stop = static_cast<std::uint32_t>(std::countr_zero(bits.stops));
    if ((bits.high & ((1U << stop) - 1)) != 0) value.non_ascii = true;
    scan += stop;
    if (scan >= end) {
      ran_out = true;
      return false;
    }
    if (*scan == '"') {
      if (!lenient || ends_text(scan + 1)) break;
      ++odd.unescaped_quotes;
      ++scan;
    } else if (*scan == '\\') {
      value.escaped = true;
      scan += 2;
    } else {
      ++odd.control_characters;
      value.non_ascii = true;
      ++scan;
    }
  }
  value.size = static_cast<std::uint32_t>(scan - value.begin);
  at = scan + 1;
  return true;
}

bool JsonCursor::ends_text(const char* behind_quote) const {
  JsonCursor ahead(behind_quote, end);
  const char next = ahead.peek();
  if (ahead.ran_out) return true;
  if (in_key) return next == ':';
  if (next == '}' || next == ']') return true;
  if (next != ',') return false;
  ++ahead.at;
  const char after = ahead.peek();
  if (after != '"') return std::strchr("{}[]-0123456789", after) != nullptr;
  // A quote after a comma opens the next key or text if that is well-formed and a separator
  // follows.
  JsonValue ignored;
  if (!ahead.scan_text(ignored)) return true;
  const char behind = ahead.peek();
  return behind == ':' || behind == ',' || behind == ']' || behind == '}';
}

bool JsonCursor::scan_value(JsonValue& value) {
  switch (peek()) {
    case '"':
      return scan_text(value);
    case '{':
    case '[':
      return scan_container(value);
    default:
      return scan_scalar(value);
  }
}

bool JsonCursor::scan_container(JsonValue& value) {
  value.begin = at;
  value.kind = *at == '{' ? ValueKind::object : ValueKind::array;
  value.escaped = value.non_ascii = false;
  int depth = 0;
  const char* scan = at;
  for (;;) {
    std::uint32_t stops = look_at_brackets(scan).stops;
    const char* next = scan + kBlock;
    for (; stops != 0; stops &= stops - 1) {
      const char* stop = scan + std::countr_zero(stops);
      if (*stop == '"') {
        at = stop;
        JsonValue text;
        if (!scan_text(text)) return false;
        value.escaped |= text.escaped;
        value.non_ascii |= text.non_ascii;
        next = at;
        break;
      }
      if (stop >= end) {
        ran_out = true;
        return false;
      }
      if (*stop == 0) return false;
      if ((*stop | 0x20) == '{') {
        if (++depth > kMaxNesting) {
          too_deep = true;
          return false;
        }
      } else if (--depth == 0) {
        at = stop + 1;
        value.size = static_cast<std::uint32_t>(at - value.begin);
        return true;
      }
    }
    scan = next;
  }
}

bool JsonCursor::scan_scalar(JsonValue& value) {
  value.begin = at;
  value.escaped = value.non_ascii = false;
  const char* scan = at;
  while (!kScalarEnds[static_cast<unsigned char>(*scan)]) ++scan;
  if (scan >= end) {
    ran_out = true;
    return false;
  }
  if (scan == at) return false;
  const char first = *at == '-' || *at == '+' ? at[1] : *at;
  value.kind = first >= '0' && first <= '9' ? ValueKind::number : ValueKind::literal;
  if (first == 'N' || first == 'I' || (first == 'n' && at[1] == 'a') ||
      (first == 'i' && at[1] == 'n')) {
    ++odd.no_numbers;
  }
  value.size = static_cast<std::uint32_t>(scan - at);
  at = scan;
  return true;
}

void check_depth(bool too_deep, std::int64_t offset) {
  if (!too_deep) return;
  throw TraceError(
      fmt::format("values nest deeper than {} levels, at byte {}", kMaxNesting, offset));
}

}  // namespace foretrace
