#pragma once

// Writing a trace in the formats of other tools, so that it opens in Perfetto, runs through scripts
// made for Nsight Systems, or shows in PyTorch's memory viewer. The inverse of import.h: what is
// written reads back with the same records, as far as the format has a place for them. The list is
// src/export/exporters.def.

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

struct ExporterEntry {
  std::string_view name;     ///< "nsys"
  std::string_view endings;  ///< Of file names, with their dots, separated by blanks.
  std::string_view summary;  ///< One line for `list exporters`.
  /// Throws Error if the path cannot be written or the trace has nothing that the format can hold.
  /// Leaves no half-written file behind.
  void (*write)(const Trace& trace, const std::string& path);
};

const std::vector<ExporterEntry>& exporters();

/// By the ending of the path; nullptr if none writes such a file.
const ExporterEntry* exporter_for(std::string_view path);

/// Writes what the ending of the path asks for. Throws Error with all endings if none fits.
void export_trace(const Trace& trace, const std::string& path);

}  // namespace foretrace
