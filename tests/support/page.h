#pragma once

#include <sstream>
#include <string>

#include "document/document.h"
#include "document/forms/forms.h"

namespace foretrace {

/// The page of an answer that a document says.
inline std::string html_of(const Document& document) {
  std::ostringstream out;
  write_html(document, out);
  return out.str();
}

template <class Report>
std::string html_of(const Report& report) {
  return html_of(document_of(report));
}

}  // namespace foretrace
