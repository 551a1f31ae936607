
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
    // Any JSON may be a trace with much in front of its events, but for what Foretrace writes
    // itself.
    const bool is_answer = head.find("\"schema\": \"foretrace.") != std::string::npos;
    if (is_answer && head.find("\"traceEvents\"") == std::string::npos) return false;
    return is_tar(head) ||
           std::any_of(importers().begin(), importers().end(), [&](const ImporterEntry& importer) {
             return importer.recognizes({path, head});
           });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace foretrace
