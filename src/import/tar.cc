#include "import/tar.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kMaxName = 64 * 1024;

/// Octal text, or the base-256 form of files above 8 GB.
std::uint64_t number(const char* field, std::size_t size) {
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
    for (std::size_t i = size - 8; i < size; ++i) {
      value = value << 8U | static_cast<unsigned char>(field[i]);
    }
    return value & 0x7fffffffffffffffU;
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (field[i] >= '0' && field[i] <= '7')
      value = value * 8 + static_cast<std::uint64_t>(field[i] - '0');
  }
  return value;
}

std::string text(const char* field, std::size_t size) { return {field, ::strnlen(field, size)}; }

/// The path in a pax header: lines of "length key=value".
std::string pax_path(const std::string& records) {
  const std::size_t key = records.find(" path=");
  if (key == std::string::npos) return {};
  const std::size_t end = records.find('\n', key);
  return records.substr(key + 6, end == std::string::npos ? end : end - key - 6);
}

class Member : public Source {
 public:
  explicit Member(TarReader& tar) : tar_(tar) {}
  std::size_t read(char* to, std::size_t room) override { return tar_.read(to, room); }
  std::string damage() const override { return tar_.cut() ? "the archive ends in the middle" : ""; }

 private:
  TarReader& tar_;
};

/// Keeps everything that a member needs alive.
class OwnedMember : public Source {
 public:
  explicit OwnedMember(std::unique_ptr<Source> bytes) : bytes_(std::move(bytes)), tar_(*bytes_) {}
  bool find(const std::string& name) {
    while (tar_.next()) {
      if (tar_.name() == name) return true;
    }
    return false;
  }
  std::size_t read(char* to, std::size_t room) override { return tar_.read(to, room); }
  std::string damage() const override {
    return tar_.cut() ? "the archive ends in the middle" : bytes_->damage();
  }

 private:
  std::unique_ptr<Source> bytes_;
  TarReader tar_;
};

}  // namespace

ArchivePath split_archive_path(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return {path, {}};
  for (std::size_t colon = path.find(':'); colon != std::string::npos;
       colon = path.find(':', colon + 1)) {
    const std::string archive = path.substr(0, colon);
    if (std::filesystem::is_regular_file(archive, ignored))
      return {archive, path.substr(colon + 1)};
  }
  return {path, {}};
}

bool is_tar(std::string_view head) {
  if (head.size() < kBlock || head.substr(257, 5) != "ustar") return false;
  std::uint64_t sum = 8 * ' ';
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(head[i]);
  }
  return sum == number(head.data() + 148, 8);
}

bool TarReader::next() {
  std::string long_name;
  for (;;) {
    if (skip(left_ + padding_) > 0) ends_early_ = true;
    left_ = padding_ = 0;
    char header[kBlock];
    const std::size_t got = read_fully(header, kBlock);
    if (got < kBlock || !is_tar({header, kBlock})) {
      end(std::string_view(header, got));
      return false;
    }
    left_ = number(header + 124, 12);
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    const char type = header[156];
    if (type == 'L' || type == 'x') {
      const std::string payload = read_text(left_);
      long_name = type == 'L' ? text(payload.data(), payload.size()) : pax_path(payload);
      continue;
    }
    name_ = text(header, 100);
    const std::string prefix = text(header + 345, 155);
    if (header[262] == '\0' && !prefix.empty()) name_ = prefix + "/" + name_;
    if (!long_name.empty()) name_ = long_name;
    long_name.clear();
    if (type == '0' || type == '\0') return true;
  }
}

std::size_t TarReader::read(char* to, std::size_t room) {
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(room, left_));
  if (want == 0) return 0;
  const std::size_t got = bytes_.read(to, want);
  left_ -= got;
  if (got == 0) {
    cut_ = true;
    left_ = padding_ = 0;
  }
  return got;
}

std::string TarReader::damage() const {
  const std::string damage = bytes_.damage();
  return damage.empty() && ends_early_ ? "the archive ends in the middle" : damage;
}

/// A block of zeros ends an archive, and so does the end of the file in its place. What stands
/// behind it is read for what the compression has to say of the whole.
void TarReader::end(std::string_view block) {
  constexpr std::uint64_t kMostPadding = 1 << 20;
  if (cut_ || block.size() % kBlock != 0 || block.find_first_not_of('\0') != std::string_view::npos)
    ends_early_ = true;
  skip(kMostPadding);
}

std::size_t TarReader::read_fully(char* to, std::size_t size) {
  std::size_t filled = 0;
  while (filled < size) {
    const std::size_t got = bytes_.read(to + filled, size - filled);
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

std::string TarReader::read_text(std::uint64_t size) {
  std::string result(static_cast<std::size_t>(std::min(size, kMaxName)), '\0');
  std::size_t filled = 0;
  while (filled < result.size()) {
    const std::size_t got = read(result.data() + filled, result.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  result.resize(filled);
  return result;
}

std::uint64_t TarReader::skip(std::uint64_t size) {
  std::vector<char> waste(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1 << 16)));
  while (size > 0) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(size, waste.size()));
    const std::size_t got = bytes_.read(waste.data(), want);
    if (got == 0) break;
    size -= got;
  }
  return size;
}

std::unique_ptr<Source> member_source(TarReader& tar) { return std::make_unique<Member>(tar); }

std::unique_ptr<PeekedSource> open_member(const ArchivePath& path) {
  auto member = std::make_unique<OwnedMember>(decompressed(open_file(path.archive)));
  if (!member->find(path.member)) throw TraceError("the archive has no such member");
  return decompressed(std::move(member));
}

}  // namespace foretrace
