#include "foretrace/import.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "import/cache/cache.h"
#include "import/common/demangle.h"
#include "import/common/huge_sizes.h"
#include "import/common/rank_name.h"
#include "import/execution_traces/link_execution_trace.h"
#include "import/files/registered.h"
#include "import/files/sniff.h"
#include "import/import_one.h"
#include "import/join_capture.h"
#include "import/nsys/exported_report.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

void take_rank_from_name(const std::string& path, Trace& trace) {
  const auto rank = rank_in_name(path);
  if (!rank || *rank == 0 || trace.rank != 0 || trace.rank_is_known) return;
  trace.rank = *rank;
  trace.world_size = std::max(trace.world_size, *rank + 1);
  trace.notes.add(Severity::info, "the rank is taken from the name of the file",
                  "rank " + std::to_string(*rank));
}

Trace read_trace(const TraceFile& file, const ImportOptions& options) {
  const CachedCopy copy(file, options.cache_folder);
  if (auto cached = copy.read()) return std::move(*cached);
  const ImporterEntry& importer = *file.contents().importer;
  Trace trace = importer.read(file);
  leave_out_huge_sizes(trace);
  demangle_kernels(trace);
  if (file.part().empty()) take_rank_from_name(file.path(), trace);
  if (importer.name != "native") copy.write(trace);
  return trace;
}

[[noreturn]] void refuse_several(const TraceFile& file, const std::vector<TraceFile>& traces) {
  constexpr std::size_t kMaxNamed = 8;
  std::string all;
  for (std::size_t i = 0; i < traces.size() && i < kMaxNamed; ++i)
    all += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", traces[i].path());
  if (traces.size() > kMaxNamed) all += ", ...";
  throw TraceError(fmt::format("{}: must contain one trace, but contains {}: {}", file.path(),
                               traces.size(), all));
}

/// Reads the only trace of a file or of a member of an archive.
Trace only_trace_in(const TraceFile& file, const ImportOptions& options) {
  const std::vector<TraceFile> traces = traces_in(file);
  if (traces.size() > 1) refuse_several(file, traces);
  return import_one(traces[0], options);
}

/// Reads the only trace in an archive, in one pass over all members.
Trace only_trace_of(const TraceFile& archive, const ImportOptions& options) {
  std::vector<std::string> members;
  std::optional<Trace> trace;
  std::exception_ptr unreadable;
  const ArchiveProblems problems = walk_archive(archive, [&](const TraceFile& member) {
    members.push_back(member.path());
    if (members.size() > 1) return;
    try {
      trace = only_trace_in(member, options);
    } catch (const TraceError&) {
      unreadable = std::current_exception();
    }
  });
  const std::string& path = archive.path();
  if (members.empty()) {
    const std::string& reason =
        problems.first_other.empty() ? problems.damage : problems.first_other;
    throw TraceError(fmt::format("{}: must contain a trace, but {}", path,
                                 reason.empty() ? "has no files" : reason));
  }
  if (members.size() > 1) {
    throw TraceError(fmt::format("{}: must contain one trace, but contains {}, such as \"{}\"",
                                 path, members.size(), members[0]));
  }
  if (unreadable) std::rethrow_exception(unreadable);
  note_damage(problems, path, trace->notes);
  return std::move(*trace);
}

}  // namespace

Trace import_one(const TraceFile& file, const ImportOptions& options) {
  return with_memory(file.path(), [&] {
    Trace trace = read_trace(file, options);
    trace.files = {{file.on_disk(), trace.format}};
    return trace;
  });
}

Trace import_trace(const std::string& path, const ImportOptions& options) {
  if (const ExportedReport report(path, options); report.exists()) {
    return report.read([&] {
      Trace trace = import_trace(report.path(), ExportedReport::reading(options));
      report.rename(trace);
      return trace;
    });
  }
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw TraceError(path + ": must be one trace, but is a folder");
  std::vector<Trace> one;
  one.push_back(with_memory(path, [&] {
    const TraceFile file = named_file(path, options.max_unpacked);
    return file.contents().is_archive ? only_trace_of(file, options) : only_trace_in(file, options);
  }));
  if (!options.execution_trace.empty()) link_given_execution_trace(one, options);
  within(path, [&] {
    join_captures(one[0], options);
    keep_part(one[0], options.part);
  });
  return std::move(one[0]);
}

const std::vector<ImporterEntry>& importers() {
  static const std::vector<ImporterEntry> entries = {
#define IMPORTER(name, summary) {#name, summary, recognizes_##name, read_##name, nullptr},
#define IMPORTER_OF_SEVERAL(name, summary) \
  {#name, summary, recognizes_##name, read_##name, members_of_##name},
#include "import/importers.def"
#undef IMPORTER
#undef IMPORTER_OF_SEVERAL
  };
  return entries;
}

}  // namespace foretrace
