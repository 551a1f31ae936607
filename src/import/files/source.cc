#include "import/files/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <vector>

#include "base/sha256.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/units.h"
#include "import/files/archive.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxUnpacked = std::int64_t{16} << 30;
/// The ratio is not limited below this size.
constexpr std::int64_t kHarmlessUnpacked = std::int64_t{256} << 20;
/// The highest ratio of real traces is 34.
constexpr std::int64_t kMaxRatio = 200;

/// Throws TraceError for pipes, sockets and devices. A trace is opened several times: to recognize
/// it, to read it, and for its checksum. A pipe can be read only once, and opening one without a
/// writer never returns.
void refuse_streams(const std::string& path) {
  std::error_code unknown;
  switch (std::filesystem::status(path, unknown).type()) {
    case std::filesystem::file_type::fifo:
    case std::filesystem::file_type::socket:
    case std::filesystem::file_type::character:
      throw TraceError("must be a file, but is a pipe or device; save its output to a file first");
    default:
      return;
  }
}

class FileSource : public Source {
 public:
  explicit FileSource(const std::string& path) {
    refuse_streams(path);
    file_ = std::fopen(path.c_str(), "rb");
    if (file_ == nullptr)
      throw TraceError(std::string("cannot be opened: ") + std::strerror(errno));
    std::setvbuf(file_, nullptr, _IONBF, 0);
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { std::fclose(file_); }

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

class CountedSource : public Source {
 public:
  using Count = void (*)(UnpackBudget& budget, UnpackStage stage, std::size_t size);

  CountedSource(std::unique_ptr<Source> bytes, std::shared_ptr<UnpackBudget> budget,
                UnpackStage stage, Count count)
      : bytes_(std::move(bytes)), budget_(std::move(budget)), stage_(stage), count_(count) {}

  std::size_t read(char* to, std::size_t room) override {
    const std::size_t got = bytes_->read(to, room);
    count_(*budget_, stage_, got);
    return got;
  }
  std::string damage() const override { return bytes_->damage(); }

 private:
  std::unique_ptr<Source> bytes_;
  std::shared_ptr<UnpackBudget> budget_;
  UnpackStage stage_;
  Count count_;
};

using Inflate = std::unique_ptr<Source> (*)(std::unique_ptr<Source>);

/// The decompressor for the first bytes of a file; null if it is not compressed.
Inflate decompressor_of(std::string_view head) {
  using namespace std::string_view_literals;
  struct Signature {
    std::string_view start;
    Inflate inflate;
  };
  static constexpr Signature kSignatures[] = {{"\x1f\x8b"sv, inflate_gzip},
                                              {"\x28\xb5\x2f\xfd"sv, inflate_zstd},
                                              {"\xfd\x37zXZ\0"sv, inflate_by_libarchive},
                                              {"BZh"sv, inflate_by_libarchive}};
  for (const Signature& signature : kSignatures) {
    if (head.starts_with(signature.start)) return signature.inflate;
  }
  return nullptr;
}

}  // namespace

void UnpackBudget::add_unpacked(UnpackStage stage, std::size_t unpacked) {
  UnpackedBytes& counted = unpacked_[static_cast<std::size_t>(stage)];
  counted.total += static_cast<std::int64_t>(unpacked);
  counted.of_trace += static_cast<std::int64_t>(unpacked);
  const bool of_one_trace =
      stage == UnpackStage::file ? !holds_several_ : stage != UnpackStage::skipped;
  if (of_one_trace) check(counted.of_trace);
  if (most_ > 0 || counted.total <= kHarmlessUnpacked || counted.total / kMaxRatio <= packed_)
    return;
  throw TraceError(
      fmt::format("unpacks to more than {} times its size, as no recording does ({} from {}); if "
                  "it is a recording, allow it with --max-unpacked 16GiB",
                  kMaxRatio, to_text(Bytes{counted.total}), to_text(Bytes{packed_})));
}

void UnpackBudget::begin_trace() {
  holds_several_ = true;
  for (UnpackedBytes& counted : unpacked_) counted.of_trace = 0;
}

void UnpackBudget::check(std::int64_t unpacked) const {
  const std::int64_t most = most_ > 0 ? most_ : kMaxUnpacked;
  if (unpacked <= most) return;
  throw TraceError(fmt::format(
      "unpacks to more than {}, the most that is allowed; --max-unpacked {} allows more",
      to_exact_text(Bytes{most}), to_exact_text(Bytes{2 * most})));
}

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

std::unique_ptr<Source> open_file(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<Source> counted_as_packed(std::unique_ptr<Source> bytes,
                                          std::shared_ptr<UnpackBudget> budget) {
  const auto count = [](UnpackBudget& to, UnpackStage, std::size_t size) { to.add_packed(size); };
  return std::make_unique<CountedSource>(std::move(bytes), std::move(budget), UnpackStage::file,
                                         count);
}

std::unique_ptr<Source> counted_as_unpacked(std::unique_ptr<Source> bytes,
                                            std::shared_ptr<UnpackBudget> budget,
                                            UnpackStage stage) {
  const auto count = [](UnpackBudget& to, UnpackStage of, std::size_t size) {
    to.add_unpacked(of, size);
  };
  return std::make_unique<CountedSource>(std::move(bytes), std::move(budget), stage, count);
}

std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes,
                                           std::shared_ptr<UnpackBudget> budget,
                                           UnpackStage stage) {
  auto peeked = std::make_unique<PeekedSource>(std::move(bytes));
  const std::string_view head = peeked->peek(32);
  if (const Inflate inflate = decompressor_of(head)) {
    return std::make_unique<PeekedSource>(
        counted_as_unpacked(inflate(std::move(peeked)), std::move(budget), stage));
  }
  if (head == std::string_view("version https://git-lfs.github.com/spec/v1").substr(0, 32)) {
    throw TraceError(
        "must be a trace, but is a Git LFS pointer to one; \"git lfs pull\" fetches the file "
        "itself");
  }
  return peeked;
}

std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes) {
  const auto budget = std::make_shared<UnpackBudget>();
  return decompressed(counted_as_packed(std::move(bytes), budget), budget, UnpackStage::file);
}

std::string read_whole(Source& bytes, std::size_t most) {
  std::string all;
  std::size_t got = 0;
  do {
    const std::size_t before = all.size();
    constexpr std::size_t kPart = std::size_t{1} << 20;
    all.resize(before + kPart);
    got = bytes.read(all.data() + before, kPart);
    all.resize(before + got);
  } while (got > 0 && all.size() <= most);
  if (got == 0 && !bytes.damage().empty()) throw TraceError(bytes.damage());
  return all;
}

void note_cut(Notes& notes, std::string_view where, const std::string& damage, std::int64_t at) {
  notes.add(Severity::warning,
            fmt::format("the trace is cut off{}{}{}; everything before that was read",
                        where.empty() ? "" : " ", where, damage.empty() ? "" : ": " + damage),
            "at byte " + std::to_string(at));
}

std::string sha256_of_file(const std::string& path) {
  return within(path, [&] {
    const auto file = open_file(path);
    Sha256 sha;
    std::vector<char> chunk(1 << 16);
    while (const std::size_t got = file->read(chunk.data(), chunk.size()))
      sha.add(std::string_view(chunk.data(), got));
    return hex_of(sha.digest());
  });
}

}  // namespace foretrace
