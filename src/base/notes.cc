#include "foretrace/notes.h"

#include <algorithm>

namespace foretrace {

void Notes::add(Severity severity, std::string_view text, std::string_view example,
                std::int64_t count) {
  auto note = std::find_if(notes_.begin(), notes_.end(),
                           [&](const Note& known) { return known.text == text; });
  if (note == notes_.end()) {
    notes_.push_back({severity, std::string(text), 0, {}});
    note = std::prev(notes_.end());
  }
  note->count += count;
  note->severity = std::max(note->severity, severity);
  if (note->example.empty()) note->example = example;
}

void Notes::merge(const Notes& other) {
  for (const Note& note : other.notes_) add(note.severity, note.text, note.example, note.count);
}

std::int64_t Notes::count(std::string_view text) const {
  for (const Note& note : notes_) {
    if (note.text == text) return note.count;
  }
  return 0;
}

std::string_view to_string(Severity severity) {
  return severity == Severity::warning ? "warning" : "info";
}

}  // namespace foretrace
