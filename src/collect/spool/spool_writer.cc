#include "collect/spool/spool_writer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/crc32c.h"

namespace foretrace::collect {

namespace {

constexpr auto kNothingToPrepare = [] {};

/// Whether the disk is full, so that a smaller chunk may still fit.
bool wants_room(int error) { return error == ENOSPC || error == EFBIG || error == EDQUOT; }

/// Returns the size of the first `count` rows.
std::size_t bytes_of(const char* rows, std::uint32_t count) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    spool::RowKind kind{};
    std::memcpy(&kind, rows + bytes, sizeof kind);
    bytes += spool::row_bytes(kind);
  }
  return bytes;
}

}  // namespace

template <void (SpoolWriter::*task)(), class Prepare>
bool SpoolWriter::run(const Prepare& prepare, Timeout timeout) {
  return files.run(
      prepare, [](void* self) { (static_cast<SpoolWriter*>(self)->*task)(); }, this, timeout);
}

int SpoolWriter::open(const char* folder) {
  const int length = std::snprintf(path_, sizeof path_, "%s/%d.spool", folder, getpid());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path_) return ENAMETOOLONG;
  if (const int error = files.start(); error != 0) return error;
  if (!run<&SpoolWriter::create>(kNothingToPrepare, Timeout::recorder)) return ETIMEDOUT;
  return create_error_;
}

void SpoolWriter::create() {
  create_error_ = file_.create(path_);
  if (create_error_ != 0) return;
  end_ = spool::kHeaderBytes;
  static constexpr std::array<char, spool::kHeaderBytes> kPage{};
  create_error_ = file_.write_at(kPage.data(), kPage.size(), 0);
  if (create_error_ != 0) {
    file_.close();
    ::unlink(path_);
    return;
  }
  is_open_ = true;
  write_header_as(spool::State::recording);
}

/// Copies the caller's data, which may be gone before it is written. Returns false if there is no
/// memory.
bool SpoolWriter::stage(const char* bytes, std::size_t size, std::uint32_t count) {
  staged_bytes_ = 0;
  staged_count_ = count;
  if (size > staged_room_) {
    auto* larger = static_cast<char*>(std::realloc(staged_, size));
    if (larger == nullptr) return false;
    staged_ = larger;
    staged_room_ = size;
  }
  std::memcpy(staged_, bytes, size);
  staged_bytes_ = size;
  return true;
}

void SpoolWriter::write_rows(const char* rows, std::size_t bytes, std::uint32_t count,
                             Timeout timeout) {
  if (count == 0 || !is_open()) return;
  const bool late = rows_until_ != UINT64_MAX && monotonic_now() >= rows_until_;
  bool is_staged = false;
  const auto copy = [&] {
    stage(rows, bytes, count);
    left_to_write_ = count;
    is_staged = true;
  };
  const auto put = [](void* self) { static_cast<SpoolWriter*>(self)->put_rows(); };
  // Rows from CUPTI are on disk when its callback returns, no matter how the program ends later.
  if (!late && timeout == Timeout::recorder) files.run(copy, put, this, timeout);
  if (!late && timeout == Timeout::program) files.post(copy, put, this, timeout);
  if (!is_staged) lost_ += count;
}

/// Writes the staged rows. If the disk is nearly full, writes as many rows as fit.
void SpoolWriter::put_rows() {
  const char* at = staged_;
  std::uint32_t left = staged_bytes_ == 0 ? 0 : staged_count_;
  const std::uint32_t unstaged = staged_count_ - left;
  std::uint32_t at_once = left;
  bool is_tight = false;
  int error = put_texts();
  while (left > 0 && error == 0) {
    const std::uint32_t count = std::min(left, at_once);
    const std::size_t bytes = bytes_of(at, count);
    error = put_chunk(spool::ChunkKind::rows, at, bytes, count);
    if (error == 0) {
      rows_ += count;
      left -= count;
      at += bytes;
    } else if (wants_room(error) && at_once > 1) {
      is_tight = true;
      error = 0;
    }
    if (is_tight) at_once = std::max(at_once / 2, 1U);
  }
  lost_ += left + unstaged;
  left_to_write_ = 0;
}

void SpoolWriter::write_fact(std::string_view key, std::string_view value) {
  constexpr std::size_t kMax = 4096;
  value = value.substr(0, kMax - 256);
  if (key.size() > 200 || !is_open()) return;
  std::array<char, kMax> body{};
  const auto key_size = static_cast<std::uint32_t>(key.size());
  const auto value_size = static_cast<std::uint32_t>(value.size());
  std::memcpy(body.data(), &key_size, 4);
  std::memcpy(body.data() + 4, &value_size, 4);
  std::memcpy(body.data() + 8, key.data(), key.size());
  std::memcpy(body.data() + 8 + key.size(), value.data(), value.size());
  const std::size_t size = (8 + key.size() + value.size() + 7) / 8 * 8;
  run<&SpoolWriter::put_fact>([&] { stage(body.data(), size, 1); }, Timeout::program);
}

void SpoolWriter::put_fact() {
  if (staged_bytes_ > 0) put_chunk(spool::ChunkKind::facts, staged_, staged_bytes_, 1);
}

int SpoolWriter::put_texts() {
  for (;;) {
    if (unwritten_.bytes == nullptr) unwritten_ = texts.take_new();
    if (unwritten_.bytes == nullptr) return 0;
    const int error =
        put_chunk(spool::ChunkKind::texts, unwritten_.bytes, unwritten_.size, unwritten_.count);
    if (error != 0) return error;
    std::free(unwritten_.bytes);
    unwritten_ = {};
  }
}

int SpoolWriter::put_chunk(spool::ChunkKind kind, const char* body, std::size_t bytes,
                           std::uint32_t count) {
  spool::ChunkHeader header;
  header.kind = kind;
  header.count = count;
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.body_crc = crc32c(body, bytes);
  header.head_crc = crc32c(&header, offsetof(spool::ChunkHeader, head_crc));
  // Write the header last: a chunk counts only once its header is complete.
  int error = file_.write_at(body, bytes, end_ + sizeof header);
  if (error == 0)
    error = file_.write_at(reinterpret_cast<const char*>(&header), sizeof header, end_);
  if (error == 0) {
    end_ += sizeof header + bytes;
    return 0;
  }
  if (disk_error_ == 0) disk_error_ = static_cast<std::uint32_t>(error);
  file_.truncate(end_);
  is_lost_ = file_.is_lost();
  return error;
}

void SpoolWriter::write_header_as(spool::State state) {
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
  file_.write_at(reinterpret_cast<const char*>(&header), sizeof header, 0);
  is_lost_ = file_.is_lost();
}

void SpoolWriter::write_header() {
  if (is_open()) run<&SpoolWriter::put_header>(kNothingToPrepare, Timeout::recorder);
}

void SpoolWriter::put_header() {
  put_texts();
  write_header_as(spool::State::recording);
}

void SpoolWriter::finish() {
  if (is_open()) run<&SpoolWriter::put_end>(kNothingToPrepare, Timeout::recorder);
}

void SpoolWriter::put_end() {
  put_texts();
  write_header_as(spool::State::finished);
  is_open_ = false;
  file_.close();
}

void SpoolWriter::abandon() {
  // Close the file directly, not on the file thread: if a thread of the parent was using that
  // during the fork, it never becomes free in the child.
  if (is_open_.exchange(false) && !files.is_private()) file_.close();
}

void SpoolWriter::set_deadlines(std::uint64_t rows_until, std::uint64_t until) {
  rows_until_ = rows_until;
  files.set_deadline(until);
}

}  // namespace foretrace::collect
