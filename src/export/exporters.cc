#include <fmt/core.h>

#include "export/common/registered.h"
#include "foretrace/error.h"

namespace foretrace {

const std::vector<ExporterEntry>& exporters() {
  static const std::vector<ExporterEntry> entries = {
#define EXPORTER(name, endings, summary) \
  {#name, endings, summary, static_cast<decltype(ExporterEntry::write)>(export_##name)},
#include "export/exporters.def"
#undef EXPORTER
  };
  return entries;
}

std::vector<std::string_view> endings_of(const ExporterEntry& exporter) {
  std::vector<std::string_view> all;
  std::string_view rest = exporter.endings;
  while (!rest.empty()) {
    const std::size_t blank = rest.find(' ');
    all.push_back(rest.substr(0, blank));
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
  }
  return all;
}

KnownEnding known_ending(std::string_view path) {
  KnownEnding longest;
  for (const ExporterEntry& entry : exporters()) {
    for (const std::string_view ending : endings_of(entry)) {
      if (path.ends_with(ending) && ending.size() > longest.text.size()) longest = {&entry, ending};
    }
  }
  return longest;
}

const ExporterEntry* exporter_for(std::string_view path) { return known_ending(path).exporter; }

std::string all_endings() {
  std::string all;
  for (const ExporterEntry& entry : exporters()) {
    for (const std::string_view ending : endings_of(entry))
      all += (all.empty() ? "" : ", ") + std::string(ending);
  }
  return all;
}

void export_trace(const Trace& trace, const std::string& path) {
  if (const ExporterEntry* entry = exporter_for(path)) return entry->write(trace, path);
  throw Error(fmt::format("'{}' must end in one of {}", path, all_endings()));
}

bool export_ranks(const Trace& trace, const RankView& view, const std::string& path) {
  const ExporterEntry* entry = exporter_for(path);
  if (entry == nullptr) entry = exporter_for(".json");
  if (entry->name == "kineto")
    export_kineto(trace, path, &view);
  else if (entry->name == "perfetto")
    export_perfetto(trace, path, &view);
  else
    return false;
  return true;
}

}  // namespace foretrace
