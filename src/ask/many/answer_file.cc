#include "ask/many/answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/files/new_file.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

[[noreturn]] void cannot(const std::string& what, const std::string& path) {
  throw Error("cannot " + what + " '" + path + "': " + std::strerror(errno));
}

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot("write", path);
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
  return "is not a file of " + std::string(kind.question) + " answers";
}

std::string first_line(const std::string& path, const AnswerKind& kind) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in) throw Error("cannot read '" + path + "'");
  // The first character is checked first, because a large file of another kind may have no lines.
  if (in.peek() != '{' || !next_line(in, line)) throw Error(path + ": " + not_answers(kind));
  return line;
}

}  // namespace

std::string header_file_of(const std::string& path) { return path + ".sweep.json"; }

AnswerFile::AnswerFile(std::string path, AnswerFileForm form, bool fresh)
    : path_(std::move(path)),
      form_(std::move(form)),
      header_(read_header_line(form_.header, form_.kind)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) cannot("write", path_);
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw Error("'" + path_ + "' is being written by another process");
  }
  try {
    if (fresh) forget();
    read();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

AnswerFile::~AnswerFile() { ::close(file_); }

void AnswerFile::cut(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0) cannot("cut", path_);
  if (::lseek(file_, static_cast<off_t>(size), SEEK_SET) < 0) cannot("write", path_);
}

/// Empties the file, but only if it has answers: a mistyped path must not cost another file.
void AnswerFile::forget() {
  if (std::filesystem::file_size(path_) > 0) {
    const std::string line =
        first_line(form_.heading.empty() ? path_ : header_file_of(path_), form_.kind);
    within(path_, [&] { read_header_line(line, form_.kind); });
  }
  cut(0);
}

void AnswerFile::begin() {
  next_ = points().first;
  cut(0);
  if (!form_.heading.empty()) write_new_file(header_file_of(path_), form_.header);
  write_all(file_, form_.heading.empty() ? form_.header : form_.heading, path_);
}

void AnswerFile::check_header(const std::string& line) const {
  within(path_, [&] {
    const SweepFileHeader found = read_header_line(line, form_.kind);
    const std::string why = form_.difference(line);
    if (!why.empty())
      throw Error("contains the answers of another " + std::string(form_.kind.question) + ": " +
                  why + "; give another " + form_.option + ", or --fresh to start over");
    if (found.shard == header_.shard && found.shards == header_.shards) return;
    throw Error("contains shard " + std::to_string(found.shard) + " of " +
                std::to_string(found.shards) + ", not " + std::to_string(header_.shard) + " of " +
                std::to_string(header_.shards));
  });
}

void AnswerFile::read() {
  std::ifstream in(path_, std::ios::binary);
  if (!in) cannot("read", path_);
  const bool has_rows = !form_.heading.empty();
  const std::string& expected = has_rows ? form_.heading : form_.header;
  const std::string other =
      path_ + ": " + not_answers(form_.kind) + "; give another " + form_.option;
  std::string line;
  if (in.peek() != expected.front() && in.peek() != std::ifstream::traits_type::eof())
    throw Error(other);
  in.clear();
  if (!next_line(in, line)) {
    // The file is empty, or its first line is torn.
    if (!expected.starts_with(line)) throw Error(other);
    return begin();
  }
  check_header(has_rows ? first_line(header_file_of(path_), form_.kind) : line);
  if (has_rows && line != expected)
    throw Error(path_ + ": has different columns from this " + std::string(form_.kind.question) +
                "; give another " + form_.option);
  std::uint64_t size = line.size();
  const auto [first, end] = points();
  for (next_ = first; next_ < end && next_line(in, line); ++next_) {
    try {
      form_.known(next_, std::string_view(line).substr(0, line.size() - 1));
    } catch (const Error&) {
      break;  // From a line damaged by a crash on, points are asked again.
    }
    size += line.size();
  }
  cut(size);
}

