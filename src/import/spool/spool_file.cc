#include "import/spool/spool_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fmt/core.h>
#include <vector>

#include "base/crc32c.h"
#include "foretrace/error.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

/// Maps the file into memory. Returns an empty view if that is impossible.
std::string_view map_file(const std::string& path, void*& mapped) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status {};
  const bool usable = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  const auto size = usable ? static_cast<std::size_t>(status.st_size) : 0;
  void* place = usable ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (place == MAP_FAILED) return {};
  mapped = place;
  return {static_cast<const char*>(place), size};
}

bool starts_as_spool(std::string_view bytes) {
  return bytes.substr(0, spool::kMagic.size()) ==
         std::string_view(spool::kMagic.data(), spool::kMagic.size());
}

std::string read_whole(const TraceFile& input) {
  const auto source = input.open();
  std::string all;
  std::vector<char> window(std::size_t{1} << 20);
  for (std::size_t got = 0; (got = source->read(window.data(), window.size())) > 0;)
    all.append(window.data(), got);
  return all;
}

}  // namespace

SpoolFile::SpoolFile(const TraceFile& input) {
  bytes_ = map_file(input.path(), mapped_);
  if (!starts_as_spool(bytes_)) {
    read_ = read_whole(input);
    if (mapped_ != nullptr) ::munmap(mapped_, bytes_.size());
    mapped_ = nullptr;
    bytes_ = read_;
  }
  if (!starts_as_spool(bytes_) || bytes_.size() < sizeof header_)
    throw TraceError(fmt::format("must be a spool, but ends after {} bytes", bytes_.size()));
  std::memcpy(static_cast<void*>(&header_), bytes_.data(), sizeof header_);
  if (header_.version != spool::kVersion) {
    throw TraceError(fmt::format("must be a spool of version {}, but is of version {}",
                                 spool::kVersion, header_.version));
  }
}

SpoolFile::~SpoolFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_.size());
}

bool SpoolFile::next(std::size_t& at, Chunk& chunk, Damage& damage) const {
  while (at + sizeof(spool::ChunkHeader) <= bytes_.size()) {
    spool::ChunkHeader head;
    std::memcpy(static_cast<void*>(&head), bytes_.data() + at, sizeof head);
    const bool sound = head.magic == spool::kChunkMagic &&
                       head.head_crc == crc32c(&head, offsetof(spool::ChunkHeader, head_crc));
    if (!sound || head.bytes > spool::kMaxChunkBytes || head.bytes % 8 != 0) {
      pass_over(at, damage);
      continue;
    }
    const std::string_view body = bytes_.substr(at + sizeof head, head.bytes);
    const bool whole =
        body.size() == head.bytes && crc32c(body.data(), body.size()) == head.body_crc;
    if (!whole) {
      ++damage.chunks;
      if (head.kind == spool::ChunkKind::rows) damage.rows += head.count;
      if (damage.first_at < 0) damage.first_at = static_cast<std::int64_t>(at);
    }
    at += sizeof head + body.size();
    if (!whole) continue;
    chunk = {head.kind, head.count, body};
    return true;
  }
  damage.ends_in_a_chunk = damage.ends_in_a_chunk || at < bytes_.size();
  return false;
}

/// Moves `at` to the next multiple of 8 at which a chunk may begin, or to the end of the file.
void SpoolFile::pass_over(std::size_t& at, Damage& damage) const {
  const std::size_t began = at;
  const std::string_view magic(reinterpret_cast<const char*>(&spool::kChunkMagic), 4);
  std::size_t found = bytes_.find(magic, at + 1);
  while (found != std::string_view::npos && found % 8 != 0) found = bytes_.find(magic, found + 1);
  at = found == std::string_view::npos ? bytes_.size() : found;
  damage.bytes += static_cast<std::int64_t>(at - began);
  if (at == bytes_.size()) {
    damage.ends_in_a_chunk = true;
    return;
  }
  ++damage.chunks;
  if (damage.first_at < 0) damage.first_at = static_cast<std::int64_t>(began);
}

}  // namespace foretrace
