#include "import/files/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <fmt/core.h>
#include <utility>

#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kChunk = 1 << 18;

bool is_tar(std::string_view head) {
  if (head.size() < kTarBlock || head.substr(257, 5) != "ustar") return false;
  std::uint64_t sum = 8 * ' ';
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(head[i]);
  }
  std::uint64_t recorded = 0;
  for (const char digit : head.substr(148, 8)) {
    if (digit >= '0' && digit <= '7')
      recorded = recorded * 8 + static_cast<std::uint64_t>(digit - '0');
  }
  return sum == recorded;
}

/// Tries UTF-8 first and then the current locale, because a name may be valid in only one of them.
std::string name_of(archive_entry* entry) {
  if (const char* name = archive_entry_pathname_utf8(entry)) return name;
  if (const char* name = archive_entry_pathname(entry)) return name;
  return "a member without a name";
}

bool is_file(archive_entry* entry) {
  return archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr &&
         archive_entry_is_encrypted(entry) == 0;
}

class Member : public Source {
 public:
  explicit Member(ArchiveReader& archive) : archive_(archive) {}
  std::size_t read(char* to, std::size_t room) override { return archive_.read(to, room); }
  std::string damage() const override { return archive_.damage(); }

 private:
  ArchiveReader& archive_;
};

/// The first member or a named member of an archive. Owns the archive and its bytes.
class OwnedMember : public Source {
 public:
  OwnedMember(std::unique_ptr<Source> bytes, std::shared_ptr<UnpackBudget> budget,
              ArchiveReader::Form form = ArchiveReader::Form::archive)
      : bytes_(std::move(bytes)), archive_(*bytes_, std::move(budget), form) {}

  /// Goes to the first member of that name, or to the first member if the name is empty. Returns
  /// false if there is none.
  bool find(const std::string& name = {}) {
    while (archive_.next()) {
      if (name.empty() || archive_.name() == name) return true;
    }
    return false;
  }
  std::size_t read(char* to, std::size_t room) override { return archive_.read(to, room); }
  std::string damage() const override {
    return bytes_->damage().empty() ? archive_.damage() : bytes_->damage();
  }

 private:
  std::unique_ptr<Source> bytes_;
  ArchiveReader archive_;
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

bool is_archive(std::string_view path, std::string_view head) {
  return is_tar(head) || (head.starts_with("PK\x03\x04") && path.ends_with(".zip"));
}

void ArchiveReader::Free::operator()(struct archive* reader) const { archive_read_free(reader); }

ArchiveReader::ArchiveReader(Source& bytes, std::shared_ptr<UnpackBudget> budget, Form form)
    : bytes_(bytes),
      budget_(std::move(budget)),
      form_(form),
      chunk_(kChunk),
      reader_(archive_read_new()) {
  if (!reader_) throw TraceError("libarchive cannot start");
  struct archive* const reader = reader_.get();
  if (form == Form::archive) {
    archive_read_support_format_tar(reader);
    archive_read_support_format_zip_streamable(reader);
  } else {
    archive_read_support_format_raw(reader);
    archive_read_support_filter_xz(reader);
    archive_read_support_filter_bzip2(reader);
  }
  if (archive_read_open(reader, this, nullptr, &ArchiveReader::give, nullptr) != ARCHIVE_OK)
    note_damage();
}

/// Gives libarchive the next bytes. libarchive is written in C, so exceptions must not pass through
/// it; they are kept in `thrown_`.
std::ptrdiff_t ArchiveReader::give(struct archive* reader, void* self, const void** chunk) {
  auto& mine = *static_cast<ArchiveReader*>(self);
  *chunk = mine.chunk_.data();
  try {
    const std::size_t got = mine.bytes_.read(mine.chunk_.data(), mine.chunk_.size());
    mine.at_end_ = got == 0;
    return static_cast<std::ptrdiff_t>(got);
  } catch (...) {
    mine.thrown_ = std::current_exception();
    archive_set_error(reader, EIO, "the source failed");
    return ARCHIVE_FATAL;
  }
}

void ArchiveReader::note_damage() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  damage_ = fmt::format("the {} {}", form_ == Form::archive ? "archive" : "packed data",
                        at_end_ ? "ends in the middle" : "is damaged");
}

bool ArchiveReader::next() {
  skip_member();
  while (damage_.empty()) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader_.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
      note_damage();
      break;
    }
    if (!is_file(entry)) continue;
    name_ = name_of(entry);
    return in_member_ = true;
  }
  return false;
}

std::size_t ArchiveReader::read(char* to, std::size_t room) {
  return take(to, room, UnpackStage::archive);
}

std::size_t ArchiveReader::take(char* to, std::size_t room, UnpackStage stage) {
  if (!damage_.empty() || !in_member_) return 0;
  const auto got = archive_read_data(reader_.get(), to, room);
  in_member_ = got > 0;
  if (got < 0) {
    note_damage();
    return 0;
  }
  if (budget_) budget_->add_unpacked(stage, static_cast<std::size_t>(got));
  return static_cast<std::size_t>(got);
}

/// Skips the rest of the member by reading it: libarchive unpacks it anyway, and reading counts the
/// bytes against the budget.
void ArchiveReader::skip_member() {
  if (!in_member_) return;
  std::vector<char> waste(kChunk);
  while (take(waste.data(), waste.size(), UnpackStage::skipped) > 0) {
  }
}

std::unique_ptr<Source> member_source(ArchiveReader& archive) {
  return std::make_unique<Member>(archive);
}

std::unique_ptr<PeekedSource> open_member(std::unique_ptr<Source> archive, const std::string& name,
                                          std::shared_ptr<UnpackBudget> budget) {
  budget->begin_trace();
  auto member = std::make_unique<OwnedMember>(std::move(archive), budget);
  if (!member->find(name)) throw TraceError("the archive has no such member");
  return decompressed(std::move(member), std::move(budget), UnpackStage::member);
}

std::unique_ptr<Source> inflate_by_libarchive(std::unique_ptr<Source> compressed) {
  auto member = std::make_unique<OwnedMember>(std::move(compressed), nullptr,
                                              ArchiveReader::Form::packed_file);
  member->find();
  return member;
}

}  // namespace foretrace
