#include "foretrace/import.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <stdexcept>

#include "foretrace/error.h"
#include "import/cache/cache.h"
#include "import/common/huge_sizes.h"
#include "import/common/rank_name.h"
#include "import/execution_traces/link_execution_trace.h"
#include "import/files/archive.h"
#include "import/files/sniff.h"
#include "import/import_one.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 8;

/// The only member of an archive that is a trace. `rest` is set to everything else.
std::string only_trace_in(const TraceFile& archive, ArchiveRest& rest) {
  std::vector<std::string> members;
  rest = walk_archive(archive, [&](const TraceFile& member) { members.push_back(member.path()); });
  const std::string& path = archive.path();
  if (members.empty()) {
    const std::string& instead = rest.first_other.empty() ? rest.damage : rest.first_other;
    throw TraceError(path + ": must contain a trace, but " +
                     (instead.empty() ? "has no files" : instead));
  }
  if (members.size() > 1) {
    throw TraceError(path + ": must contain one trace, but contains " +
                     std::to_string(members.size()) + ", such as \"" + members[0] + "\"");
  }
  return members[0];
}

/// Throws TraceError if the file contains several traces.
void check_holds_one(const TraceFile& file, const ImporterEntry& importer) {
  if (importer.members == nullptr) return;
  const std::vector<std::string> members = importer.members(file);
  if (members.size() <= 1) return;
  std::string all;
  for (std::size_t i = 0; i < members.size() && i < kMostNamed; ++i)
    all += (i == 0 ? "\"" : ", \"") + file.path() + ":" + members[i] + "\"";
  if (members.size() > kMostNamed) all += ", ...";
  throw TraceError(file.path() + ": must contain one trace, but contains " +
                   std::to_string(members.size()) + ": " + all);
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

Trace read_one_trace(const TraceFile& file, const ImportOptions& options) {
  const std::string& path = file.path();
  const CachedCopy copy(path, options.cache_folder);
  if (auto cached = copy.read()) return std::move(*cached);
  if (is_archive(path, file.head())) {
    ArchiveRest rest;
    const TraceFile member(only_trace_in(file, rest), options.max_unpacked);
    Trace trace = import_one(member, options);
    note_damage(rest, path, trace.notes);
    return trace;
  }
  const ImporterEntry* const importer = importer_for(file);
  if (importer == nullptr) throw TraceError(path + ": must be a trace, but is " + what_it_is(file));
  if (file.part().empty()) {
    check_holds_one(file, *importer);
  } else if (importer->members == nullptr) {
    throw TraceError(path + ": must be the path of a file that contains one trace");
  }
  Trace trace = importer->read(file);
  leave_out_huge_sizes(trace);
  if (file.part().empty()) take_rank_from_name(path, trace);
  if (importer->name != "native") copy.write(trace);
  return trace;
}

}  // namespace

Trace import_one(const TraceFile& file, const ImportOptions& options) {
  try {
    Trace trace = read_one_trace(file, options);
    trace.files = {{file.on_disk(), trace.format}};
    return trace;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // More than any memory could hold.
  }
  throw NoMemoryLeft(file.path() + ": cannot be read: it needs more memory than there is");
}

Trace import_trace(const std::string& path, const ImportOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw TraceError(path + ": must be one trace, but is a folder");
  std::vector<Trace> one;
  one.push_back(import_one(named_file(path, options.max_unpacked), options));
  if (!options.execution_trace.empty()) link_given_execution_trace(one, options);
  within(path, [&] { keep_part(one[0], options.part); });
  return std::move(one[0]);
}

}  // namespace foretrace
