// Several traces at once: the ranks of one job.

#include <algorithm>
#include <filesystem>
#include <set>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/execution_traces/link_execution_trace.h"
#include "import/files/sniff.h"
#include "import/import_one.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Traces, and what was found next to them.
struct Found {
  std::vector<Trace> traces;
  Notes notes;
  std::int64_t others = 0;
  std::string first_other;  ///< Why the first of them is not a trace.

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
  if (error) throw TraceError(folder + ": cannot be read: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void read_file(const TraceFile& file, const ImportOptions& options, Found& found);

void read_archive(const TraceFile& archive, const ImportOptions& options, Found& found) {
  const ArchiveRest rest =
      walk_archive(archive, [&](const TraceFile& member) { read_file(member, options, found); });
  if (!rest.first_other.empty()) found.leave_out(archive.path() + ": " + rest.first_other);
  note_damage(rest, archive.path(), found.notes);
  if (found.first_other.empty() && !rest.damage.empty())
    found.first_other = archive.path() + ": " + rest.damage;
}

void read_traces(const TraceFile& file, const ImportOptions& options, Found& found) {
  if (file.contents().is_archive) return read_archive(file, options, found);
  for (const TraceFile& trace : traces_in(file)) found.traces.push_back(import_one(trace, options));
}

/// One of the files of a folder or an archive.
void read_file(const TraceFile& file, const ImportOptions& options, Found& found) {
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

void read_files(const std::string& folder, const ImportOptions& options, Found& found) {
  for (const std::string& path : entries_of(folder, false))
    read_file({path, options.max_unpacked}, options, found);
}

void read_folder(const std::string& folder, const ImportOptions& options, Found& found) {
  read_files(folder, options, found);
  if (!found.traces.empty()) return;
  for (const std::string& sub : entries_of(folder, true)) read_files(sub, options, found);
}

void read_path(const std::string& path, const ImportOptions& options, Found& found) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path, options, found);
  read_traces(named_file(path, options.max_unpacked), options, found);
}

/// PyTorch's memory snapshots are often next to the traces of the same run. They are not ranks of
/// it and have no tasks.
void leave_out_snapshots(std::vector<Trace>& traces, Notes& notes) {
  if (std::all_of(traces.begin(), traces.end(), is_snapshot)) return;
  const auto left_out = std::erase_if(traces, is_snapshot);
  if (left_out > 0) {
    notes.add(Severity::info,
              "memory snapshots next to traces of what ran, left out; give one by itself", {},
              static_cast<std::int64_t>(left_out));
  }
}

/// Recordings of different runs in one folder are probably not ranks of one job.
void note_repeated_ranks(const std::vector<Trace>& traces, Notes& notes) {
  for (std::size_t i = 1; i < traces.size(); ++i) {
    if (traces[i].rank != traces[i - 1].rank) continue;
    notes.add(Severity::warning, kRepeatedRank, "rank " + std::to_string(traces[i].rank));
  }
}

/// If only the names of the files give the ranks, their number gives the size of the job.
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

std::vector<Trace> import_whole(const std::string& path, const ImportOptions& options) {
  Found found;
  with_memory(path, [&] { read_path(path, options, found); });
  if (found.traces.empty()) {
    const std::string looked =
        std::to_string(found.others) + (found.others == 1 ? " file" : " files");
    throw TraceError(path + ": must contain a trace, but none of its " + looked + " is one" +
                     (found.first_other.empty() ? "" : " (" + found.first_other + ")"));
  }
  leave_out_snapshots(found.traces, found.notes);
  std::stable_sort(found.traces.begin(), found.traces.end(),
                   [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  link_execution_traces(found.traces, found.notes);
  note_repeated_ranks(found.traces, found.notes);
  if (found.traces.size() > 1) complete_world_size(found.traces);
  found.traces[0].notes.merge(found.notes);
  return std::move(found.traces);
}

}  // namespace

std::vector<Trace> import_all(const std::string& path, const ImportOptions& options) {
  ImportOptions whole = options;
  whole.part = {};
  whole.execution_trace.clear();
  std::vector<Trace> traces = import_whole(path, whole);
  if (!options.execution_trace.empty()) link_given_execution_trace(traces, options);
  within(path, [&] {
    for (Trace& trace : traces) keep_part(trace, options.part);
  });
  return traces;
}

}  // namespace foretrace
