
#include "foretrace/holds_trace.h"

#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/sniff.h"
#include "import/tar.h"

namespace foretrace {

bool holds_trace(const std::string& path) {
  try {
    const std::string head = sniff(path);
    return is_tar(head) ||
           std::any_of(importers().begin(), importers().end(), [&](const ImporterEntry& importer) {
             return importer.recognizes({path, head});
           });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace foretrace
