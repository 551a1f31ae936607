#include "foretrace/import.h"

#include <filesystem>

#include "foretrace/error.h"
#include "import/source.h"
#include "import/tar.h"
#include "import/unreadable.h"

namespace foretrace {

namespace {

constexpr std::size_t kHead = 64 * 1024;

}  // namespace

Trace import_trace(const std::string& path, const ImportOptions&) {
  const auto bytes = open_source(path);
  const std::string head(bytes->peek(kHead));
  const Sniffed file{path, head};
  for (const ImporterEntry& importer : importers()) {
    if (importer.recognizes(file)) return importer.read(path);
  }
  throw TraceError(path + ": must be a trace of a known format, but is " + what_else_it_is(file));
}

}  // namespace foretrace
