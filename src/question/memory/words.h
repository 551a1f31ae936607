#pragma once

// The sentences and tables of the memory report, so that text and page agree.

#include <string>
#include <string_view>
#include <vector>

#include "document/words/table.h"
#include "foretrace/answer/memory.h"

namespace foretrace {

/// Returns the subject of the report, then a sentence each about whether and how it fits, when the
/// peak occurs and why, and what most of it is used for.
std::vector<std::string> verdict_lines(const MemoryReport& report);

/// A heading, an introduction, a table, and a closing remark; each may be empty.
struct MemorySection {
  std::string heading;
  std::vector<std::string> before;
  Table table;
  std::vector<std::string> after;
};

/// Returns the sections that have content, in the order of the report.
std::vector<MemorySection> memory_sections(const MemoryReport& report);

/// Returns a share such as "12.3 %", or "-" if `whole` is 0.
std::string share_text(Bytes part, Bytes whole);

/// Returns "aten::mm", or "aten::mm (model.py:12 forward)" if the line is known.
std::string op_and_line(std::string_view op, std::string_view line);

/// Returns the plural of a use: "parameters", "activations", "blocks of unknown use".
std::string_view plural(MemoryUse use);

}  // namespace foretrace
