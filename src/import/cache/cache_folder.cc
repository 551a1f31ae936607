#include "import/cache/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <vector>

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Limit on the size of all copies together.
constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;
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

}  // namespace

void make_cache_folder(const std::string& folder) {
  std::error_code ignored;
  fs::path path(folder);
  if (!path.has_filename()) path = path.parent_path();  // "cache/"
  fs::create_directories(path.parent_path(), ignored);
  ::mkdir(path.c_str(), 0700);
}

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

void make_room(const std::string& folder) {
  struct Copy {
    std::int64_t used;
    std::int64_t size;
    std::string path;
  };
  std::vector<Copy> copies;
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
            [](const Copy& a, const Copy& b) { return a.used < b.used; });
  for (const Copy& copy : copies) {
    if (total <= kMostBytes) return;
    ::unlink(copy.path.c_str());
    total -= copy.size;
  }
}

}  // namespace foretrace
