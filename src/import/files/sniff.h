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

/// Opens the file and looks at the names of its tables only.
SqliteSniff sniff_sqlite(const TraceFile& file);

/// unreadable.cc: describes a file that people mistake for a trace, or that no importer reads: "a
/// SQLite database, as Nsight Systems exports one". Empty if it is none of those.
std::string describe_unreadable(const Sniffed& file);

/// Examines a file for TraceFile::contents(), which keeps the result.
Contents examine_contents(const TraceFile& file);

/// The traces in a file that is not an archive. If there are several, each has a number as its
/// part. Throws TraceError if there is none.
std::vector<TraceFile> traces_in(const TraceFile& file);

/// Members of an archive that are not traces, and its damage.
struct ArchiveProblems {
  /// "member is ..." for the first member that is not a trace; empty if all are traces.
  std::string first_other;
  std::string damage;  ///< Why the archive ends too early; empty if it does not.
};

/// Reads an archive in one pass and calls `visit` with each member that an importer recognizes, in
/// the order of the archive. A member can be read only until `visit` returns. Throws TraceError if
/// the archive unpacks to more than is allowed.
ArchiveProblems walk_archive(const TraceFile& archive,
                             const std::function<void(const TraceFile& member)>& visit);

/// Adds a note if the archive is damaged, so that members may be missing.
void note_damage(const ArchiveProblems& problems, const std::string& archive, Notes& notes);

}  // namespace foretrace
