#include "question/sweep/answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <utility>

#include "base/files/new_file.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

[[noreturn]] void throw_errno(std::string_view action, const std::string& path) {
  throw Error(fmt::format("cannot {} '{}': {}", action, path, std::strerror(errno)));
}

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Reads a line with its line break. Returns false at the end, and for a last line without a break,
/// whose text is then in `line`.
bool next_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line) || in.eof()) return false;
  line += '\n';
  return true;
}

std::string not_answers(const AnswerKind& kind) {
  return fmt::format("is not a file of {} answers", kind.question);
}

std::string first_line(const std::string& path, const AnswerKind& kind) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in) throw Error(fmt::format("cannot read '{}'", path));
  // The first character is checked first, because a large file of another kind may have no lines.
  if (in.peek() != '{' || !next_line(in, line))
    throw Error(fmt::format("{}: {}", path, not_answers(kind)));
  return line;
}

}  // namespace

std::string header_file_of(const std::string& path) { return path + ".sweep.json"; }

AnswerFile::AnswerFile(std::string path, AnswerFileForm form, bool fresh)
    : path_(std::move(path)),
      form_(std::move(form)),
      header_(read_header_line(form_.header, form_.kind)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw_errno("write", path_);
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw Error(fmt::format("'{}' is being written by another process", path_));
  }
  try {
    if (fresh) erase_answers();
    read();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

AnswerFile::~AnswerFile() { ::close(file_); }

void AnswerFile::truncate(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0) throw_errno("cut", path_);
  if (::lseek(file_, static_cast<off_t>(size), SEEK_SET) < 0) throw_errno("write", path_);
}

/// Empties the file, but only if it has answers: a mistyped path must not cost another file.
void AnswerFile::erase_answers() {
  if (std::filesystem::file_size(path_) > 0) {
    const std::string line =
        first_line(form_.heading.empty() ? path_ : header_file_of(path_), form_.kind);
    within(path_, [&] { read_header_line(line, form_.kind); });
  }
  truncate(0);
}

void AnswerFile::write_header() {
  next_ = points().first;
  truncate(0);
  if (!form_.heading.empty()) write_new_file(header_file_of(path_), form_.header);
  write_all(file_, form_.heading.empty() ? form_.header : form_.heading, path_);
}

void AnswerFile::check_header(const std::string& line) const {
  within(path_, [&] {
    const SweepFileHeader found = read_header_line(line, form_.kind);
    const std::string difference = form_.difference(line);
    if (!difference.empty())
      throw Error(
          fmt::format("contains the answers of another {}: {}; give another {}, or --fresh to "
                      "start over",
                      form_.kind.question, difference, form_.option));
    if (found.shard == header_.shard && found.shards == header_.shards) return;
    throw Error(fmt::format("contains shard {} of {}, not {} of {}", found.shard, found.shards,
                            header_.shard, header_.shards));
  });
}

void AnswerFile::read() {
  std::ifstream in(path_, std::ios::binary);
  if (!in) throw_errno("read", path_);
  const bool has_rows = !form_.heading.empty();
  const std::string& expected = has_rows ? form_.heading : form_.header;
  const std::string not_ours =
      fmt::format("{}: {}; give another {}", path_, not_answers(form_.kind), form_.option);
  std::string line;
  if (in.peek() != expected.front() && in.peek() != std::ifstream::traits_type::eof())
    throw Error(not_ours);
  in.clear();
  if (!next_line(in, line)) {
    // The file is empty, or its first line is torn.
    if (!expected.starts_with(line)) throw Error(not_ours);
    return write_header();
  }
  check_header(has_rows ? first_line(header_file_of(path_), form_.kind) : line);
  if (has_rows && line != expected)
    throw Error(fmt::format("{}: has different columns from this {}; give another {}", path_,
                            form_.kind.question, form_.option));
  std::uint64_t size = line.size();
  const auto [first, end] = points();
  for (next_ = first; next_ < end && next_line(in, line); ++next_) {
    try {
      form_.on_known_line(next_, std::string_view(line).substr(0, line.size() - 1));
    } catch (const Error&) {
      break;  // From a line damaged by a crash on, points are asked again.
    }
    size += line.size();
  }
  truncate(size);
}

std::pair<std::uint64_t, std::uint64_t> AnswerFile::points() const {
  return points_of_shard(header_.points, header_.shard, header_.shards);
}

void AnswerFile::add(std::string_view line) { unwritten_ += line; }

