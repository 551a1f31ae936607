#pragma once

#include <cstdint>
#include <string>

#include "import/files/trace_file.h"

namespace foretrace {

/// The program that made a SQLite database. `none` is not a database at all.
enum class SqliteKind : std::uint8_t { none, nsys, nvprof, rocpd, other, damaged };

struct SqliteSniff {
  SqliteKind kind = SqliteKind::none;
  std::string damage;  ///< Why it cannot be read.
};

/// Opens the file and looks at the names of its tables only.
SqliteSniff sniff_sqlite(const TraceFile& file);

}  // namespace foretrace
