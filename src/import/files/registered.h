#pragma once

// Declares recognizes_<name>() and read_<name>() for every line of importers.def, and
// members_of_<name>() where a file may hold several traces. -Wmissing-declarations then rejects an
// importer without a line, and the linker a line without an importer.

#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

#define IMPORTER(name, summary)                \
  bool recognizes_##name(const Sniffed& file); \
  Trace read_##name(const TraceFile& input);
#define IMPORTER_OF_SEVERAL(name, summary) \
  IMPORTER(name, summary)                  \
  std::vector<std::string> members_of_##name(const TraceFile& input);
#include "import/importers.def"
#undef IMPORTER
#undef IMPORTER_OF_SEVERAL

}  // namespace foretrace