void AnswerFile::flush() {
  // Taken first: after a failed write another flush must not write the same lines again.
  const std::string lines = std::exchange(unwritten_, {});
  write_all(file_, lines, path_);
}

namespace {

constexpr std::size_t kMaxShardsListed = 32;

/// The file of one shard.
struct ShardFile {
  std::string path;
  SweepFileHeader header;
};

/// The files of all shards.
struct ShardSet {
  const AnswerKind& kind;
  bool has_rows = false;
  /// In order; the path is empty if no file was given for a shard.
  std::vector<ShardFile> shards{};
};

void check_same_questions(const AnswerKind& kind, const ShardFile& shard, const ShardFile& other) {
  if (other.header.identity != shard.header.identity)
    throw Error(
        fmt::format("{}: is from another {} than '{}'", shard.path, kind.question, other.path));
  if (other.header.shards == shard.header.shards) return;
  throw Error(fmt::format("{}: is one of {} shards, but '{}' is one of {}", shard.path,
                          shard.header.shards, other.path, other.header.shards));
}

/// Throws Error if files of shards are missing.
void check_complete(const ShardSet& set) {
  const std::vector<ShardFile>& shards = set.shards;
  std::string missing;
  std::size_t missing_count = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].path.empty() || ++missing_count > kMaxShardsListed) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
  }
  if (missing_count > kMaxShardsListed)
    missing += fmt::format(" and {} more", missing_count - kMaxShardsListed);
  if (!missing.empty())
    throw Error(fmt::format("{} merge: of {} shards these are missing: {}", set.kind.question,
                            shards.size(), missing));
}

void sort_shards(const std::vector<std::string>& files, ShardSet& set) {
  std::vector<ShardFile>& shards = set.shards;
  for (const std::string& path : files) {
    const std::string line = first_line(set.has_rows ? header_file_of(path) : path, set.kind);
    ShardFile shard{path, within(path, [&] { return read_header_line(line, set.kind); })};
    if (shards.empty()) shards.resize(static_cast<std::size_t>(shard.header.shards));
    const ShardFile* other = nullptr;
    for (const ShardFile& earlier : shards) {
      if (!earlier.path.empty()) other = &earlier;
    }
    if (other) check_same_questions(set.kind, shard, *other);
    ShardFile& slot = shards[static_cast<std::size_t>(shard.header.shard - 1)];
    if (!slot.path.empty())
      throw Error(fmt::format("{}: is shard {}, as '{}' is", path, shard.header.shard, slot.path));
    slot = std::move(shard);
  }
  check_complete(set);
}

/// Reads the number of a point from its line.
std::uint64_t number_of_line(std::string_view line, bool is_row) {
  constexpr std::string_view kBegin = "{\"point\":";
  if (!is_row) {
    if (!line.starts_with(kBegin)) throw Error("contains a line that is not an answer");
    line.remove_prefix(kBegin.size());
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits > 18 || digits == line.npos || line[digits] != ',')
    throw Error("contains a line that is not an answer");
  return std::stoull(std::string(line.substr(0, digits)));
}

void copy_points(const ShardFile& shard, const ShardSet& set, std::ostream& out) {
  std::ifstream in(shard.path, std::ios::binary);
  std::string line;
  auto [number, end] =
      points_of_shard(shard.header.points, shard.header.shard, shard.header.shards);
  if (!next_line(in, line)) throw Error(not_answers(set.kind));
  if (set.has_rows && shard.header.shard == 1) out << line;
  for (; next_line(in, line); ++number) {
    if (number >= end || number_of_line(line, set.has_rows) != number)
      throw Error(fmt::format("contains point {} where point {} should be",
                              number_of_line(line, set.has_rows), number));
    out << line;
  }
  if (number < end)
    throw Error(fmt::format("ends before point {} of {}; run its shard again to complete it",
                            number, end - 1));
}

}  // namespace

void merge_answers(const std::vector<std::string>& files, const std::string& output,
                   const AnswerKind& kind, bool has_rows) {
  ShardSet set{.kind = kind, .has_rows = has_rows};
  sort_shards(files, set);
  const std::string& header = set.shards.front().header.whole_line;
  write_new_file(output, [&](std::ostream& out) {
    if (!has_rows) out << header;
    for (const ShardFile& shard : set.shards)
      within(shard.path, [&] { copy_points(shard, set, out); });
    if (has_rows) write_new_file(header_file_of(output), header);
  });
}

}  // namespace foretrace
