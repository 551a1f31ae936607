#pragma once

// Real traces, if FORETRACE_CORPUS names a folder of them, and the samples of the repository.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace foretrace {

/// The reason why tests on the corpus are skipped without one.
inline constexpr const char* kNoCorpus = "FORETRACE_CORPUS names no folder of recordings";

inline std::vector<std::string> sample_files() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(FORETRACE_SOURCE_DIR "/traces")) {
    if (entry.path().filename().string().find(".trace.json") != std::string::npos)
      found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Files of the corpus whose name ends in one of `endings`; none if there is no corpus.
inline std::vector<std::string> corpus_files(const std::vector<std::string>& endings) {
  std::vector<std::string> found;
  const char* folder = std::getenv("FORETRACE_CORPUS");
  if (folder == nullptr) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
      return path.ends_with(ending);
    });
    if (wanted && entry.is_regular_file()) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace foretrace
