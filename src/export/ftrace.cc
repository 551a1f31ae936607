#include "export/common/registered.h"

namespace foretrace {

void export_ftrace(const Trace& trace, const std::string& path) { write_ftrace(trace, path); }

}  // namespace foretrace
