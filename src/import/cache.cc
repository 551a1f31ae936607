#include "import/cache.h"

#include <cstdlib>
#include <filesystem>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/sha256.h"
#include "import/tar.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Goes up whenever an importer reads the same file differently.
constexpr int kImporterVersion = 1;
constexpr std::uintmax_t kWorthIt = 100 * 1000;

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

}  // namespace

std::optional<Trace> read_cached(const std::string& path, const std::string& folder) {
  const std::string copy = place(path, folder);
  std::error_code error;
  if (copy.empty() || !fs::exists(copy, error)) return std::nullopt;
  try {
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
}

std::string default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/foretrace";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/foretrace" : std::string();
}

}  // namespace foretrace
