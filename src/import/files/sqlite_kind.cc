#include <algorithm>

#include "foretrace/error.h"
#include "import/files/sniff.h"
#include "import/files/sqlite_file.h"

namespace foretrace {

namespace {

bool has_column(const SqliteFile& file, std::string_view table, std::string_view column) {
  const std::vector<std::string> columns = file.columns(table);
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

SqliteKind kind_of(const SqliteFile& file) {
  for (const std::string& table : file.tables()) {
    if (table.starts_with("rocpd_")) return SqliteKind::rocpd;
  }
  if (file.has("StringTable") || file.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"))
    return SqliteKind::nvprof;
  for (const std::string_view table :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS"}) {
    // nvprof has some of these tables too, but with a column of row numbers.
    if (file.has(table))
      return has_column(file, table, "_id_") ? SqliteKind::nvprof : SqliteKind::nsys;
  }
  const bool of_nsys = file.has("StringIds") || file.has("META_DATA_EXPORT") ||
                       file.has("TARGET_INFO_SESSION_START_TIME");
  return of_nsys ? SqliteKind::nsys : SqliteKind::other;
}

}  // namespace

SqliteSniff sniff_sqlite(const TraceFile& file) {
  if (!is_sqlite(file.head())) return {};
  try {
    return {kind_of(SqliteFile(file)), {}};
  } catch (const TraceError& error) {
    return {SqliteKind::damaged, error.what()};
  }
}

}  // namespace foretrace