std::pair<std::uint64_t, std::uint64_t> AnswerFile::points() const {
  return points_of_shard(header_.points, header_.shard, header_.shards);
}

void AnswerFile::add(std::string_view line) { waiting_ += line; }

void AnswerFile::flush() {
  write_all(file_, waiting_, path_);
  waiting_.clear();
}

namespace {

constexpr std::size_t kMostNamed = 32;

/// The file of one shard.
struct ShardFile {
  std::string path;
  SweepFileHeader header;
};

/// The shards that are merged.
struct Merged {
  const AnswerKind& kind;
  bool has_rows = false;
  /// In order; the path is empty if no file was given for a shard.
  std::vector<ShardFile> shards{};
};

void check_alike(const AnswerKind& kind, const ShardFile& shard, const ShardFile& other) {
  if (other.header.identity != shard.header.identity)
    throw Error(shard.path + ": is from another " + std::string(kind.question) + " than '" +
                other.path + "'");
  if (other.header.shards == shard.header.shards) return;
  throw Error(shard.path + ": is one of " + std::to_string(shard.header.shards) + " shards, but '" +
              other.path + "' is one of " + std::to_string(other.header.shards));
}

/// Throws Error if files of shards are missing.
void check_complete(const Merged& merged) {
  const std::vector<ShardFile>& shards = merged.shards;
  std::string missing;
  std::size_t missed = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].path.empty() || ++missed > kMostNamed) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
  }
  if (missed > kMostNamed) missing += " and " + std::to_string(missed - kMostNamed) + " more";
  if (!missing.empty())
    throw Error(std::string(merged.kind.question) + " merge: of " + std::to_string(shards.size()) +
                " shards these are missing: " + missing);
}

void put_in_order(const std::vector<std::string>& files, Merged& merged) {
  std::vector<ShardFile>& shards = merged.shards;
  for (const std::string& path : files) {
    const std::string line = first_line(merged.has_rows ? header_file_of(path) : path, merged.kind);
    ShardFile shard{path, within(path, [&] { return read_header_line(line, merged.kind); })};
    if (shards.empty()) shards.resize(shard.header.shards);
    const ShardFile* other = nullptr;
    for (const ShardFile& known : shards) {
      if (!known.path.empty()) other = &known;
    }
    if (other) check_alike(merged.kind, shard, *other);
    ShardFile& place = shards[shard.header.shard - 1];
    if (!place.path.empty())
      throw Error(path + ": is shard " + std::to_string(shard.header.shard) + ", as '" +
                  place.path + "' is");
    place = std::move(shard);
  }
  check_complete(merged);
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

void copy_points(const ShardFile& shard, const Merged& merged, std::ostream& out) {
  std::ifstream in(shard.path, std::ios::binary);
  std::string line;
  auto [number, end] =
      points_of_shard(shard.header.points, shard.header.shard, shard.header.shards);
  if (!next_line(in, line)) throw Error(not_answers(merged.kind));
  if (merged.has_rows && shard.header.shard == 1) out << line;
  for (; next_line(in, line); ++number) {
    if (number >= end || number_of_line(line, merged.has_rows) != number)
      throw Error("contains point " + std::to_string(number_of_line(line, merged.has_rows)) +
                  " in the place of " + std::to_string(number));
    out << line;
  }
  if (number < end)
    throw Error("ends before point " + std::to_string(number) + " of " + std::to_string(end - 1) +
                "; run its shard again to complete it");
}

}  // namespace

void merge_answers(const std::vector<std::string>& files, const std::string& output,
                   const AnswerKind& kind, bool has_rows) {
  Merged merged{.kind = kind, .has_rows = has_rows};
  put_in_order(files, merged);
  const std::string& header = merged.shards.front().header.whole_line;
  write_new_file(output, [&](std::ostream& out) {
    if (!has_rows) out << header;
    for (const ShardFile& shard : merged.shards)
      within(shard.path, [&] { copy_points(shard, merged, out); });
    if (has_rows) write_new_file(header_file_of(output), header);
  });
}

}  // namespace foretrace
