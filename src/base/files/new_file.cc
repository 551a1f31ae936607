#include "base/files/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <ostream>
#include <streambuf>
#include <system_error>
#include <vector>

#include "base/files/temporary_file.h"
#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  ///< The limit of Linux.
constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr ::mode_t kRights = 0777;

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw Error(fmt::format("cannot write '{}': {}", path, why));
}

/// Returns 1 for a path such as /proc/123/fd/1 of this process; -1 for other paths.
int own_descriptor(const fs::path& path) {
  if (path.parent_path() != fmt::format("/proc/{}/fd", ::getpid())) return -1;
  return parse_number<int>(path.filename().string()).value_or(-1);
}

/// Syncs a folder, which makes a rename in it durable. Ignores errors, because some file systems
/// cannot sync folders.
void sync_folder(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  static_cast<void>(::fsync(opened));
  ::close(opened);
}

/// A stream buffer that writes to the file. An error makes the stream bad; the first one is kept.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(NewFile& file) : file_(file), block_(kBlock) { empty(); }

  /// Throws Error if anything could not be written.
  void finish() {
    if (sync() == 0) return;
    throw Error(problem_);
  }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
    return sputc(traits_type::to_char_type(next));
  }

  int sync() override {
    if (!problem_.empty()) return -1;
    try {
      file_.write({pbase(), static_cast<std::size_t>(pptr() - pbase())});
    } catch (const Error& error) {
      problem_ = error.what();
      return -1;
    }
    empty();
    return 0;
  }

 private:
  void empty() { setp(block_.data(), block_.data() + block_.size()); }

  NewFile& file_;
  std::vector<char> block_;
  std::string problem_;
};

}  // namespace

FileTarget follow_links(const std::string& path) {
  fs::path place = path;
  std::error_code error;
  for (int i = 0; i < kMaxLinks; ++i) {
    const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
    const fs::path whole = fs::canonical(folder, error);
    if (error) cannot_write(path, std::strerror(error.value()));
    place = whole / place.filename();
    if (const int descriptor = own_descriptor(place); descriptor >= 0)
      return {place.string(), descriptor};
    if (!fs::is_symlink(fs::symlink_status(place, error))) return {place.string()};
    const fs::path next = fs::read_symlink(place, error);
    if (error) cannot_write(path, std::strerror(error.value()));
    place = whole / next;
  }
  cannot_write(path, std::strerror(ELOOP));
}

NewFile::NewFile(std::string path, NewFileOptions options)
    : path_(std::move(path)), options_(options) {
  open();
}

NewFile::~NewFile() {
  if (stream_ >= 0) ::close(stream_);
}

void NewFile::fail(int error) const { cannot_write(path_, std::strerror(error)); }

int NewFile::descriptor() const { return temporary_ ? temporary_->descriptor() : stream_; }

const std::string& NewFile::temporary_path() const {
  CHECK(temporary_);
  return temporary_->path();
}

void NewFile::open() {
  const FileTarget target = options_.is_private ? FileTarget{path_} : follow_links(path_);
  target_ = target.path;
  struct stat target_status = {};
  const bool exists = ::lstat(target_.c_str(), &target_status) == 0;
  if (!options_.is_private) {
    if (target.descriptor >= 0) return open_stream(target);
    if (fs::path(target_).filename().empty() || (exists && S_ISDIR(target_status.st_mode)))
      fail(EISDIR);
    if (exists && !S_ISREG(target_status.st_mode)) return open_stream(target);
    if (exists && ::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);
  }
  const bool is_secret = exists || options_.is_private;
  const fs::path whole(target_);
  try {
    temporary_ = std::make_unique<TemporaryFile>(
        whole.parent_path().string(), whole.filename().string(), is_secret ? 0600 : 0666);
  } catch (const std::system_error& error) {
    const std::string why = std::strerror(error.code().value());
    if (!exists) cannot_write(path_, why);
    cannot_write(path_, fmt::format("{} in its folder, where the new file is written before it "
                                    "replaces the old one",
                                    why));
  }
}

void NewFile::open_stream(const FileTarget& target) {
  stream_ = target.descriptor >= 0 ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
                                   : ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (stream_ < 0) fail(errno);
}

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Copies the rights of the replaced file. If the group cannot be kept, the new group gets no more
/// rights than everybody has.
void NewFile::give_rights() const {
  struct stat old = {};
  struct stat created = {};
  if (::stat(target_.c_str(), &old) != 0 || ::fstat(descriptor(), &created) != 0) return;
  constexpr auto kSameUser = static_cast<::uid_t>(-1);
  constexpr auto kSameGroup = static_cast<::gid_t>(-1);
  ::mode_t rights = old.st_mode & kRights;
  if (old.st_uid != created.st_uid)
    static_cast<void>(::fchown(descriptor(), old.st_uid, kSameGroup));
  if (old.st_gid != created.st_gid && ::fchown(descriptor(), kSameUser, old.st_gid) != 0)
    rights = (rights & ~::mode_t{070}) | (rights & ((rights & 07) << 3));
  static_cast<void>(::fchmod(descriptor(), rights));
}

void NewFile::commit() {
  if (!temporary_) {
    const int stream = stream_;
    stream_ = -1;
    if (::close(stream) != 0) fail(errno);
    return;
  }
  if (!options_.is_private) {
    give_rights();
    const bool synced = ::fsync(descriptor()) == 0 || errno == EINVAL || errno == ENOSYS;
    if (!synced) fail(errno);
  }
  if (!temporary_->close() || !temporary_->replace(target_)) fail(errno);
  if (!options_.is_private) sync_folder(fs::path(target_).parent_path().string());
}

void write_new_file(const std::string& path, std::string_view bytes, NewFileOptions options) {
  NewFile file(path, options);
  file.write(bytes);
  file.commit();
}

void write_new_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  NewFile file(path);
  FileBuffer buffer(file);
  std::ostream out(&buffer);
  write(out);
  buffer.finish();
  if (!out) file.fail(EIO);
  file.commit();
}

}  // namespace foretrace
