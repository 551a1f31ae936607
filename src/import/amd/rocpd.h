#pragma once

// Reads AMD's SQLite files. There are two families, whose tables have the same prefix.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/trace.h"
#include "import/amd/amd_records.h"
#include "import/files/sqlite_file.h"

namespace foretrace {

/// The texts of a table (id, string), by id.
class RocpdStrings {
 public:
  RocpdStrings(const SqliteFile& file, std::string_view table, Names& names);
  /// The empty name if no text has this id.
  NameId operator[](std::int64_t id) const;

 private:
  std::unordered_map<std::int64_t, NameId> names_;
};

/// Interns a text from a database as valid UTF-8, at most 1 MiB of it.
NameId intern_text(std::string_view text, Names& names);

/// Reads files of rocmProfileData (rpd): rocpd_api, rocpd_op, rocpd_api_ops, rocpd_string.
void read_rpd(const SqliteFile& file, Trace& trace);

/// Reads files of rocprofiler-sdk (rocprofv3): rocpd_kernel_dispatch_<guid>, rocpd_region_<guid>
/// and so on. `guid` is the suffix of the table names, "_0a1b..." or empty.
void read_rocpd(const SqliteFile& file, const std::string& guid, Trace& trace);

/// The suffixes of the tables "rocpd_string<guid>"; several if the file was merged from several.
std::vector<std::string> guids_of(const SqliteFile& file);

}  // namespace foretrace
