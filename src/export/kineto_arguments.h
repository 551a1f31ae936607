#pragma once

// The members of an event's "args", while they are collected.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

class KinetoArguments {
 public:
  void clear() { text_.clear(); }
  std::string_view text() const { return text_; }

  /// `json` is a whole value.
  void add(std::string_view key, std::string_view json) {
    if (!text_.empty()) text_ += ", ";
    text_ += '"';
    text_ += key;
    text_ += "\": ";
    text_ += json;
  }

  template <class Integer>
  void add_number(std::string_view key, Integer value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    add(key, {digits, static_cast<std::size_t>(end - digits)});
  }

  template <class Integer>
  void add_unless(Integer absent, std::string_view key, Integer value) {
    if (value != absent) add_number(key, value);
  }

 private:
  std::string text_;
};

}  // namespace foretrace
