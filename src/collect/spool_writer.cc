#include "collect/spool_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "foretrace/crc32c.h"

namespace foretrace::collect {

namespace {

/// A write beyond the limit on the size of files raises a signal that ends the program; it must
/// not, because of us.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    const timespec at_once{};
    while (sigtimedwait(&signal_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace

int SpoolWriter::open(const char* folder) {
  const std::lock_guard lock(mutex_);
  char path[PATH_MAX];
  const int length = std::snprintf(path, sizeof path, "%s/%d.spool", folder, getpid());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return ENAMETOOLONG;
  const int file = ::open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  file_ = file;
  end_ = spool::kHeaderBytes;
  static constexpr std::array<char, spool::kHeaderBytes> kPage{};
  const NoFileSizeSignal guard;
  if (!write_at(kPage.data(), kPage.size(), 0)) {
    const int error = static_cast<int>(disk_error_);
    ::close(file);
    ::unlink(path);
    file_ = -1;
    return error;
  }
  write_locked_header(spool::State::recording);
  return 0;
}

void SpoolWriter::write_rows(const char* rows, std::size_t bytes, std::uint32_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  const NoFileSizeSignal guard;
  if (write_texts() && write_chunk(spool::ChunkKind::rows, rows, bytes, count)) {
    rows_ += count;
  } else {
    lost_ += count;
  }
}

void SpoolWriter::write_fact(std::string_view key, std::string_view value) {
  constexpr std::size_t kMost = 4096;
  value = value.substr(0, kMost - 256);
  if (key.size() > 200) return;
  std::array<char, kMost> body{};
  const auto key_size = static_cast<std::uint32_t>(key.size());
  const auto value_size = static_cast<std::uint32_t>(value.size());
  std::memcpy(body.data(), &key_size, 4);
  std::memcpy(body.data() + 4, &value_size, 4);
  std::memcpy(body.data() + 8, key.data(), key.size());
  std::memcpy(body.data() + 8 + key.size(), value.data(), value.size());
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  const NoFileSizeSignal guard;
  write_chunk(spool::ChunkKind::facts, body.data(), (8 + key.size() + value.size() + 7) / 8 * 8, 1);
}

bool SpoolWriter::write_texts() {
  for (;;) {
    if (unwritten_.bytes == nullptr) unwritten_ = texts.take_new();
    if (unwritten_.bytes == nullptr) return true;
    if (!write_chunk(spool::ChunkKind::texts, unwritten_.bytes, unwritten_.size, unwritten_.count))
      return false;
    std::free(unwritten_.bytes);
    unwritten_ = {};
  }
}

bool SpoolWriter::write_chunk(spool::ChunkKind kind, const char* body, std::size_t bytes,
                              std::uint32_t count) {
  spool::ChunkHeader header;
  header.kind = kind;
  header.count = count;
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.body_crc = crc32c(body, bytes);
  header.head_crc = crc32c(&header, offsetof(spool::ChunkHeader, head_crc));
  // The header comes last: until it is there, the chunk is not.
  if (!write_at(body, bytes, end_ + sizeof header) ||
      !write_at(reinterpret_cast<const char*>(&header), sizeof header, end_)) {
    static_cast<void>(::ftruncate(file_, static_cast<off_t>(end_)));
    return false;
  }
  end_ += sizeof header + bytes;
  return true;
}

bool SpoolWriter::write_at(const char* bytes, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t written = ::pwrite(file_, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (disk_error_ == 0) disk_error_ = static_cast<std::uint32_t>(written < 0 ? errno : ENOSPC);
      return false;
    }
    bytes += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return true;
}

void SpoolWriter::write_locked_header(spool::State state) {
  spool::Header header;
  header.state = state;
  header.process = static_cast<std::uint64_t>(getpid());
  header.parent = static_cast<std::uint64_t>(getppid());
  header.device_clock = device_clock;
  header.cupti_version = cupti_version;
  header.rows = rows_;
  header.dropped_by_cupti = dropped_by_cupti;
  header.lost_on_disk = lost_;
  header.untimed = untimed;
  header.unknown_records = unknown_records;
  header.discarded_records = discarded_records;
  header.disk_error = disk_error_;
  header.cupti_error = cupti_error;
  write_at(reinterpret_cast<const char*>(&header), sizeof header, 0);
}

void SpoolWriter::write_header() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  const NoFileSizeSignal guard;
  write_texts();
  write_locked_header(spool::State::recording);
}

void SpoolWriter::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  const NoFileSizeSignal guard;
  write_texts();
  write_locked_header(spool::State::finished);
  ::close(file_);
  file_ = -1;
}

void SpoolWriter::abandon() {
  // Another thread of the parent may have held the lock; here it is held for ever.
  const int file = file_.exchange(-1);
  if (file >= 0) ::close(file);
}

}  // namespace foretrace::collect
