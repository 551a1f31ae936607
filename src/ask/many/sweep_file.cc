#include "ask/many/sweep_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

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

/// With its line break; empty at the end. A last line without one is none.
bool next_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line) || in.eof()) return false;
  line += '\n';
  return true;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in) throw Error("cannot read '" + path + "'");
  // Checked before looking for a line in what may be a large file of another kind.
  if (in.peek() != '{') throw Error(path + ": is not a file of sweep answers");
  if (!next_line(in, line)) throw Error(path + ": is not a file of sweep answers");
  return line;
}

}  // namespace

std::string header_file_of(const std::string& path) { return path + ".sweep.json"; }

SweepForm sweep_form(const std::string& name, const std::string& path) {
  constexpr std::string_view kNames[] = {"jsonl", "csv"};
  if (name == "csv" || (name.empty() && path.ends_with(".csv"))) return SweepForm::csv;
  if (name == "jsonl" || name.empty()) return SweepForm::jsonl;
  throw Error("--format: must be one of jsonl, csv, got '" + name + "'" +
              did_you_mean(name, kNames));
}

SweepFile::SweepFile(std::string path, const SweepHeader& header, SweepForm form, bool fresh)
    : path_(std::move(path)), header_(header), form_(form) {
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

SweepFile::~SweepFile() { ::close(file_); }

void SweepFile::cut(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0) cannot("cut", path_);
  if (::lseek(file_, static_cast<off_t>(size), SEEK_SET) < 0) cannot("write", path_);
}

/// Deletes only a file of answers: a mistyped path must not cost another file.
void SweepFile::forget() {
  if (std::filesystem::file_size(path_) > 0) {
    const std::string line = first_line(form_ == SweepForm::csv ? header_file_of(path_) : path_);
    within(path_, [&] { read_header_line(line); });
  }
  cut(0);
}

void SweepFile::begin() {
  cut(0);
  const std::string header = sweep_header_line(header_);
  if (form_ == SweepForm::csv) write_new_file(header_file_of(path_), header);
  write_all(file_, form_ == SweepForm::csv ? sweep_csv_heading(header_) : header, path_);
}

void SweepFile::check_header(const std::string& line) const {
  within(path_, [&] {
    const SweepFileHeader found = read_header_line(line);
    const std::string why = difference_of_sweeps(header_, line);
    if (!why.empty())
      throw Error("contains the answers of another sweep: " + why +
                  "; give another --output, or --fresh to start over");
    if (found.shard == header_.shard && found.shards == header_.shards) return;
    throw Error("contains shard " + std::to_string(found.shard) + " of " +
                std::to_string(found.shards) + ", not " + std::to_string(header_.shard) + " of " +
                std::to_string(header_.shards));
  });
}

void SweepFile::read() {
  std::ifstream in(path_, std::ios::binary);
  if (!in) cannot("read", path_);
  const std::string expected =
      form_ == SweepForm::csv ? sweep_csv_heading(header_) : sweep_header_line(header_);
  std::string line;
  if (in.peek() != expected.front() && in.peek() != std::ifstream::traits_type::eof())
    throw Error(path_ + ": is not a file of sweep answers; give another --output");
  in.clear();
  if (!next_line(in, line)) {
    // Nothing, or a first line that was torn.
    if (!expected.starts_with(line))
      throw Error(path_ + ": is not a file of sweep answers; give another --output");
    return begin();
  }
  check_header(form_ == SweepForm::csv ? first_line(header_file_of(path_)) : line);
  if (form_ == SweepForm::csv && line != expected)
    throw Error(path_ + ": has different columns from this sweep; give another --output");
  std::uint64_t size = line.size();
  auto [number, end] = points_of_shard(header_.points, header_.shard, header_.shards);
  for (; number < end && next_line(in, line); ++number) {
    try {
      SweepPoint point =
          read_point_line(header_, std::string_view(line).substr(0, line.size() - 1), form_);
      if (point.number != number) break;
      answered_.push_back(std::move(point));
    } catch (const Error&) {
      break;  // A line damaged by a crash of the machine is asked again, with all after it.
    }
    size += line.size();
  }
  cut(size);
}

void SweepFile::add(const SweepPoint& point) {
  waiting_ += sweep_point_line(header_, point, form_);
}

void SweepFile::flush() {
  write_all(file_, waiting_, path_);
  waiting_.clear();
}

