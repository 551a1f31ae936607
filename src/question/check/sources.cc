#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "question/check/job/changes.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The path of the only file of this name under `root`, relative to it; empty if there are several,
/// or too many files to search.
std::string only_file_named(const fs::path& root, const fs::path& name) {
  constexpr std::size_t kMaxLookedAt = 50'000;
  std::error_code error;
  std::string found;
  std::size_t looked = 0;
  for (fs::recursive_directory_iterator
           entry(root, fs::directory_options::skip_permission_denied, error),
       end;
       entry != end && !error; entry.increment(error)) {
    if (++looked > kMaxLookedAt) return {};
    const std::string base = entry->path().filename().string();
    std::error_code ignored;
    if (base.starts_with('.') && entry->is_directory(ignored)) entry.disable_recursion_pending();
    if (base != name.string() || !entry->is_regular_file(ignored)) continue;
    if (!found.empty()) return {};
    found = entry->path().lexically_relative(root).generic_string();
  }
  return found;
}

}  // namespace

std::string source_root_here() {
  for (const char* name : {"GITHUB_WORKSPACE", "CI_PROJECT_DIR"}) {
    const char* const folder = std::getenv(name);
    if (folder != nullptr && *folder != '\0') return folder;
  }
  std::error_code error;
  for (fs::path folder = fs::current_path(error); !error && !folder.empty();
       folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error)) return folder.string();
    if (folder == folder.root_path()) break;
  }
  return {};
}

std::string file_in_sources(const std::string& file, const std::string& source_root) {
  if (file.empty() || source_root.empty()) return file;
  const fs::path root(source_root);
  // Folders above the sources differ between machines, so the longest end of the path that exists
  // wins.
  fs::path rest = fs::path(file).relative_path();
  while (!rest.empty()) {
    const bool leaves_root =
        std::any_of(rest.begin(), rest.end(), [](const fs::path& part) { return part == ".."; });
    if (!leaves_root && is_source(root / rest)) return rest.generic_string();
    fs::path shorter;
    for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
    rest = shorter;
  }
  const std::string only = only_file_named(root, fs::path(file).filename());
  return only.empty() ? file : only;
}

}  // namespace foretrace
