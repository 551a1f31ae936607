#pragma once

// The memory report in words and cells, so that text and page say the same.

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/memory.h"
#include "report/words/table.h"

namespace foretrace {

/// Whether it fits, and how full it is; when the peak is and what causes it; what most of it is
/// for.
std::vector<std::string> verdict_lines(const MemoryReport& report);

/// A heading, an introduction, a table, and a closing remark; each may be empty.
struct MemorySection {
  std::string heading;
  std::vector<std::string> before;
  Table table;
  std::vector<std::string> after;
};

/// Sections with content, in the order of the report.
std::vector<MemorySection> memory_sections(const MemoryReport& report);

/// "12.3 %"; of nothing it is "-".
std::string share_text(Bytes part, Bytes whole);

/// "aten::mm" or "aten::mm (model.py:12 forward)".
std::string who_text(std::string_view op, std::string_view line);

/// "parameters", "activations", "unknown use" ...
std::string_view plural(MemoryUse use);

}  // namespace foretrace
