// A faulty disk, for LD_PRELOAD: writes to spools take time, come out short, or fail. PLAYED_DISK
// is a comma list of us=N (each write takes this long), room=N (bytes until the disk is full; a
// write beyond them fails with ENOSPC), short=1 (a write writes half of its bytes) and hang=N (the
// Nth write and all later ones never return).

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Write = ssize_t (*)(int, const void*, std::size_t, off_t);

long option(const char* name) {
  const char* list = std::getenv("PLAYED_DISK");
  const char* found = list == nullptr ? nullptr : std::strstr(list, name);
  return found == nullptr ? -1 : std::atol(found + std::strlen(name));
}

bool is_spool(int file) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/thread-self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path);
  return size > 6 && std::memcmp(path + size - 6, ".spool", 6) == 0;
}

ssize_t write_slowly(int file, const void* bytes, std::size_t size, off_t offset) {
  static const auto next = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "pwrite"));
  if (!is_spool(file)) return next(file, bytes, size, offset);
  static const long pause_us = option("us=");
  static const long room = option("room=");
  static const bool is_short = option("short=") == 1;
  static const long hang = option("hang=");
  static std::atomic<long> writes{0};
  if (hang >= 0 && ++writes > hang) {
    for (;;) pause();
  }
  if (pause_us > 0) usleep(static_cast<unsigned>(pause_us));  // clock: the fault that is played
  if (room >= 0 && offset >= room) {
    errno = ENOSPC;
    return -1;
  }
  if (room >= 0 && offset + static_cast<off_t>(size) > room)
    size = static_cast<std::size_t>(room - offset);
  if (is_short && size > 1) size /= 2;
  return next(file, bytes, size, offset);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) ssize_t pwrite(int file, const void* bytes, std::size_t size,
                                                      off_t offset) {
  return write_slowly(file, bytes, size, offset);
}
__attribute__((visibility("default"))) ssize_t pwrite64(int file, const void* bytes,
                                                        std::size_t size, off_t offset) {
  return write_slowly(file, bytes, size, offset);
}
}
