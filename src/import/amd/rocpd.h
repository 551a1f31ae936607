#pragma once

// The parts of reading AMD's SQLite files; two families share a prefix of their tables.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/trace.h"
#include "import/amd/amd_records.h"
#include "import/files/sqlite_file.h"

namespace foretrace {

/// Texts by their number, out of a table (id, string).
class RocpdStrings {
 public:
  RocpdStrings(const SqliteFile& file, std::string_view table, Names& names);
  /// Empty for numbers without a text.
  NameId operator[](std::int64_t id) const;

 private:
  std::unordered_map<std::int64_t, NameId> names_;
};

/// Valid UTF-8 out of what a database holds.
NameId intern_text(std::string_view text, Names& names);

/// Files of rocmProfileData (rpd): rocpd_api, rocpd_op, rocpd_api_ops, rocpd_string.
void read_rpd(const SqliteFile& file, Trace& trace);

/// Files of rocprofiler-sdk (rocprofv3): rocpd_kernel_dispatch_<guid>, rocpd_region_<guid> and so
/// on. `guid` is what follows the names of the tables, "_0a1b..." or nothing.
void read_rocpd(const SqliteFile& file, const std::string& guid, Trace& trace);

/// What follows "rocpd_string" in a name of a table; more than one if files were merged.
std::vector<std::string> guids_of(const SqliteFile& file);

}  // namespace foretrace
