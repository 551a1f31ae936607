#include "import/files/trace_file.h"

#include <filesystem>
#include <optional>

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/files/sniff.h"
#include "import/files/sqlite_file.h"
#include "import/files/unpacked_file.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 64 * 1024;

}  // namespace

struct TraceFile::SharedFile {
  std::string path;  ///< The path without the part.
  ArchivePath location = split_archive_path(path);
  std::int64_t max_unpacked = 0;
  /// An open source of which only the first bytes have been peeked at.
  std::unique_ptr<PeekedSource> fresh;
  std::optional<std::string> head;
  std::optional<Contents> contents;
  bool is_plain = false;  ///< Neither compressed nor in an archive; valid after open().
  std::unique_ptr<UnpackedFile> unpacked;
  std::optional<std::string>
      not_unpacked;  ///< The reason why it cannot be unpacked, kept for later calls.

  std::shared_ptr<UnpackBudget> budget;  ///< Belongs to `fresh`, or to the source opened last.

  std::unique_ptr<PeekedSource> open() {
    budget = std::make_shared<UnpackBudget>(max_unpacked);
    auto packed =
        std::make_unique<PeekedSource>(counted_as_packed(open_file(location.archive), budget));
    const std::string start(packed->peek(16));
    auto bytes = decompressed(std::move(packed), budget, UnpackStage::file);
    is_plain = location.member.empty() && bytes->peek(start.size()) == start;
    return location.member.empty() ? std::move(bytes)
                                   : open_member(std::move(bytes), location.member, budget);
  }
};

TraceFile::TraceFile(std::string path, std::int64_t max_unpacked)
    : TraceFile(std::move(path), max_unpacked, nullptr) {}

TraceFile::TraceFile(std::string path, std::int64_t max_unpacked,
                     std::unique_ptr<PeekedSource> member)
    : path_(std::move(path)), opened_(std::make_shared<SharedFile>(path_)) {
  opened_->max_unpacked = max_unpacked;
  opened_->fresh = std::move(member);
}

TraceFile TraceFile::with_part(const std::string& part) const {
  TraceFile file = *this;
  file.path_ = opened_->path + ":" + part;
  file.part_ = part;
  return file;
}

const std::string& TraceFile::on_disk() const { return opened_->location.archive; }

const std::string& TraceFile::head() const {
  if (opened_->head) return *opened_->head;
  within(opened_->path, [&] {
    if (!opened_->fresh) opened_->fresh = opened_->open();
    std::string head(opened_->fresh->peek(kHead));
    if (head.empty() && !opened_->fresh->damage().empty())
      throw TraceError(opened_->fresh->damage());
    opened_->head = std::move(head);
  });
  return *opened_->head;
}

const Contents& TraceFile::contents() const {
  if (!opened_->contents) opened_->contents = examine_contents(*this);
  return *opened_->contents;
}

std::unique_ptr<PeekedSource> TraceFile::open() const {
  if (opened_->fresh) return std::move(opened_->fresh);
  return within(opened_->path, [&] { return opened_->open(); });
}

std::int64_t TraceFile::max_unpacked() const { return opened_->max_unpacked; }
std::shared_ptr<UnpackBudget> TraceFile::budget() const { return opened_->budget; }

const std::string* TraceFile::plain() const {
  head();  // Opens it.
  return opened_->is_plain ? &opened_->path : nullptr;
}

const UnpackedFile& TraceFile::unpacked() const {
  if (opened_->not_unpacked) throw TraceError(*opened_->not_unpacked);
  if (opened_->unpacked) return *opened_->unpacked;
  try {
    const UnpackBudget budget(opened_->max_unpacked);
    const std::int64_t expected = sqlite_size(head());
    budget.check(expected);
    opened_->unpacked = std::make_unique<UnpackedFile>(*without_log(open()), expected);
  } catch (const TraceError& error) {
    opened_->not_unpacked = error.what();
    throw;
  }
  return *opened_->unpacked;
}

TraceFile named_file(const std::string& path, std::int64_t max_unpacked) {
  std::error_code ignored;
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos || fs::exists(path, ignored)) return {path, max_unpacked};
  const std::string part = path.substr(colon + 1);
  if (part.empty() || part.find_first_not_of("-0123456789") != std::string::npos)
    return {path, max_unpacked};
  try {
    const TraceFile file(path.substr(0, colon), max_unpacked);
    const ImporterEntry* const importer = file.contents().importer;
    if (importer != nullptr && importer->members != nullptr) return file.with_part(part);
  } catch (const TraceError&) {
    // Reading the whole path will fail with a clearer error.
  }
  return {path, max_unpacked};
}

}  // namespace foretrace
