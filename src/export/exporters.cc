#include "export/registered.h"
#include "foretrace/error.h"

namespace foretrace {

namespace {

/// Calls `visit` with each of the endings.
template <class Visit>
void each_ending(std::string_view endings, Visit&& visit) {
  while (!endings.empty()) {
    const std::size_t blank = endings.find(' ');
    visit(endings.substr(0, blank));
    endings.remove_prefix(blank == std::string_view::npos ? endings.size() : blank + 1);
  }
}

}  // namespace

const std::vector<ExporterEntry>& exporters() {
  static const std::vector<ExporterEntry> entries = {
#define EXPORTER(name, endings, summary) {#name, endings, summary, export_##name},
#include "export/exporters.def"
#undef EXPORTER
  };
  return entries;
}

const ExporterEntry* exporter_for(std::string_view path) {
  const ExporterEntry* found = nullptr;
  for (const ExporterEntry& entry : exporters()) {
    each_ending(entry.endings, [&](std::string_view ending) {
      if (path.ends_with(ending)) found = &entry;
    });
  }
  return found;
}

void export_trace(const Trace& trace, const std::string& path) {
  if (const ExporterEntry* entry = exporter_for(path)) return entry->write(trace, path);
  std::string all;
  for (const ExporterEntry& entry : exporters()) {
    each_ending(entry.endings, [&](std::string_view ending) {
      all += (all.empty() ? "" : ", ") + std::string(ending);
    });
  }
  throw Error("'" + path + "' must end in one of " + all);
}

}  // namespace foretrace
