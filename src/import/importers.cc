#include "import/registered.h"

namespace foretrace {

const std::vector<ImporterEntry>& importers() {
  static const std::vector<ImporterEntry> entries = {
#define IMPORTER(name, summary) {#name, summary, recognizes_##name, read_##name},
#include "import/importers.def"
#undef IMPORTER
  };
  return entries;
}

}  // namespace foretrace
