#pragma once

// The parts that read AMD's SQLite files; two families share a prefix of their tables.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/trace.h"
#include "import/amd/amd_records.h"
#include "import/files/sqlite_file.h"

namespace foretrace {

/// Texts by their number, from a table (id, string).
class RocpdStrings {
 public:
  RocpdStrings(const SqliteFile& file, std::string_view table, Names& names);
  /// Empty for numbers without a text.
  NameId operator[](std::int64_t id) const;

 private:
  std::unordered_map<std::int64_t, NameId> names_;
};

/// Turns text from a database into valid UTF-8.
NameId intern_text(std::string_view text, Names& names);

/// Reads files of rocmProfileData (rpd): rocpd_api, rocpd_op, rocpd_api_ops, rocpd_string.
void read_rpd(const SqliteFile& file, Trace& trace);

/// Reads files of rocprofiler-sdk (rocprofv3): rocpd_kernel_dispatch_<guid>, rocpd_region_<guid>
/// and so on. `guid` is the suffix of the table names, "_0a1b..." or empty.
void read_rocpd(const SqliteFile& file, const std::string& guid, Trace& trace);

/// Returns what follows "rocpd_string" in table names; several if files were merged.
std::vector<std::string> guids_of(const SqliteFile& file);

}  // namespace foretrace
