#include "import/registered.h"

namespace foretrace {

bool recognizes_native(const Sniffed& file) {
  return file.head.size() > 8 && file.head.substr(1, 4) == "FTRC";
}

Trace read_native(const std::string& path) { return read_ftrace(path); }

}  // namespace foretrace
