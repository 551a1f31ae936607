#pragma once

// Reading a trace of any known format. An importer is a descriptor, a sniff and a reader; the list
// is src/import/importers.def. Odd data is counted in Trace::notes; a file that cannot be used at
// all is a TraceError that says where, what was found and what is allowed.

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// What the sniff of every importer sees: the path ("archive.tar.gz:member" inside an archive) and
/// the first bytes after decompression (gz and zst are undone; a tar is looked into).
struct Sniffed {
  std::string_view path;
  std::string_view head;
};

struct ImporterEntry {
  std::string_view name;     ///< "kineto"
  std::string_view summary;  ///< One line for `list importers`.
  bool (*recognizes)(const Sniffed& file);
  Trace (*read)(const std::string& path);
  /// Of a format whose files may hold several traces: the numbers that name them in the path,
  /// "report.sqlite:1234", in the order of ranks. `read` takes such paths. Null for other formats.
  std::vector<std::string> (*members)(const std::string& path) = nullptr;
};

const std::vector<ImporterEntry>& importers();

struct ImportOptions {
  /// Keep and use a .ftrace copy of files that take long to read, under this folder; empty:
  /// neither. Keyed by path, size, time of change and version of the importer.
  std::string cache_folder;
  /// An execution trace of the same run, or a folder of those of its ranks: the traces get the
  /// tensors of their ops from there. Beside the traces of a folder it is found without this.
  std::string execution_trace = {};
};

/// Reads the one trace in `path`, which may name a member of a file that holds several. A folder is
/// read with import_all().
Trace import_trace(const std::string& path, const ImportOptions& options = {});

/// Every trace in a file (also of several processes), an archive (.tar.gz/.tgz) or a folder of
/// per-rank files, in the order of ranks. Files of a folder that are no traces are counted in the
/// first trace's notes. Throws TraceError if there is none.
std::vector<Trace> import_all(const std::string& path, const ImportOptions& options = {});

/// $XDG_CACHE_HOME/foretrace or ~/.cache/foretrace; empty if neither is known.
std::string default_cache_folder();

/// Of the file as it is on disk, lower-case hex. Throws TraceError if it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace foretrace
