#pragma once

// The forms that every document has. -Wmissing-declarations rejects a form without a line in
// documents.def, and the linker rejects a line without a form.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

class Document;

#define DOCUMENT(name, summary, file_help) \
  void write_##name(const Document& document, std::ostream& out);
#include "document/forms/documents.def"
#undef DOCUMENT

/// Writes the content of the page as JSON, {"heading", "lead", "sections"}, for a page that shows
/// one answer after another. It is no form for people.
void write_parts(const Document& document, std::ostream& out);

/// One per line of documents.def.
struct DocumentForm {
  std::string_view name, summary;
  void (*write)(const Document& document, std::ostream& out);
  /// Says what a file of this form is for. Empty: it is printed.
  std::string_view file_help;
};
const std::vector<DocumentForm>& document_forms();

/// Returns "assumed:" as "Assumed".
inline std::string capitalized_title(std::string title) {
  if (title.ends_with(':')) title.pop_back();
  if (!title.empty() && title.front() >= 'a' && title.front() <= 'z')
    title.front() = static_cast<char>(title.front() - 'a' + 'A');
  return title;
}

}  // namespace foretrace
