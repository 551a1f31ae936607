#include <algorithm>

#include "document/forms/forms.h"
#include "foretrace/scenario.h"

namespace foretrace {

const std::vector<ReportEntry>& reports() {
  static const std::vector<ReportEntry> entries = [] {
    std::vector<ReportEntry> all{
        {"csv", "One line of comma-separated figures, with a heading"},
        {"json", "One object, schema foretrace.prediction/1"},
    };
    for (const DocumentForm& form : document_forms()) {
      if (form.file_help.empty()) all.push_back({form.name, form.summary});
    }
    std::ranges::sort(all, {}, &ReportEntry::name);
    return all;
  }();
  return entries;
}

}  // namespace foretrace