SweepReport answer_into(const SweepOutput& output, const Sweep& sweep, const SweepEvents& events,
                        const std::atomic<bool>& stop) {
  const Shard& shard = output.shard;
  SweepReport report{.header = sweep.header(), .points = {}};
  report.header.shard = shard.number;
  report.header.shards = shard.of;
  if (report.header.points < shard.of)
    throw Error("--shard: must be one of at most " + std::to_string(report.header.points) +
                ", because there are no more questions");
  std::optional<SweepFile> file;
  if (!output.path.empty()) {
    file.emplace(path_of_shard(output.path, shard), report.header, output.form, output.fresh);
    report.points = std::move(file->answered());
  }
  const auto [first, end] = points_of_shard(report.header.points, shard.number, shard.of);
  const std::uint64_t known = report.points.size();
  events.begin(known, end - first - known);
  const auto take = [&](SweepPoint&& point) {
    if (file) file->add(point);
    events.take(point);
    report.points.push_back(std::move(point));
  };
  const auto flush = [&] {
    if (file) file->flush();
    events.flush();
  };
  sweep.run(first + known, end, {.take = take, .flush = flush}, stop);
  return report;
}

namespace {

constexpr std::size_t kMostNamed = 32;

/// A file of a shard.
struct ShardFile {
  std::string path;
  SweepFileHeader header;
};

void check_alike(const ShardFile& shard, const ShardFile& other) {
  if (other.header.identity != shard.header.identity)
    throw Error(shard.path + ": is from another sweep than '" + other.path + "'");
  if (other.header.shards == shard.header.shards) return;
  throw Error(shard.path + ": is one of " + std::to_string(shard.header.shards) + " shards, but '" +
              other.path + "' is one of " + std::to_string(other.header.shards));
}

/// A shard that no file was of has no path.
void check_complete(const std::vector<ShardFile>& shards) {
  std::string missing;
  std::size_t missed = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].path.empty() || ++missed > kMostNamed) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
  }
  if (missed > kMostNamed) missing += " and " + std::to_string(missed - kMostNamed) + " more";
  if (!missing.empty())
    throw Error("sweep merge: of " + std::to_string(shards.size()) +
                " shards these are missing: " + missing);
}

std::vector<ShardFile> in_order(const std::vector<std::string>& files, SweepForm form) {
  std::vector<ShardFile> shards;
  for (const std::string& path : files) {
    const std::string line = first_line(form == SweepForm::csv ? header_file_of(path) : path);
    ShardFile shard{path, within(path, [&] { return read_header_line(line); })};
    if (shards.empty()) shards.resize(shard.header.shards);
    const ShardFile* other = nullptr;
    for (const ShardFile& known : shards) {
      if (!known.path.empty()) other = &known;
    }
    if (other) check_alike(shard, *other);
    ShardFile& place = shards[shard.header.shard - 1];
    if (!place.path.empty())
      throw Error(path + ": is shard " + std::to_string(shard.header.shard) + ", as '" +
                  place.path + "' is");
    place = std::move(shard);
  }
  check_complete(shards);
  return shards;
}

/// The number in the line of a point.
std::uint64_t number_of_line(std::string_view line, SweepForm form) {
  constexpr std::string_view kBegin = "{\"point\":";
  if (form == SweepForm::jsonl) {
    if (!line.starts_with(kBegin)) throw Error("contains a line that is not an answer");
    line.remove_prefix(kBegin.size());
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits > 18 || digits == line.npos || line[digits] != ',')
    throw Error("contains a line that is not an answer");
  return std::stoull(std::string(line.substr(0, digits)));
}

void copy_points(const ShardFile& shard, SweepForm form, std::ostream& out) {
  std::ifstream in(shard.path, std::ios::binary);
  std::string line;
  auto [number, end] =
      points_of_shard(shard.header.points, shard.header.shard, shard.header.shards);
  if (!next_line(in, line)) throw Error("is not a file of sweep answers");
  if (form == SweepForm::csv && shard.header.shard == 1) out << line;
  for (; next_line(in, line); ++number) {
    if (number >= end || number_of_line(line, form) != number)
      throw Error("contains point " + std::to_string(number_of_line(line, form)) +
                  " in the place of " + std::to_string(number));
    out << line;
  }
  if (number < end)
    throw Error("ends before point " + std::to_string(number) + " of " + std::to_string(end - 1) +
                "; run its shard again to complete it");
}

}  // namespace

void merge_shards(const std::vector<std::string>& files, const std::string& output,
                  SweepForm form) {
  const std::vector<ShardFile> shards = in_order(files, form);
  const std::string& header = shards.front().header.whole_line;
  write_new_file(output, [&](std::ostream& out) {
    if (form == SweepForm::jsonl) out << header;
    for (const ShardFile& shard : shards)
      within(shard.path, [&] { copy_points(shard, form, out); });
    if (form == SweepForm::csv) write_new_file(header_file_of(output), header);
  });
}

}  // namespace foretrace
