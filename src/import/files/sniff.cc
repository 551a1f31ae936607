#include "import/files/sniff.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/files/sqlite_file.h"

namespace foretrace {
namespace {

/// macOS puts a file "._name" of attributes next to every file of an archive.
bool is_apple_double(const std::string& member) {
  const std::size_t slash = member.rfind('/');
  return member.compare(slash == std::string::npos ? 0 : slash + 1, 2, "._") == 0;
}

/// Visits the members of an archive that are traces and describes the first one that is not.
class ArchiveWalk {
 public:
  ArchiveWalk(const TraceFile& file, const std::function<void(const TraceFile&)>& visit)
      : file_(file), visit_(visit), bytes_(file.open()), archive_(*bytes_, file.budget()) {}

  ArchiveProblems run() {
    while (next()) {
      if (is_apple_double(archive_.name())) continue;
      if (!names_.insert(archive_.name()).second) {
        note_other("a second member of the same name; only the first can be named");
        continue;
      }
      const TraceFile member = open_member();
      const std::string other = describe_other(member);
      if (other.empty()) {
        visit_(member);
      } else {
        note_other(other);
      }
    }
    problems_.damage = bytes_->damage().empty() ? archive_.damage() : bytes_->damage();
    return std::move(problems_);
  }

 private:
  bool next() {
    return within(file_.path(), [&] {
      file_.budget()->begin_trace();
      return archive_.next();
    });
  }

  TraceFile open_member() {
    return {file_.path() + ":" + archive_.name(), file_.max_unpacked(),
            decompressed(member_source(archive_), file_.budget(), UnpackStage::member)};
  }

  /// Describes a member that is not a trace; empty if it is one.
  static std::string describe_other(const TraceFile& member) {
    try {
      return member.contents().other;
    } catch (const TraceError& error) {
      return std::string("unreadable: ") + error.what();
    }
  }

  void note_other(const std::string& description) {
    if (problems_.first_other.empty())
      problems_.first_other = fmt::format("{} is {}", archive_.name(), description);
  }

  const TraceFile& file_;
  const std::function<void(const TraceFile&)>& visit_;
  std::unique_ptr<PeekedSource> bytes_;
  ArchiveReader archive_;
  std::set<std::string> names_;
  ArchiveProblems problems_;
};

/// The end of "must be a trace, but is ...", for a file that no importer recognizes.
std::string describe_contents(const Sniffed& sniffed) {
  const std::string known = describe_unreadable(sniffed);
  if (!known.empty()) return known;
  std::string bytes;
  for (const char c : sniffed.head.substr(0, 4)) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += bytes.empty() ? "" : " ";
    bytes += "0123456789abcdef"[byte >> 4U];
    bytes += "0123456789abcdef"[byte & 15U];
  }
  return fmt::format("of an unknown format (it starts with the bytes {})", bytes);
}

bool has_column(const SqliteFile& file, std::string_view table, std::string_view column) {
  const std::vector<std::string> columns = file.columns(table);
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

SqliteKind kind_of(const SqliteFile& file) {
  for (const std::string& table : file.tables()) {
    if (table.starts_with("rocpd_")) return SqliteKind::rocpd;
  }
  if (file.has("StringTable") || file.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"))
    return SqliteKind::nvprof;
  for (const std::string_view table :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS"}) {
    // nvprof has some of these tables too, but with a column of row numbers.
    if (file.has(table))
      return has_column(file, table, "_id_") ? SqliteKind::nvprof : SqliteKind::nsys;
  }
  const bool of_nsys = file.has("StringIds") || file.has("META_DATA_EXPORT") ||
                       file.has("TARGET_INFO_SESSION_START_TIME");
  return of_nsys ? SqliteKind::nsys : SqliteKind::other;
}

}  // namespace

Contents examine_contents(const TraceFile& file) {
  const SqliteSniff database = sniff_sqlite(file);
  const Sniffed sniffed{file, file.head(), database};
  if (is_archive(file.path(), sniffed.head))
    return {.is_archive = true, .other = describe_contents(sniffed)};
  for (const ImporterEntry& importer : importers()) {
    if (importer.recognizes(sniffed)) return {.importer = &importer};
  }
  return {.other = describe_contents(sniffed)};
}

std::vector<TraceFile> traces_in(const TraceFile& file) {
  const ImporterEntry* const importer = file.contents().importer;
  if (importer == nullptr)
    throw TraceError(
        fmt::format("{}: must be a trace, but is {}", file.path(), file.contents().other));
  if (!file.part().empty() && importer->members == nullptr)
    throw TraceError(file.path() + ": must be the path of a file that contains one trace");
  if (!file.part().empty() || importer->members == nullptr) return {file};
  const std::vector<std::string> parts = importer->members(file);
  if (parts.size() <= 1) return {file};
  std::vector<TraceFile> traces;
  for (const std::string& part : parts) traces.push_back(file.with_part(part));
  return traces;
}

ArchiveProblems walk_archive(const TraceFile& archive,
                             const std::function<void(const TraceFile& member)>& visit) {
  return ArchiveWalk(archive, visit).run();
}

void note_damage(const ArchiveProblems& problems, const std::string& archive, Notes& notes) {
  if (problems.damage.empty()) return;
  notes.add(Severity::warning,
            "the archive is cut off or damaged; everything after that is missing",
            fmt::format("{}: {}", archive, problems.damage));
}

SqliteSniff sniff_sqlite(const TraceFile& file) {
  if (!is_sqlite(file.head())) return {};
  try {
    return {kind_of(SqliteFile(file)), {}};
  } catch (const TraceError& error) {
    return {SqliteKind::damaged, error.what()};
  }
}

}  // namespace foretrace
