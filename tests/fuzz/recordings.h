#pragma once

// Graphs of real recordings: the samples of the repository and, if FORETRACE_CORPUS names a folder,
// small files from there. They are read once; large ones are cut to a part of the recording.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "support/corpus.h"

namespace foretrace {

struct RealRecording {
  Graph graph;
  std::vector<std::string> words;  ///< Names of tasks, modules and lanes, for selectors.
};

/// About the number of records that can be replayed in a few milliseconds.
constexpr std::size_t kRecordsOfARecording = 3000;

inline Trace cut_to_size(Trace trace) {
  const std::size_t records = trace.hosts.size() + trace.devices.size();
  if (records <= kRecordsOfARecording || !trace.has_times) return trace;
  std::int64_t end = 0;
  for (const HostRecord& host : trace.hosts) end = std::max(end, host.start_ns);
  const auto share = static_cast<double>(kRecordsOfARecording) / static_cast<double>(records);
  // Takes the middle, because recordings may begin with work that is done only once.
  const std::int64_t begin = end / 3;
  return cut(trace, {begin, begin + static_cast<std::int64_t>(share * static_cast<double>(end))});
}

inline RealRecording recording_of(Graph graph) {
  std::set<std::string> words;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    words.emplace(graph.name(TaskId{i}));
    words.emplace(graph.names()[graph.task(TaskId{i}).module]);
  }
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) words.insert(graph.lane(LaneId{i}).name);
  return {std::move(graph), {words.begin(), words.end()}};
}

/// The recordings, in the same order as long as the files are the same. Files that cannot be
/// replayed are left out.
inline const std::vector<RealRecording>& recordings() {
  static const std::vector<RealRecording> all = [] {
    constexpr std::uintmax_t kSmall = 100'000;
    std::vector<std::string> paths = sample_files();
    for (const std::string& path : corpus_files({".json.gz", ".json", ".pickle"})) {
      if (std::filesystem::file_size(path) < kSmall) paths.push_back(path);
    }
    std::vector<RealRecording> found;
    for (const std::string& path : paths) {
      try {
        found.push_back(recording_of(infer(cut_to_size(std::move(import_all(path)[0]))).graph));
      } catch (const Error&) {
        continue;
      }
    }
    std::fprintf(stderr, "%zu recordings\n", found.size());
    return found;
  }();
  return all;
}

}  // namespace foretrace
