#include "import/files/registered.h"

namespace foretrace {

const std::vector<ImporterEntry>& importers() {
  static const std::vector<ImporterEntry> entries = {
#define IMPORTER(name, summary) {#name, summary, recognizes_##name, read_##name, nullptr},
#define IMPORTER_OF_SEVERAL(name, summary) \
  {#name, summary, recognizes_##name, read_##name, members_of_##name},
#include "import/importers.def"
#undef IMPORTER
#undef IMPORTER_OF_SEVERAL
  };
  return entries;
}

}  // namespace foretrace
