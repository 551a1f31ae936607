#include "import/files/unpacked_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Bytes of the disk that stay free for other programs.
constexpr std::int64_t kLeftFree = std::int64_t{64} << 20;

[[noreturn]] void fail() {
  throw TraceError(std::string("cannot be unpacked: ") + std::strerror(errno));
}

std::string temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

/// An open file without a name. Where a disk cannot make one, it is created in a private folder and
/// unlinked at once.
class NamelessFile {
 public:
  NamelessFile() {
#ifdef O_TMPFILE
    descriptor_ = ::open(temporary_folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return;
#endif
    std::string folder = temporary_folder() + "/foretrace-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) fail();
    const std::string path = folder + "/unpacked";
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int error = errno;
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
    errno = error;
    if (descriptor_ < 0) fail();
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  ~NamelessFile() { ::close(descriptor_); }

  /// Throws TraceError if the disk has no room for this many more bytes.
  void check_room(std::int64_t wanted) const {
    struct statvfs disk {};
    if (::fstatvfs(descriptor_, &disk) != 0) return;
    const auto free = static_cast<std::int64_t>(std::min<unsigned long long>(
        static_cast<unsigned long long>(disk.f_bavail) * disk.f_frsize, std::uint64_t{1} << 62U));
    if (wanted + kLeftFree <= free) return;
    throw TraceError(
        fmt::format("cannot be unpacked: it needs {} of disk in {}, where {} are free; set TMPDIR "
                    "to another folder",
                    to_text(Bytes{wanted}), temporary_folder(), to_text(Bytes{free})));
  }

  void append(const char* from, std::size_t size) {
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, from, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail();
      from += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  std::string_view mapped(std::size_t size) const {
    if (size == 0) return {};
    void* const place = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (place == MAP_FAILED) fail();
    return {static_cast<const char*>(place), size};
  }

 private:
  int descriptor_ = -1;
};

}  // namespace

UnpackedFile::UnpackedFile(Source& bytes, std::int64_t expected) {
  NamelessFile file;
  file.check_room(expected);
  std::vector<char> window(std::size_t{1} << 20);
  std::size_t size = 0;
  while (const std::size_t got = bytes.read(window.data(), window.size())) {
    file.check_room(static_cast<std::int64_t>(got));
    file.append(window.data(), got);
    size += got;
  }
  if (!bytes.damage().empty()) throw TraceError(bytes.damage());
  bytes_ = file.mapped(size);
}

UnpackedFile::~UnpackedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace foretrace
