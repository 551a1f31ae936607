#include "import/cache/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/new_file.h"
#include "base/sha256.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "trace/ftrace_bytes.h"

namespace foretrace {
namespace {

// The folder of cached traces. A trace is private to its owner, and a copy is trusted without
// comparing it with the original file. So nobody else may read copies, and files that another user
// could have written are not used.

namespace fs = std::filesystem;

/// Limit on the size of all copies together.
constexpr std::int64_t kMaxBytes = std::int64_t{2} << 30;

/// Writing a copy takes seconds; an unfinished copy older than this was left by a killed writer.
constexpr std::int64_t kLongestWriting = 3600;

constexpr std::size_t kDigits = 32;

constexpr std::string_view kEnding = ".ftrace";

constexpr ::mode_t kOthers = 077, kOthersWrite = 022;

/// Recognizes names such as "0123456789abcdef0123456789abcdef.ftrace".
bool is_copy(std::string_view name) {
  return name.size() == kDigits + kEnding.size() && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

/// Recognizes a copy that is being written: the name of a copy followed by ".XXXXXX", with or
/// without a dot in front.
bool is_unfinished(std::string_view name) {
  if (name.starts_with('.')) name.remove_prefix(1);
  const std::size_t end = kDigits + kEnding.size();
  return name.size() > end + 1 && is_copy(name.substr(0, end)) && name[end] == '.' &&
         name.find_first_of("./", end + 1) == name.npos;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  operator int() const { return file_; }

 private:
  int file_;
};

/// Creates the folder, accessible to the user alone, if it does not exist.
void make_cache_folder(const std::string& folder) {
  std::error_code ignored;
  fs::path path(folder);
  if (!path.has_filename()) path = path.parent_path();  // "cache/"
  fs::create_directories(path.parent_path(), ignored);
  ::mkdir(path.c_str(), 0700);
}

/// Whether the folder belongs to the user and nobody else can write to it. If it contains only
/// copies, this also removes the access rights of others and, if others had write access, deletes
/// the copies.
bool is_trusted_folder(const std::string& folder) {
  struct stat link = {};
  if (::lstat(folder.c_str(), &link) != 0) return false;
  if (S_ISLNK(link.st_mode) && link.st_uid != ::geteuid() && link.st_uid != 0) return false;
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  struct stat found = {};
  if (descriptor < 0 || ::fstat(descriptor, &found) != 0 || found.st_uid != ::geteuid())
    return false;
  if ((found.st_mode & kOthers) == 0) return true;
  const std::vector<std::string> names = names_in(folder);
  const bool only_copies = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return is_copy(name) || is_unfinished(name);
  });
  if ((found.st_mode & kOthersWrite) != 0 && !only_copies) return false;
  if (only_copies && ::fchmod(descriptor, 0700) != 0) return false;
  if ((found.st_mode & kOthersWrite) != 0) {
    // The rights were changed first, so nobody else can add files after this listing.
    for (const std::string& name : names_in(folder)) ::unlinkat(descriptor, name.c_str(), 0);
  }
  return true;
}

/// Whether the copy is a regular file of the user with a single name, which nobody else could have
/// written. Also removes the access rights of others and sets its time of use to the current time.
bool is_trusted_copy(const std::string& path) {
  const Descriptor copy(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat found = {};
  if (copy < 0 || ::fstat(copy, &found) != 0) return false;
  const bool is_own = S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && found.st_nlink == 1;
  if (!is_own || (found.st_mode & kOthersWrite) != 0) return false;
  if ((found.st_mode & kOthers) != 0 && ::fchmod(copy, 0600) != 0) return false;
  ::futimens(copy, nullptr);
  return true;
}

/// Deletes unfinished copies of killed writers, then the least recently used copies until the total
/// size is within the limit. Does not touch files with other names.
void make_room(const std::string& folder) {
  struct KeptCopy {
    std::int64_t used;
    std::int64_t size;
    std::string path;
  };
  std::vector<KeptCopy> copies;
  std::int64_t total = 0;
  const std::int64_t now = std::time(nullptr);
  for (const std::string& name : names_in(folder)) {
    if (!is_copy(name) && !is_unfinished(name)) continue;
    const std::string path = (fs::path(folder) / name).string();
    struct stat found = {};
    if (::lstat(path.c_str(), &found) != 0) continue;
    if (is_unfinished(name) && now - found.st_mtime > kLongestWriting) {
      ::unlink(path.c_str());
      continue;
    }
    total += found.st_size;
    if (!is_copy(name)) continue;
    copies.push_back({found.st_mtime, found.st_size, path});
    const bool is_open = S_ISREG(found.st_mode) && (found.st_mode & kOthers) != 0;
    if (is_open) ::chmod(path.c_str(), 0600);
  }
  std::sort(copies.begin(), copies.end(),
            [](const KeptCopy& a, const KeptCopy& b) { return a.used < b.used; });
  for (const KeptCopy& copy : copies) {
    if (total <= kMaxBytes) return;
    ::unlink(copy.path.c_str());
    total -= copy.size;
  }
}

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
