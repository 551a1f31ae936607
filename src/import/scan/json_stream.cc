#include "import/scan/json_stream.h"

#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {

char JsonStream::peek() {
  for (;;) {
    JsonCursor here(at_, window_.end());
    const char next = here.peek();
    at_ = here.at < window_.end() ? here.at : window_.end();
    if (!here.ran_out) return next;
    if (window_.slide(at_)) continue;
    ended_ = true;
    return 0;
  }
}

bool JsonStream::read(JsonValue& value) {
  for (;;) {
    JsonCursor ahead(at_, window_.end());
    if (ahead.scan_value(value)) {
      at_ = ahead.at;
      odd_.no_numbers += ahead.odd.no_numbers;
      odd_.control_characters += ahead.odd.control_characters;
      return true;
    }
    check_depth(ahead.too_deep, offset());
    if (!ahead.ran_out) return false;
    if (window_.slide(at_)) continue;
    ended_ = true;
    return false;
  }
}

bool JsonStream::skip_value() {
  std::int64_t depth = 0;
  do {
    const char next = peek();
    if (next == 0) return false;
    if (next == '{' || next == '[' || next == '}' || next == ']') {
      depth += next == '{' || next == '[' ? 1 : -1;
      check_depth(depth > kMaxNesting, offset());
      skip();
    } else if (depth > 0 && (next == ',' || next == ':')) {
      skip();
    } else {
      JsonValue value;
      if (!read(value)) return false;
    }
  } while (depth > 0);
  return depth == 0;
}

std::string json_text(JsonValue value) {
  if (value.kind == ValueKind::text) {
    value.begin -= 1;
    value.size += 2;
    value.kind = ValueKind::literal;  // So that decode_text() keeps the escapes.
  }
  std::int64_t invalid = 0;
  return decode_text(value, invalid);
}

}  // namespace foretrace
