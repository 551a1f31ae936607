#pragma once

// Declares export_<name>() for every line of exporters.def. -Wmissing-declarations then rejects an
// exporter without a line, and the linker a line without an exporter.

#include "foretrace/export.h"

namespace foretrace {

#define EXPORTER(name, endings, summary) \
  void export_##name(const Trace& trace, const std::string& path);
#include "export/exporters.def"
#undef EXPORTER

}  // namespace foretrace
