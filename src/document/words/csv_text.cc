#include "document/words/csv_text.h"

#include "base/shown.h"

namespace foretrace {

std::string csv_text(std::string_view text) {
  std::string all = "\"";
  for (const char c : csv_cell(text)) {
    if (c == '"') all += '"';
    all += c;
  }
  return all + "\"";
}

}  // namespace foretrace
