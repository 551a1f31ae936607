#include "import/cache/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/files/new_file.h"
#include "base/sha256.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/cache/cache_folder.h"
#include "import/cache/reading_version.h"
#include "trace/ftrace_bytes.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWorthIt = 100 * 1000;
/// The contents are sampled at both ends and evenly between them: 256 kB, a millisecond's work.
constexpr std::int64_t kSamples = 64;
constexpr std::int64_t kSample = 4096;

std::string samples_of(int file, std::int64_t size) {
  std::string all;
  std::string sample(static_cast<std::size_t>(kSample), '\0');
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::int64_t offset = (size - kSample) / (kSamples - 1) * i;
    const bool last = i + 1 == kSamples;
    const ::ssize_t got =
        ::pread(file, sample.data(), sample.size(), last ? size - kSample : offset);
    if (got < 0) return {};
    all.append(sample, 0, static_cast<std::size_t>(got));
  }
  return all;
}

std::string nanoseconds(const ::timespec& time) {
  return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec);
}

/// Returns a text that differs after every change of the file. A writer can reset the file's times,
/// except for the time of the last status change; if the clock or the file system is too coarse to
/// show a change there, samples of the contents show it. Returns an empty text if this is not a
/// regular file, or if it is too short to be worth a copy.
std::string fingerprint(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  if (::fstat(file, &found) == 0 && found.st_size >= kWorthIt) {
    const std::string samples = samples_of(file, found.st_size);
    for (const std::uint64_t number : {std::uint64_t{found.st_dev}, std::uint64_t{found.st_ino},
                                       static_cast<std::uint64_t>(found.st_size)})
      text += std::to_string(number) + '\0';
    text += nanoseconds(found.st_mtim) + '\0' + nanoseconds(found.st_ctim) + '\0' + samples;
    if (samples.empty()) text.clear();
  }
  ::close(file);
  return text;
}

}  // namespace

CachedCopy::CachedCopy(TraceFile file, std::string folder)
    : file_(std::move(file)), folder_(std::move(folder)), place_(place()) {}

std::string CachedCopy::place() const {
  if (folder_.empty()) return {};
  const std::string contents = fingerprint(file_.on_disk());
  std::error_code error;
  const fs::path whole = fs::canonical(file_.on_disk(), error);
  if (contents.empty() || error) return {};
  const std::string key = whole.string() + file_.path().substr(file_.on_disk().size()) + '\0' +
                          std::string(reading_version()) + '\0' + contents;
  return (fs::path(folder_) / (hex_of(sha256_of(key)).substr(0, 32) + ".ftrace")).string();
}

std::optional<Trace> CachedCopy::read() const {
  if (place_.empty() || !is_trusted_folder(folder_) || !is_trusted_copy(place_))
    return std::nullopt;
  try {
    return read_ftrace(place_);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void CachedCopy::write(const Trace& trace) const {
  if (place_.empty() || place() != place_) return;
  make_cache_folder(folder_);
  if (!is_trusted_folder(folder_)) return;
  try {
    write_new_file(place_, to_ftrace(trace), {.is_private = true});
  } catch (const Error&) {
    return;
  }
  make_room(folder_);
}

std::string default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/foretrace";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/foretrace" : std::string();
}

}  // namespace foretrace
