#include "import/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "foretrace/error.h"
#include "import/tar.h"

namespace foretrace {

namespace {

/// A file is opened several times: to see what it is, to read it, and for its checksum. What a pipe
/// has given once is gone, and opening one that nobody writes to never returns.
void refuse_streams(const std::string& path) {
  std::error_code unknown;
  switch (std::filesystem::status(path, unknown).type()) {
    case std::filesystem::file_type::fifo:
    case std::filesystem::file_type::socket:
    case std::filesystem::file_type::character:
      throw TraceError("must be a file, but is a pipe or device; save what comes out of it first");
    default:
      return;
  }
}

class File : public Source {
 public:
  explicit File(const std::string& path) {
    refuse_streams(path);
    file_ = std::fopen(path.c_str(), "rb");
    if (file_ == nullptr)
      throw TraceError(std::string("cannot be opened: ") + std::strerror(errno));
    std::setvbuf(file_, nullptr, _IONBF, 0);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() override { std::fclose(file_); }

  std::size_t read(char* to, std::size_t room) override {
    const std::size_t got = std::fread(to, 1, room, file_);
    if (got == 0 && std::ferror(file_) != 0) {
      throw TraceError(std::string("cannot be read: ") + std::strerror(errno));
    }
    return got;
  }

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace

std::string_view PeekedSource::peek(std::size_t size) {
  while (head_.size() - taken_ < size) {
    const std::size_t had = head_.size();
    head_.resize(taken_ + size);
    const std::size_t got = rest_->read(head_.data() + had, head_.size() - had);
    head_.resize(had + got);
    if (got == 0) break;
  }
  return std::string_view(head_).substr(taken_, size);
}

std::size_t PeekedSource::read(char* to, std::size_t room) {
  const std::size_t left = std::min(room, head_.size() - taken_);
  if (left == 0) return rest_->read(to, room);
  std::memcpy(to, head_.data() + taken_, left);
  taken_ += left;
  return left;
}

std::unique_ptr<Source> open_file(const std::string& path) { return std::make_unique<File>(path); }

std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes) {
  auto peeked = std::make_unique<PeekedSource>(std::move(bytes));
  const std::string_view head = peeked->peek(32);
  if (head.substr(0, 2) == "\x1f\x8b") {
    return std::make_unique<PeekedSource>(inflate_gzip(std::move(peeked)));
  }
  if (head.substr(0, 4) == "\x28\xb5\x2f\xfd") {
    return std::make_unique<PeekedSource>(inflate_zstd(std::move(peeked)));
  }
  if (head == std::string_view("version https://git-lfs.github.com/spec/v1").substr(0, 32)) {
    throw TraceError(
        "must be a trace, but is a Git LFS pointer to one; \"git lfs pull\" fetches the file "
        "itself");
  }
  return peeked;
}

std::unique_ptr<PeekedSource> open_source(const std::string& path) {
  const ArchivePath parts = split_archive_path(path);
  if (parts.member.empty()) {
    return within(path, [&] { return decompressed(open_file(path)); });
  }
  return within(path, [&] { return open_member(parts); });
}

}  // namespace foretrace
