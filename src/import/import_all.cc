// Imports several traces at once: the ranks of one job.

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "base/threads.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/capture/capture_file.h"
#include "import/execution_traces/link_execution_trace.h"
#include "import/files/sniff.h"
#include "import/files/sqlite_file.h"
#include "import/import_one.h"
#include "import/join_capture.h"
#include "import/nsys/exported_report.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// The traces of one file, and notes about files or members that are not traces.
struct FileTraces {
  std::vector<Trace> traces;
  Notes notes;
  std::int64_t others = 0;
  std::string first_other;  ///< Why the first of the others is not a trace.

  void leave_out(const std::string& why, bool looks_like_one = false) {
    if (others++ == 0) first_other = why;
    if (looks_like_one) {
      notes.add(Severity::warning, "traces that could not be read", why);
    } else {
      notes.add(Severity::info, "files next to the traces that are not traces", why);
    }
  }
};

std::vector<std::string> entries_of(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    const bool wanted = folders ? entry->is_directory(ignored) : entry->is_regular_file(ignored);
    if (wanted && entry->path().filename().string()[0] != '.')
      names.push_back(entry->path().string());
  }
  if (error) throw TraceError(fmt::format("{}: cannot be read: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

void read_file(const TraceFile& file, const ImportOptions& options, FileTraces& found);

void read_archive(const TraceFile& archive, const ImportOptions& options, FileTraces& found) {
  const ArchiveProblems problems =
      walk_archive(archive, [&](const TraceFile& member) { read_file(member, options, found); });
  if (!problems.first_other.empty())
    found.leave_out(fmt::format("{}: {}", archive.path(), problems.first_other));
  note_damage(problems, archive.path(), found.notes);
  if (found.first_other.empty() && !problems.damage.empty())
    found.first_other = fmt::format("{}: {}", archive.path(), problems.damage);
}

void read_traces(const TraceFile& file, const ImportOptions& options, FileTraces& found) {
  if (file.contents().is_archive) return read_archive(file, options, found);
  for (const TraceFile& trace : traces_in(file)) found.traces.push_back(import_one(trace, options));
}

/// Reads one file of a folder or one member of an archive. Errors become notes, except for a lack
/// of memory.
void read_file(const TraceFile& file, const ImportOptions& options, FileTraces& found) {
  bool looks_like_one = false;
  try {
    looks_like_one =
        !file.contents().is_archive && file.head().find("\"traceEvents\"") != std::string::npos;
    read_traces(file, options, found);
  } catch (const NoMemoryLeft&) {
    throw;
  } catch (const TraceError& error) {
    found.leave_out(error.what(), looks_like_one);
  }
}

/// PyTorch's memory snapshots often lie next to the traces of the same run. They are not ranks of
/// the job and contain no tasks, so they are left out unless there is nothing else.
void leave_out_snapshots(std::vector<Trace>& traces, bool has_others, Notes& notes) {
  if (!has_others && std::all_of(traces.begin(), traces.end(), is_snapshot)) return;
  const auto left_out = std::erase_if(traces, is_snapshot);
  if (left_out > 0) {
    notes.add(Severity::info,
              "memory snapshots next to other traces, left out; to use one, give its file alone",
              {}, static_cast<std::int64_t>(left_out));
  }
}

/// If the ranks are known only from the names of the files, the number of files gives the size of
/// the job.
void complete_world_size(std::vector<Trace>& traces) {
  std::set<std::int32_t> ranks;
  for (const Trace& trace : traces) {
    if (trace.rank_is_known) return;
    ranks.insert(trace.rank);
  }
  if (ranks.size() != traces.size()) return;
  const auto size = static_cast<std::int32_t>(traces.size());
  for (Trace& trace : traces)
    trace.world_size = std::max({trace.world_size, size, *ranks.rbegin() + 1});
}

/// Whether the trace in a file may change those of other files: an execution trace adds to them,
/// and Foretrace's own files may be of any kind.
bool may_add_to_others(const std::string& path, const ImportOptions& options) try {
  const TraceFile file(path, options.max_unpacked);
  if (is_sqlite(file.head()))
    return false;  // Otherwise contents() would unpack a compressed database to read its tables.
  if (file.contents().is_archive) return true;
  const ImporterEntry* const importer = file.contents().importer;
  return importer != nullptr && (importer->name == "native" || importer->name == "chakra" ||
                                 importer->name == "pytorch_et");
} catch (const TraceError&) {
  return false;
}

/// Reads the files of a folder on all cores. Passes a trace to `take` as soon as it is read if no
/// other file can change it.
class FolderReader {
 public:
  FolderReader(const std::string& path, const ImportOptions& options, const TakeTrace& take)
      : path_(path), options_(options), take_(take) {}

  ImportedFolder run() {
    with_memory(path_, [&] { read_path(); });
    take_rest();
    std::stable_sort(taken_.begin(), taken_.end());
    ImportedFolder folder;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      folder.order.push_back(taken_[i].number);
      // Recordings of different runs in one folder are probably not ranks of one job.
      if (i > 0 && taken_[i].rank == taken_[i - 1].rank)
        notes_.add(Severity::warning, kRepeatedRank, "rank " + std::to_string(taken_[i].rank));
    }
    folder.notes = std::move(notes_);
    return folder;
  }

 private:
  struct TakenTrace {
    std::int32_t rank = 0;
    std::size_t file = 0, place = 0;  ///< `place` counts the traces of the file from 0.
    std::size_t number = 0;

    friend bool operator<(const TakenTrace& a, const TakenTrace& b) {
      return std::tie(a.rank, a.file, a.place) < std::tie(b.rank, b.file, b.place);
    }
  };

  void read_path() {
    std::error_code ignored;
    if (fs::is_directory(path_, ignored)) return read_folder();
    read_traces(named_file(path_, options_.max_unpacked), options_, found_.emplace_back());
  }

  void read_folder() {
    read_files(entries_of(path_, false));
    const auto has_traces = [](const FileTraces& file) { return !file.traces.empty(); };
    if (!taken_.empty() || std::any_of(found_.begin(), found_.end(), has_traces)) return;
    std::vector<std::string> all;
    for (const std::string& sub : entries_of(path_, true)) {
      for (std::string& path : entries_of(sub, false)) all.push_back(std::move(path));
    }
    read_files(all);
  }

  /// JAX writes a profile twice: as NAME.xplane.pb and, with less in it, as NAME.trace.json.gz.
  std::vector<std::string> without_repeats(std::vector<std::string> paths) {
    const std::set<std::string> all(paths.begin(), paths.end());
    const auto is_repeat = [&](const std::string& path) {
      constexpr std::string_view kChrome = ".trace.json.gz";
      if (!path.ends_with(kChrome)) return false;
      const std::string name = path.substr(0, path.size() - kChrome.size()) + ".xplane.pb";
      return all.contains(name) || all.contains(name + ".gz");
    };
    const auto repeated = std::erase_if(paths, is_repeat);
    if (repeated > 0) {
      notes_.add(Severity::info, "traces beside the .xplane.pb of the same profile, left out", {},
                 static_cast<std::int64_t>(repeated));
    }
    return paths;
  }

  void read_files(const std::vector<std::string>& entries) {
    const std::vector<std::string> paths = without_repeats(entries);
    const std::size_t first = found_.size();
    found_.resize(first + paths.size());
    const auto is_list_of_captures = [](const std::string& path) {
      return fs::path(path).filename() == kCaptureIndex;
    };
    const bool may_change = !options_.execution_trace.empty() ||
                            std::any_of(paths.begin(), paths.end(), is_list_of_captures) ||
                            std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
                              return may_add_to_others(path, options_);
                            });
    on_all_cores(paths.size(), [&](std::size_t i) {
      with_memory(path_, [&] {
        read_file({paths[i], options_.max_unpacked}, options_, found_[first + i]);
        if (!may_change) hand_over(first + i);
      });
    });
  }

  /// Takes the traces of a file that know their own rank. The others wait for take_rest(), because
  /// their world size depends on the number of all traces. So do memory snapshots, which are left
  /// out if there are other traces.
  void hand_over(std::size_t file) {
    std::vector<Trace> waiting;
    std::vector<Trace>& traces = found_[file].traces;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (traces[i].rank_is_known && !is_snapshot(traces[i]))
        take(std::move(traces[i]), file, i);
      else
        waiting.push_back(std::move(traces[i]));
    }
    traces = std::move(waiting);
  }

  void take(Trace trace, std::size_t file, std::size_t place) {
    within(path_, [&] {
      std::error_code ignored;
      join_captures(trace, options_, fs::is_directory(path_, ignored));
      keep_part(trace, options_.part);
    });
    TakenTrace taken{trace.rank, file, place, 0};
    {
      const std::lock_guard lock(mutex_);
      taken.number = taken_.size();
      taken_.push_back(taken);
    }
    take_(taken.number, std::move(trace));
  }

  /// Takes the remaining traces, once all files are read and linked to each other.
  void take_rest() {
    std::vector<Trace> rest;
    std::int64_t others = 0;
    std::string first_other;
    for (FileTraces& file : found_) {
      if (others == 0) first_other = file.first_other;
      others += file.others;
      notes_.merge(file.notes);
      for (Trace& trace : file.traces) rest.push_back(std::move(trace));
    }
    if (rest.empty() && taken_.empty())
      throw TraceError(fmt::format("{}: must contain a trace, but none of its {} {} is one{}",
                                   path_, others, others == 1 ? "file" : "files",
                                   first_other.empty() ? "" : fmt::format(" ({})", first_other)));
    leave_out_snapshots(rest, !taken_.empty(), notes_);
    link_execution_traces(rest, notes_);
    leave_out_captures(rest, notes_);
    if (taken_.empty() && rest.size() > 1) complete_world_size(rest);
    if (!options_.execution_trace.empty()) link_given_execution_trace(rest, options_);
    for (std::size_t i = 0; i < rest.size(); ++i) take(std::move(rest[i]), found_.size(), i);
  }

  const std::string& path_;
  const ImportOptions& options_;
  const TakeTrace& take_;
  std::vector<FileTraces> found_;  ///< One for each file.
  Notes notes_;
  std::mutex mutex_;
  std::vector<TakenTrace> taken_;
};

}  // namespace

ImportedFolder import_each(const std::string& path, const ImportOptions& options,
                           const TakeTrace& take) {
  if (const ExportedReport report(path, options); report.exists()) {
    return report.read([&] {
      return import_each(report.path(), ExportedReport::reading(options),
                         [&](std::size_t number, Trace trace) {
                           report.rename(trace);
                           take(number, std::move(trace));
                         });
    });
  }
  return FolderReader(path, options, take).run();
}

std::vector<Trace> import_all(const std::string& path, const ImportOptions& options) {
  std::map<std::size_t, Trace> all;
  std::mutex mutex;
  const ImportedFolder folder = import_each(path, options, [&](std::size_t number, Trace trace) {
    const std::lock_guard lock(mutex);
    all.emplace(number, std::move(trace));
  });
  std::vector<Trace> traces;
  for (const std::size_t number : folder.order) traces.push_back(std::move(all.at(number)));
  traces[0].notes.merge(folder.notes);
  return traces;
}

}  // namespace foretrace
