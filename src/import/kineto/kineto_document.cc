#include "import/kineto/kineto_document.h"

#include <fmt/core.h>

#include "base/json_text.h"
#include "foretrace/error.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

constexpr std::ptrdiff_t kLongestMetadata = 64 * 1024;
constexpr std::size_t kMaxKeys = 256;

}  // namespace

Trace KinetoDocument::read() {
  slide();
  trace_.format = "kineto";
  if (!rank_.mark.empty()) {
    trace_.rank = rank_.rank;
    trace_.world_size = rank_.world_size;
    trace_.rank_is_known = true;
  }
  if (window_.end() - at_ >= 3 && std::string_view(at_, 3) == "\xef\xbb\xbf") at_ += 3;
  const char first = peek();
  if (first == '{') {
    read_object();
  } else if (first == '[') {
    is_list_ = true;
    read_events();
  } else {
    throw TraceError(first == 0 ? "must be a trace, but is empty"
                                : "must be JSON, but starts with other bytes");
  }
  if (!cut_) note_rest();
  if (records_.useful() == 0) refuse();
  records_.finish(base_ns_);
  write_notes();
  return std::move(trace_);
}

char KinetoDocument::peek() {
  for (;;) {
    JsonCursor here = cursor();
    const char next = here.peek();
    at_ = here.at < window_.end() ? here.at : window_.end();
    if (!here.ran_out) return next;
    if (!slide()) return 0;
  }
}

void KinetoDocument::read_object() {
  ++at_;
  for (;;) {
    const char next = peek();
    if (next == '}') {
      ++at_;
      return;
    }
    if (next == ',') {
      ++at_;
      continue;
    }
    if (next == 0) return note_cut("before the end of the object");
    if (next != '"' || !read_member()) return note_cut("by text that is not JSON");
    if (cut_) return;
  }
}

/// Reads one key and its value. Returns false if they are not JSON.
bool KinetoDocument::read_member() {
  JsonValue value;
  std::string key;
  if (!read_value(value, key)) return false;
  if (keys_.size() < kMaxKeys) keys_.push_back(key);
  if (peek() != ':') return false;
  ++at_;
  const char next = peek();
  if (key == "traceEvents" && next == '[') {
    read_events();
    return true;
  }
  const bool wanted = key == "deviceProperties" || key == "distributedInfo";
  if ((next == '{' || next == '[') && !wanted && key.size() > 0) {
    // An object or list may be as long as the whole file, so only short ones are kept.
    JsonCursor ahead = cursor();
    while (!ahead.scan_value(value)) {
      check_depth(ahead.too_deep);
      if (!ahead.ran_out || window_.end() - at_ > kLongestMetadata || !slide()) return skip_value();
      ahead = cursor();
    }
    note_metadata(key, value);
    at_ = ahead.at;
    return true;
  }
  std::string text;
  if (!read_value(value, text)) return false;
  note_metadata(key, value);
  return true;
}

/// Reads a whole value into the window and sets `text` to its text. Returns false if it is
/// incomplete or not JSON.
bool KinetoDocument::read_value(JsonValue& value, std::string& text) {
  for (;;) {
    JsonCursor ahead = cursor();
    if (ahead.scan_value(value)) {
      at_ = ahead.at;
      std::int64_t invalid = 0;
      text = decode_text(value, invalid);
      return true;
    }
    check_depth(ahead.too_deep);
    if (!ahead.ran_out || !slide()) return false;
  }
}

/// Skips an object or list of any length, in bounded memory.
bool KinetoDocument::skip_value() {
  std::int64_t depth = 0;
  do {
    const char next = peek();
    if (next == 0) return false;
    if (next == '"') {
      JsonValue value;
      std::string text;
      if (!read_value(value, text)) return false;
      continue;
    }
    if (next == '{' || next == '[') ++depth;
    if (next == '}' || next == ']') --depth;
    check_depth(depth > kMaxNesting);
    ++at_;
  } while (depth > 0);
  return true;
}

void KinetoDocument::note_metadata(const std::string& key, const JsonValue& value) {
  std::int64_t invalid = 0;
  JsonValue raw = value;
  std::string text;
  if (raw.kind == ValueKind::text) {
    raw.begin -= 1;
    raw.size += 2;
    raw.kind = ValueKind::literal;
  }
  text = decode_text(raw, invalid);
  if (key == "baseTimeNanoseconds" && is_integer(value)) base_ns_ = to_integer(value);
  if (key == "deviceProperties") read_device_properties(text, trace_);
  if (key == "distributedInfo") read_distributed_info(text, trace_);
  if (std::ssize(text) <= kLongestMetadata && trace_.metadata.size() < kMaxKeys)
    trace_.metadata[key] = std::move(text);
}

void KinetoDocument::note_rest() {
  const char next = peek();
  if (next != 0) {
    trace_.notes.add(Severity::warning, "text after the end of the trace, not read",
                     "at byte " + std::to_string(offset()));
  }
  const std::string damage = bytes_.damage();
  if (!damage.empty()) trace_.notes.add(Severity::warning, damage, "after the end of the trace");
}

void KinetoDocument::note_cut(std::string_view where, std::int64_t at) {
  cut_ = true;
  foretrace::note_cut(trace_.notes, where, bytes_.damage(), at);
}

void KinetoDocument::write_notes() {
  const auto note = [&](Severity severity, std::string_view text, std::int64_t count,
                        std::string_view example) {
    if (count > 0) trace_.notes.add(severity, text, example, count);
  };
  note(Severity::warning, "events that are not JSON, left out", damaged_, damaged_example_);
  note(Severity::warning, "quotes inside a string that are not escaped", odd_.unescaped_quotes,
       odd_example_);
  note(Severity::warning, "control characters inside a string", odd_.control_characters,
       odd_example_);
  note(Severity::info, "commas before a closing bracket", odd_.trailing_commas, odd_example_);
  note(Severity::info, "numbers that are NaN or Infinity", odd_.no_numbers, odd_example_);
  note(Severity::warning, "commas missing between events", commas_missing_, odd_example_);
  note(Severity::warning, "keys that occur twice in an event; the last one was used",
       event_.duplicate_keys, odd_example_);
}

void KinetoDocument::refuse() const {
  if (cut_ && elements_ == 0) {
    const std::string damage = bytes_.damage();
    throw TraceError(fmt::format("must contain events, but ends before the first one{}{}",
                                 damage.empty() ? "" : ": ", damage));
  }
  if (has_events_ && elements_ == 0)
    throw TraceError("must contain events, but its list of events is empty");
  if (has_events_) {
    throw TraceError(fmt::format(
        "must contain events of operators, calls or kernels, but none of its {} elements is one",
        elements_));
  }
  std::string keys;
  for (std::size_t i = 0; i < keys_.size() && i < 8; ++i)
    keys += (i == 0 ? "" : ", ") + keys_[i].substr(0, 60);
  throw TraceError(
      fmt::format("must have \"traceEvents\" or be a list of events, but is an object {}{}",
                  keys.empty() ? "without keys" : "with ", keys));
}

}  // namespace foretrace
