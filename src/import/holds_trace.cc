
#include "import/holds_trace.h"

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/files/sniff.h"

namespace foretrace {

bool holds_trace(const std::string& path) {
  try {
    const TraceFile file(path);
    const std::string& head = file.head();
    // Any JSON may be a trace with much before its events, except for Foretrace's own output.
    const bool is_answer = head.find("\"schema\": \"foretrace.") != std::string::npos;
    if (is_answer && head.find("\"traceEvents\"") == std::string::npos) return false;
    return is_archive(path, head) || importer_for(file) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace foretrace
