#pragma once

// Reads a trace of any known format. An importer is a descriptor, a sniff and a reader; the list is
// src/import/importers.def. Odd data is counted in Trace::notes; a file that cannot be used at all
// is a TraceError that says where, what was found and what is allowed.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace_part.h"

namespace foretrace {

/// A file, or a member of an archive. It is unpacked once, however often it is read.
class TraceFile;

struct SqliteSniff;

/// A file as the sniff of every importer sees it: its first bytes after decompression (gzip, zstd,
/// xz and bzip2 are undone; tar and zip are looked into), and the program that made a database.
struct Sniffed {
  const TraceFile& file;
  std::string_view head;
  const SqliteSniff& database;
};

struct ImporterEntry {
  std::string_view name;     ///< "kineto"
  std::string_view summary;  ///< One line for `list importers`.
  bool (*recognizes)(const Sniffed& file);
  Trace (*read)(const TraceFile& file);
  /// For a format whose files may contain several traces: the numbers that select one in a path, as
  /// in "report.sqlite:1234", in the order of ranks. `read` takes such parts. Null for other
  /// formats.
  std::vector<std::string> (*members)(const TraceFile& file) = nullptr;
};

const std::vector<ImporterEntry>& importers();

struct ImportOptions {
  /// Folder for .ftrace copies of files that take long to read, which are then used instead; empty:
  /// none. Keyed by the file (its path, size, times and samples of its contents) and the version
  /// of the importer; nobody else may read it.
  std::string cache_folder = {};
  /// Limit on the bytes that one trace may unpack to; more is a TraceError. 0: 16 GiB and, beyond
  /// the first 256 MiB, 200 times its packed size, which no recording reaches.
  std::int64_t max_unpacked = 0;
  /// An execution trace of the same run, or a folder with those of its ranks, which adds the
  /// tensors of its ops to the traces. One next to the traces in a folder is found without this.
  std::string execution_trace = {};
  /// A folder with recordings of how the graphs were captured that the traces replay, or one such
  /// recording, which adds ops to the work of graphs. One beside a trace is found without this.
  std::string capture = {};
  /// Whether a report of Nsight Systems that is named itself may be exported by running nsys, if
  /// that is in a folder of the PATH. Otherwise it is refused, with the command.
  bool may_run = false;
  /// Keeps only this part of each trace. Throws Error if steps are asked for and none are marked.
  Part part = {};
};

/// Reads the one trace in `path`, which may name a member of a file that contains several. A folder
/// is read with import_all().
Trace import_trace(const std::string& path, const ImportOptions& options = {});

/// Every trace in a file (also of several processes), an archive (tar or zip, packed or not) or a
/// folder of per-rank files, in the order of ranks. Files in a folder that are not traces are
/// counted in the first trace's notes. Throws TraceError if there is no trace. An archive is read
/// in one pass.
std::vector<Trace> import_all(const std::string& path, const ImportOptions& options = {});

/// Facts about all traces of import_each().
struct ImportedFolder {
  std::vector<std::size_t> order;  ///< Their numbers, in the order of ranks.
  Notes notes;                     ///< Notes about the folder, for the first trace in this order.
};
/// Takes a trace. Called from several threads, with numbers from 0 on in any order.
using TakeTrace = std::function<void(std::size_t number, Trace trace)>;

/// As import_all(), but reads the files of a folder on all cores and hands each trace over as soon
/// as it is read, unless another file may add to it. Exceptions of `take` end it.
ImportedFolder import_each(const std::string& path, const ImportOptions& options,
                           const TakeTrace& take);

/// $XDG_CACHE_HOME/foretrace or ~/.cache/foretrace; empty if neither is known.
std::string default_cache_folder();

/// SHA-256 of the file as it is on disk, in lower-case hex. Throws TraceError if it is unreadable.
std::string sha256_of_file(const std::string& path);

}  // namespace foretrace
