#include "import/cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/sha256.h"
#include "import/tar.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Goes up whenever an importer reads the same file differently.
constexpr int kImporterVersion = 4;
constexpr std::uintmax_t kWorthIt = 100 * 1000;
/// Of all copies together; the ones not used for longest go first.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{2} << 30;

/// Where the copy is; empty if there cannot be one.
std::string place(const std::string& path, const std::string& folder) {
  if (folder.empty()) return {};
  const ArchivePath parts = split_archive_path(path);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(parts.archive, error);
  if (error || size < kWorthIt) return {};
  const auto changed = fs::last_write_time(parts.archive, error).time_since_epoch().count();
  if (error) return {};
  const fs::path whole = fs::canonical(parts.archive, error);
  if (error) return {};
  const std::string key = whole.string() + '\0' + parts.member + '\0' + std::to_string(size) +
                          '\0' + std::to_string(changed) + '\0' + std::to_string(kImporterVersion);
  return (fs::path(folder) / (sha256_of_text(key).substr(0, 32) + ".ftrace")).string();
}

void make_room(const std::string& folder) {
  struct Copy {
    fs::file_time_type used;
    std::uintmax_t size;
    fs::path path;
  };
  std::vector<Copy> copies;
  std::uintmax_t total = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() != ".ftrace") continue;
    std::error_code gone;
    const Copy copy{entry->last_write_time(gone), entry->file_size(gone), entry->path()};
    if (gone) continue;
    total += copy.size;
    copies.push_back(copy);
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.used < b.used; });
  for (const Copy& copy : copies) {
    if (total <= kMostBytes) return;
    fs::remove(copy.path, error);
    total -= copy.size;
  }
}

}  // namespace

std::optional<Trace> read_cached(const std::string& path, const std::string& folder) {
  const std::string copy = place(path, folder);
  std::error_code error;
  if (copy.empty() || !fs::exists(copy, error)) return std::nullopt;
  try {
    fs::last_write_time(copy, fs::file_time_type::clock::now(), error);
    return read_ftrace(copy);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_cached(const Trace& trace, const std::string& path, const std::string& folder) {
  const std::string copy = place(path, folder);
  if (copy.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return;
  try {
    write_ftrace(trace, copy);
  } catch (const Error&) {
    return;
  }
  make_room(folder);
}

std::string default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/foretrace";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/foretrace" : std::string();
}

}  // namespace foretrace
