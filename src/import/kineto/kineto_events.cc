// Reads the list of events, window by window.

#include <algorithm>
#include <cstring>

#include "import/kineto/kineto_document.h"

namespace foretrace {

namespace {

/// Longest event in bytes. No profiler writes a longer one, but an event without its closing
/// bracket seems to continue to the end of the file. Searching for the end of such events takes
/// time, so only a few are allowed.
constexpr std::ptrdiff_t kLongestEvent = 16 << 20;
constexpr std::int64_t kMaxUnfinished = 100;

}  // namespace

void KinetoDocument::read_events() {
  has_events_ = true;
  ++at_;
  expects_comma_ = false;
  for (;;) {
    const char next = peek();
    if (next == ',') {
      ++at_;
      expects_comma_ = false;
      continue;
    }
    if (next == ']') {
      ++at_;
      return;
    }
    if (next == 0) {
      if (is_list_ && bytes_.damage().empty()) {
        trace_.notes.add(Severity::info, "the list of events is not closed");
        cut_ = true;
        return;
      }
      return note_cut("in the list of events");
    }
    if (expects_comma_) ++commas_missing_;
    expects_comma_ = true;
    if (!read_event()) return;
  }
}

/// Reads one element of the list. Returns false if nothing after it can be read.
bool KinetoDocument::read_event() {
  ++elements_;
  bool unfinished = false;
  if (*at_ != '{') {
    records_.count(KinetoOddity::not_an_object, offset());
    JsonValue value;
    std::string text;
    if (read_value(value, text)) return true;
  } else {
    while (!unfinished) {
      JsonCursor ahead = cursor();
      if (parse_event(at_, ahead)) {
        if (event_.remove_mark(rank_.mark)) records_.add(event_, offset());
        at_ = ahead.at;
        return true;
      }
      if (!ahead.ran_out) break;
      unfinished = window_.end() - at_ > kLongestEvent || !slide();
    }
  }
  return leave_out_event(unfinished);
}

/// Skips an event that could not be parsed: it is damaged, lacks its closing bracket, or is the
/// last one and cut off. Returns false if nothing after it can be read.
bool KinetoDocument::leave_out_event(bool unfinished) {
  const std::int64_t start = offset();
  const bool hopeless = unfinished && ++unfinished_ > kMaxUnfinished;
  if (hopeless || !skip_to_next_event()) {
    note_cut(unfinished ? "in the middle of an event" : "in an event that is not JSON", start);
    return false;
  }
  if (damaged_++ == 0) damaged_example_ = "at byte " + std::to_string(start);
  return true;
}

/// Parses the event strictly. If that fails, parses it again, accepting unescaped quotes in texts.
bool KinetoDocument::parse_event(const char*& start, JsonCursor& cursor) {
  const std::int64_t duplicates = event_.duplicate_keys;
  if (!event_.parse(cursor)) {
    event_.duplicate_keys = duplicates;
    check_depth(cursor.too_deep);
    if (cursor.ran_out) return false;
    cursor = JsonCursor(start, window_.end());
    cursor.lenient = true;
    // The phase is a single character. A longer one shows that a text has swallowed its neighbours.
    if (!event_.parse(cursor) || event_.text(Field::phase).size() != 1) {
      event_.duplicate_keys = duplicates;
      return false;
    }
  }
  const JsonOddities& odd = cursor.odd;
  const std::int64_t any = odd.control_characters | odd.unescaped_quotes | odd.trailing_commas |
                           odd.no_numbers | (event_.duplicate_keys - duplicates);
  if (any != 0) [[unlikely]] {
    if (odd_example_.empty())
      odd_example_ = "in the event at byte " + std::to_string(window_.offset(start));
    odd_.control_characters += odd.control_characters;
    odd_.unescaped_quotes += odd.unescaped_quotes;
    odd_.trailing_commas += odd.trailing_commas;
    odd_.no_numbers += odd.no_numbers;
  }
  return true;
}

/// Skips to the probable start of another event: "},{" with any white space, followed by a key or
/// by '}'. Returns false if there is none.
bool KinetoDocument::skip_to_next_event() {
  constexpr std::ptrdiff_t kContext = 256;
  ++at_;
  for (;;) {
    for (const char* brace = at_; brace < window_.end(); ++brace) {
      brace = static_cast<const char*>(
          std::memchr(brace, '{', static_cast<std::size_t>(window_.end() - brace)));
      if (brace == nullptr) break;
      JsonCursor ahead(brace + 1, window_.end());
      const char next = ahead.peek();
      if (next != '"' && next != '}') continue;
      const char* back = brace;
      const auto skip_back = [&] {
        while (back > window_.begin() && static_cast<unsigned char>(back[-1]) <= ' ') --back;
      };
      skip_back();
      if (back == window_.begin() || back[-1] != ',') continue;
      --back;
      skip_back();
      if (back == window_.begin() || back[-1] != '}') continue;
      at_ = brace;
      expects_comma_ = false;
      return true;
    }
    at_ = std::max(at_, window_.end() - kContext);
    if (!slide()) return false;
  }
}

}  // namespace foretrace
