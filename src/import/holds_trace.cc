
#include "import/holds_trace.h"

#include "foretrace/error.h"
#include "import/files/trace_file.h"

namespace foretrace {

bool holds_trace(const std::string& path) {
  try {
    const TraceFile file(path);
    const std::string& head = file.head();
    // Any JSON may be a trace whose events start late in the file, except Foretrace's own answers.
    const bool is_answer = head.find("\"schema\": \"foretrace.") != std::string::npos;
    if (is_answer && head.find("\"traceEvents\"") == std::string::npos) return false;
    return file.contents().is_archive || file.contents().importer != nullptr;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace foretrace
