#pragma once

// Odd data is never fatal and never silent: it is counted. A Note is one kind of oddity with its
// count and one example; `--strict` turns notes of severity warning into errors.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

enum class Severity : std::uint8_t { info, warning };

struct Note {
  Severity severity = Severity::info;
  std::string text;  ///< The text without the count: "kernels without a launch record".
  std::int64_t count = 0;
  std::string example;  ///< The first one seen, with its place. May be empty.
};

/// Notes in the order in which their texts were first seen.
class Notes {
 public:
  /// Adds to the note with this text; `example` is kept if it is the first. Linear in the number of
  /// kinds, which is small; for a hot loop count first and add once.
  void add(Severity severity, std::string_view text, std::string_view example = {},
           std::int64_t count = 1);
  void merge(const Notes& other);

  const std::vector<Note>& all() const { return notes_; }
  bool empty() const { return notes_.empty(); }
  /// 0 if there is no note with this text.
  std::int64_t count(std::string_view text) const;

 private:
  std::vector<Note> notes_;
};

std::string_view to_string(Severity severity);

}  // namespace foretrace
