#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// The program that made a SQLite database. `none` is not a database at all.
enum class SqliteKind : std::uint8_t { none, nsys, nvprof, rocpd, other, damaged };

struct SqliteSniff {
  SqliteKind kind = SqliteKind::none;
  std::string damage;  ///< Why it cannot be read.
};

/// sqlite_kind.cc: opens the file and looks at the names of its tables only.
SqliteSniff sniff_sqlite(const TraceFile& file);

/// unreadable.cc: describes a file that people mistake for a trace, or that no importer reads: "a
/// SQLite database, as Nsight Systems exports one". Empty if it is none of those.
std::string what_else_it_is(const Sniffed& file);

/// For TraceFile::contents().
Contents look_at(const TraceFile& file);

/// The traces in a file that is no archive, each by a number if there are several. Throws
/// TraceError if there is none.
std::vector<TraceFile> traces_in(const TraceFile& file);

/// Contents of an archive other than traces.
struct ArchiveRest {
  /// "member is ..." for the first that is not a trace; empty if all are.
  std::string first_other;
  std::string damage;  ///< Why the archive ends too early; empty if it does not.
};

/// Goes over an archive in one pass and calls `visit` with each member that some importer
/// recognizes, in the order of the archive. A member can be read until `visit` returns. Throws
/// TraceError if the archive unpacks to more than is allowed.
ArchiveRest walk_archive(const TraceFile& archive,
                         const std::function<void(const TraceFile& member)>& visit);

/// Notes what the archive may have lost.
void note_damage(const ArchiveRest& rest, const std::string& archive, Notes& notes);

}  // namespace foretrace
