#pragma once

// Whatever names an answer repeats, its bytes must not drive a terminal, command a runner of
// continuous integration, or be invalid JSON.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "base/shown.h"
#include "document/document.h"
#include "document/forms/forms.h"

namespace foretrace {

inline void require_of_answer(bool holds, const char* what, std::string_view answer) {
  if (holds) return;
  std::fprintf(stderr, "%s:\n%.*s\n", what, static_cast<int>(answer.size()), answer.data());
  std::abort();
}

/// C0 except the line break, DEL, C1, separators of lines, and marks that change the direction of
/// text.
inline bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return true;
    const std::string_view rest = text.substr(i);
    if (byte == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0) return true;
    if (rest.size() < 3) continue;
    const auto last = static_cast<unsigned char>(rest[2]);
    if (rest.starts_with("\xe2\x80") && last >= 0xa8 && last <= 0xae) return true;
    if (rest.starts_with("\xe2\x81") && last >= 0xa6 && last <= 0xa9) return true;
  }
  return false;
}

/// Runners accept a command after blanks, too.
inline bool commands_a_runner(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("::") || line.starts_with("##[") || line.starts_with("##vso["))
      return true;
    at = end + 1;
  }
  return false;
}

inline void require_plain(std::string_view text) {
  require_of_answer(!has_control(text), "a control character", text);
  require_of_answer(!commands_a_runner(text), "a command to a runner", text);
}

inline void require_json(std::string_view text) {
  require_of_answer(nlohmann::json::accept(text), "no JSON", text);
}

/// In pages and in JUnit's XML, markup in names must be plain text.
inline void require_no_forged_markup(std::string_view text) {
  require_of_answer(text.find("<script>alert(1)") == text.npos, "a forged script", text);
  require_of_answer(text.find("<img src=x") == text.npos, "a forged picture", text);
  require_of_answer(text.find("<x/>") == text.npos, "a forged element", text);
}

template <class Write>
std::string written(const Write& write) {
  std::ostringstream out;
  {
    const EscapedOutput wall(out);  // As around every answer of the program.
    write(out);
  }
  return std::move(out).str();
}

/// In all forms.
inline void check_document(const Document& document) {
  for (const DocumentForm& form : document_forms()) {
    const std::string text = written([&](std::ostream& out) { form.write(document, out); });
    form.name == "html" ? require_no_forged_markup(text) : require_plain(text);
  }
}

}  // namespace foretrace
