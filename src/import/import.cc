#include "foretrace/import.h"

#include <algorithm>
#include <filesystem>

#include "foretrace/error.h"
#include "import/cache.h"
#include "import/file_member.h"
#include "import/link_execution_trace.h"
#include "import/rank_name.h"
#include "import/sniff.h"
#include "import/tar.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 8;

/// The one member of an archive that is a trace.
std::string only_trace_in(const std::string& archive, const ArchiveContents& contents) {
  const std::vector<std::string>& members = contents.traces;
  if (members.empty()) {
    throw TraceError(archive + ": must hold a trace, but " +
                     (contents.first_other.empty() ? "has no files" : contents.first_other));
  }
  if (members.size() > 1) {
    throw TraceError(archive + ": must hold one trace, but holds " +
                     std::to_string(members.size()) + ", such as \"" + archive + ":" + members[0] +
                     "\"");
  }
  return archive + ":" + members[0];
}

/// Throws TraceError if the file holds several traces.
void check_holds_one(const std::string& path, const ImporterEntry& importer) {
  if (importer.members == nullptr) return;
  const std::vector<std::string> members = importer.members(path);
  if (members.size() <= 1) return;
  std::string all;
  for (std::size_t i = 0; i < members.size() && i < kMostNamed; ++i)
    all += (i == 0 ? "\"" : ", \"") + path + ":" + members[i] + "\"";
  if (members.size() > kMostNamed) all += ", ...";
  throw TraceError(path + ": must hold one trace, but holds " + std::to_string(members.size()) +
                   ": " + all);
}

/// The importer's name, or a TraceError that says what the file is instead.
const ImporterEntry& importer_of(const std::string& path, const std::string& head) {
  const Sniffed file{path, head};
  for (const ImporterEntry& importer : importers()) {
    if (importer.recognizes(file)) return importer;
  }
  throw TraceError(path + ": must be a trace, but is " + what_it_is(file));
}

void take_rank_from_name(const std::string& path, Trace& trace) {
  const auto rank = rank_in_name(path);
  if (!rank || *rank == 0 || trace.rank != 0 || trace.metadata.count("distributedInfo") != 0)
    return;
  trace.rank = *rank;
  trace.world_size = std::max(trace.world_size, *rank + 1);
  trace.notes.add(Severity::info, "the rank is taken from the name of the file",
                  "rank " + std::to_string(*rank));
}

}  // namespace

Trace import_trace(const std::string& path, const ImportOptions& options) {
  if (!options.execution_trace.empty()) {
    std::vector<Trace> one;
    one.push_back(import_trace(path, {.cache_folder = options.cache_folder}));
    link_given_execution_trace(one, options);
    return std::move(one[0]);
  }
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw TraceError(path + ": must be one trace, but is a folder");
  const CachedCopy copy(path, options.cache_folder);
  if (auto cached = copy.read()) return std::move(*cached);
  const FileMember parts = split_file_member(path);
  const std::string head = sniff(parts.file);
  if (is_tar(head)) {
    const ArchiveContents contents = look_into_archive(path);
    Trace trace = import_trace(only_trace_in(path, contents), options);
    note_damage(contents, path, trace.notes);
    return trace;
  }
  const ImporterEntry& importer = importer_of(parts.file, head);
  if (parts.member.empty()) {
    check_holds_one(path, importer);
  } else if (importer.members == nullptr) {
    throw TraceError(path + ": must be the path of a file that holds one trace");
  }
  Trace trace = importer.read(path);
  if (parts.member.empty()) take_rank_from_name(path, trace);
  if (importer.name != "native") copy.write(trace);
  return trace;
}

}  // namespace foretrace
