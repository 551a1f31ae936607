#include "collect/runtime/recorder_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace foretrace::collect {

namespace {

/// How often to retry. A program that closes all descriptors one by one closes each number once.
constexpr int kTries = 16;

}  // namespace

/// Moves the descriptor to a number near the limit, which the program is unlikely to use; low
/// numbers are reused at once. Returns the new number, or the old one if that fails.
int RecorderFile::move_to_high_number(int descriptor) const {
  constexpr rlim_t kHigh = 4096;
  constexpr rlim_t kSpare = 32;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return descriptor;
  const rlim_t end = std::min(limit.rlim_cur, kHigh);
  const int from = static_cast<int>(end > 2 * kSpare ? end - kSpare : end / 2);
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, from);
  if (moved < 0) return descriptor;
  if (FileIdentity::of(descriptor).is(identity_)) ::close(descriptor);
  return moved;
}

int RecorderFile::create(const char* path) {
  if (std::strlen(path) >= sizeof path_) return ENAMETOOLONG;
  std::strcpy(path_, path);
  const int file = ::open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return errno;
  ::fchmod(file, 0600);
  identity_ = FileIdentity::of(file);
  descriptor_ = move_to_high_number(file);
  return 0;
}

bool RecorderFile::ensure_open() {
  if (!is_open()) return false;
  if (FileIdentity::of(descriptor_).is(identity_)) return true;
  // The number may now belong to a file of the program: forget it without closing it.
  descriptor_ = -1;
  // A program that is closing all descriptors may also close those that this loop opens.
  for (int i = 0; i < kTries && FileIdentity::at(path_).is(identity_); ++i) {
    const int file = ::open(path_, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) break;
    if (!FileIdentity::of(file).is(identity_)) continue;
    descriptor_ = move_to_high_number(file);
    return true;
  }
  is_lost_ = true;
  return false;
}

int RecorderFile::write_at(const char* bytes, std::size_t size, std::uint64_t offset) {
  int closed = 0;
  while (size > 0) {
    if (!ensure_open()) return EBADF;
    const ssize_t written = ::pwrite(descriptor_, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EBADF && ++closed < kTries) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

void RecorderFile::truncate(std::uint64_t size) {
  if (ensure_open()) static_cast<void>(!::ftruncate(descriptor_, static_cast<off_t>(size)));
}

void RecorderFile::close() {
  if (is_open() && FileIdentity::of(descriptor_).is(identity_)) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace foretrace::collect
