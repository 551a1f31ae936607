#pragma once

// Declares export_<name>() for every line of exporters.def. -Wmissing-declarations then rejects an
// exporter without a line, and the linker a line without an exporter.

#include "foretrace/export.h"

namespace foretrace {

#define EXPORTER(name, endings, summary) \
  void export_##name(const Trace& trace, const std::string& path);
#include "export/exporters.def"
#undef EXPORTER

// With a view of several ranks; `view` is nullptr for one rank.
void export_kineto(const Trace& trace, const std::string& path, const RankView* view);
void export_perfetto(const Trace& trace, const std::string& path, const RankView* view);

}  // namespace foretrace
