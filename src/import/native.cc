#include "import/files/registered.h"

namespace foretrace {

bool recognizes_native(const Sniffed& file) {
  return file.head.size() > 8 && file.head.substr(1, 4) == "FTRC";
}

Trace read_native(const TraceFile& input) { return read_ftrace(input.path()); }

}  // namespace foretrace
