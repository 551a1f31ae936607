#pragma once

// Walks through a JSON text of any length, value by value. It needs as much memory as the longest
// requested value. Also walks through the members of a value in memory.

#include <string>

#include "import/scan/json_scan.h"
#include "import/scan/text_window.h"

namespace foretrace {

class JsonStream {
 public:
  explicit JsonStream(Source& bytes, std::size_t window = TextWindow::kSize)
      : window_(bytes, window), at_(window_.end()) {}

  /// The next character after white space; 0 at the end of the text.
  char peek();
  /// Moves past the character that peek() returned.
  void skip() { ++at_; }

  /// Reads the whole next value, which is valid until the next call. Returns false if it is not
  /// JSON or incomplete: ended() tells which. Throws TraceError if it nests too deeply.
  bool read(JsonValue& value);
  /// Skips a value of any length, in bounded memory. Returns false in the same cases as read().
  bool skip_value();
  bool ended() const { return ended_; }

  /// Position of the next character in the whole text.
  std::int64_t offset() const { return window_.offset(at_); }
  const JsonOddities& odd() const { return odd_; }

 private:
  TextWindow window_;
  const char* at_;
  JsonOddities odd_;
  bool ended_ = false;
};

/// Calls `visit` with the key and the value of each member of an object. Returns false if it is not
/// an object, or if it stopped at text that is not JSON.
template <class Visit>
bool each_member(const JsonValue& object, Visit&& visit) {
  if (object.kind != ValueKind::object) return false;
  JsonCursor cursor(object.begin + 1, object.begin + object.size);
  for (;;) {
    const char next = cursor.peek();
    if (next == '}') return true;
    if (next == ',') {
      ++cursor.at;
      continue;
    }
    JsonValue key, value;
    if (next != '"' || !cursor.scan_text(key) || cursor.peek() != ':') return false;
    ++cursor.at;
    if (!cursor.scan_value(value)) return false;
    visit(key.view(), value);
  }
}

/// Like each_member(), for the elements of an array.
template <class Visit>
bool each_element(const JsonValue& array, Visit&& visit) {
  if (array.kind != ValueKind::array) return false;
  JsonCursor cursor(array.begin + 1, array.begin + array.size);
  for (;;) {
    const char next = cursor.peek();
    if (next == ']') return true;
    if (next == ',') {
      ++cursor.at;
      continue;
    }
    JsonValue value;
    if (next == 0 || !cursor.scan_value(value)) return false;
    visit(value);
  }
}

/// A value as JSON text, valid UTF-8, quotes included.
std::string json_text(JsonValue value);

}  // namespace foretrace
