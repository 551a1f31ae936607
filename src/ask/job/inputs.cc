#include "ask/job/inputs.h"

#include <algorithm>
#include <filesystem>

#include "foretrace/error.h"
#include "foretrace/import.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

void add_files(const std::string& folder, std::vector<std::string>& files) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const bool hidden = entry.path().filename().string().front() == '.';
    if (!hidden && entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  }
}

/// The files of a folder, or of the folders in it if it has none of its own.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  add_files(folder, files);
  if (files.empty()) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.is_directory(ignored)) add_files(entry.path().string(), files);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return files_in(path);
  // A member of a file is "archive.tar.gz:member" or "report.sqlite:process", also both.
  if (fs::exists(path, ignored)) return {path};
  for (std::size_t colon = path.find(':'); colon != std::string::npos;
       colon = path.find(':', colon + 1)) {
    if (fs::is_regular_file(path.substr(0, colon), ignored)) return {path.substr(0, colon)};
  }
  return {path};
}

}  // namespace

std::vector<InputFile> input_files(const std::string& path, const std::vector<Trace>& traces) {
  const std::string format = traces.empty() ? "" : traces.front().format;
  std::vector<InputFile> inputs;
  for (const std::string& file : files_of(path))
    inputs.push_back({file, format, sha256_of_file(file)});
  return inputs;
}

std::vector<Inference> infer_all(const std::vector<Trace>& traces, const std::string& path) {
  std::vector<Inference> ranks;
  for (const Trace& trace : traces) ranks.push_back(within(path, [&] { return infer(trace); }));
  return ranks;
}

}  // namespace foretrace
