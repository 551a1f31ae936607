// Tar and zip, read once from front to back, behind the functions of libarchive. Tar is as in
// POSIX.1-2001, "pax", with GNU's long names; zip as in PKWARE's APPNOTE.TXT, 4.3.7 to 4.3.9,
// stored or deflated. Members of other kinds count as no files.

#include <archive.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

struct archive_entry {
  std::string path;
  bool is_file = false, is_encrypted = false;
};

namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::uint64_t kLongestName = 1 << 20;
constexpr std::uint64_t kLongestMember = std::uint64_t{1} << 60;
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
constexpr std::uint64_t kLocalFile = 0x04034b50, kCentralFile = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kDescriptor = 0x08074b50;
constexpr std::uint64_t kIn64 = 0xffffffff;  ///< Zip: the size is in the 64-bit extension.

/// Little-endian, at a place in zip's headers.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = value << 8U | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

/// Octal digits, or big-endian behind a first byte of 0x80, as GNU writes large numbers.
std::uint64_t tar_number(std::string_view field) {
  std::uint64_t value = 0;
  const bool is_binary = (static_cast<unsigned char>(field[0]) & 0x80U) != 0;
  for (const char c : field.substr(is_binary ? 1 : 0)) {
    if (value > kLongestMember) break;
    if (is_binary)
      value = value << 8U | static_cast<unsigned char>(c);
    else if (c >= '0' && c <= '7')
      value = value << 3U | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string text_of(std::string_view field) {
  return std::string(field.substr(0, std::min(field.find('\0'), field.size())));
}

bool has_tar_sum(std::string_view header) {
  std::uint64_t sum = 8 * ' ';
  for (std::size_t i = 0; i < kTarBlock; ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
  return sum == tar_number(header.substr(148, 8));
}

}  // namespace

struct archive {
  ~archive() { end_inflating(); }

  int open(archive_read_callback* callback, void* asker) {
    give_ = callback, who_ = asker;
    if (!refill()) return ARCHIVE_FATAL;
    is_zip_ = *at_ == 'P';
    return ARCHIVE_OK;
  }
  int next() { return !end_member() ? ARCHIVE_FATAL : is_zip_ ? next_in_zip() : next_in_tar(); }
  std::ptrdiff_t read(char* to, std::size_t room);

  archive_entry entry;

 private:
  bool refill() {
    const void* chunk = nullptr;
    const std::ptrdiff_t got = give_(this, who_, &chunk);
    at_ = static_cast<const char*>(chunk), left_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return left_ > 0;
  }
  /// Reads up to `size` bytes, fewer only at the end; `to` may be nullptr.
  std::uint64_t take(char* to, std::uint64_t size) {
    std::uint64_t done = 0;
    while (done < size && (left_ > 0 || refill())) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(size - done, left_));
      if (to != nullptr) std::memcpy(to + done, at_, some);
      at_ += some, left_ -= some, done += some;
    }
    return done;
  }
  bool take_text(std::uint64_t size, std::string& text) {
    if (size > kLongestName) return false;
    text.resize(static_cast<std::size_t>(size));
    return take(text.data(), size) == size;
  }

  int next_in_tar();
  bool take_extension(char type, std::uint64_t size);
  void take_pax(std::string_view records);
  int next_in_zip();
  bool take_zip_header();
  std::ptrdiff_t inflate_some(char* to, std::size_t room);
  bool end_member();
  bool take_descriptor();
  void end_inflating() {
    if (is_inflating_) inflateEnd(&inflater_);
    is_inflating_ = false;
  }

  archive_read_callback* give_ = nullptr;
  void* who_ = nullptr;
  const char* at_ = nullptr;
  std::size_t left_ = 0;
  bool is_zip_ = false;
  std::uint64_t rest_ = 0, padding_ = 0;  ///< Bytes of the member that were not read yet.
  std::string long_path_;
  std::uint64_t long_size_ = kUnknown;
  z_stream inflater_{};
  bool is_inflating_ = false, is_checked_ = false, has_descriptor_ = false, is_64_ = false;
  std::uint64_t sum_ = 0, wanted_sum_ = 0;
};

void archive::take_pax(std::string_view records) {
  while (!records.empty()) {
    const std::size_t space = records.find(' '), equals = records.find('=');
    const auto length = static_cast<std::size_t>(
        std::strtoull(std::string(records.substr(0, space)).c_str(), nullptr, 10));
    if (space >= equals || equals == std::string_view::npos || length <= equals + 1 ||
        length > records.size())
      return;
    const std::string_view key = records.substr(space + 1, equals - space - 1);
    const std::string value(records.substr(equals + 1, length - equals - 2));
    if (key == "path") long_path_ = value;
    if (key == "size") long_size_ = std::strtoull(value.c_str(), nullptr, 10);
    records.remove_prefix(length);
  }
}

/// Reads what a header says about the next one. Returns false at a damaged one.
bool archive::take_extension(char type, std::uint64_t size) {
  std::string text;
  if (!take_text(size, text)) return false;
  const std::uint64_t padding = (kTarBlock - size % kTarBlock) % kTarBlock;
  if (type == 'L') long_path_ = text_of(text);
  if (type == 'x') take_pax(text);
  return take(nullptr, padding) == padding;
}

int archive::next_in_tar() {
  long_path_.clear(), long_size_ = kUnknown;
  std::string header(kTarBlock, '\0');
  while (const std::uint64_t got = take(header.data(), kTarBlock)) {
    if (got < kTarBlock) return ARCHIVE_FATAL;
    if (header.find_first_not_of('\0') == std::string::npos) return ARCHIVE_EOF;
    if (!has_tar_sum(header)) return ARCHIVE_FATAL;
    const std::string_view fields = header;
    const char type = fields[156];
    const std::uint64_t size = tar_number(fields.substr(124, 12));
    if (std::string_view("LKxg").find(type) != std::string_view::npos) {
      if (!take_extension(type, size)) return ARCHIVE_FATAL;
      continue;
    }
    const bool has_prefix = fields.substr(257, 6) == std::string_view("ustar\0", 6);
    const std::string prefix = has_prefix ? text_of(fields.substr(345, 155)) : "";
    entry.path = !long_path_.empty()
                     ? long_path_
                     : prefix + (prefix.empty() ? "" : "/") + text_of(fields.substr(0, 100));
    entry.is_file = type == '0' || type == '\0';
    const bool is_link_or_folder = type == '1' || type == '2' || type == '5';
    rest_ = is_link_or_folder ? 0 : long_size_ != kUnknown ? long_size_ : size;
    if (rest_ > kLongestMember) return ARCHIVE_FATAL;
    padding_ = (kTarBlock - rest_ % kTarBlock) % kTarBlock;
    return ARCHIVE_OK;
  }
  return ARCHIVE_EOF;
}

/// Reads the header of a member behind its signature.
bool archive::take_zip_header() {
  std::string fixed, extra;
  if (!take_text(26, fixed)) return false;
  const std::uint64_t flags = number(fixed, 2, 2), method = number(fixed, 4, 2);
  wanted_sum_ = number(fixed, 10, 4), rest_ = number(fixed, 14, 4);
  if (!take_text(number(fixed, 22, 2), entry.path) || !take_text(number(fixed, 24, 2), extra))
    return false;
  is_64_ = rest_ == kIn64 || number(fixed, 18, 4) == kIn64;
  for (std::size_t at = 0; is_64_ && at + 4 <= extra.size(); at += 4 + number(extra, at + 2, 2)) {
    if (number(extra, at, 2) == 1 && at + 20 <= extra.size()) rest_ = number(extra, at + 12, 8);
  }
  entry.is_encrypted = (flags & 1U) != 0;
  entry.is_file = !entry.path.ends_with('/');
  has_descriptor_ = (flags & 8U) != 0;
  const bool is_deflated = method == 8;
  if ((method != 0 && !is_deflated) || (has_descriptor_ && !is_deflated)) return false;
  if (has_descriptor_) rest_ = kUnknown;
  sum_ = crc32(0, nullptr, 0), is_checked_ = !has_descriptor_ && !entry.is_encrypted;
  inflater_ = {};
  is_inflating_ = is_deflated && inflateInit2(&inflater_, -MAX_WBITS) == Z_OK;
  return is_inflating_ == is_deflated;
}

int archive::next_in_zip() {
  std::string signature;
  if (!take_text(4, signature)) return ARCHIVE_FATAL;
  const std::uint64_t found = number(signature, 0, 4);
  if (found == kCentralFile || found == kEnd || found == kEnd64) return ARCHIVE_EOF;
  return found == kLocalFile && take_zip_header() ? ARCHIVE_OK : ARCHIVE_FATAL;
}

/// Returns 0 at the end of the member, below 0 for damage.
std::ptrdiff_t archive::inflate_some(char* to, std::size_t room) {
  inflater_.next_out = reinterpret_cast<Bytef*>(to);
  inflater_.avail_out = static_cast<uInt>(std::min<std::size_t>(room, 1U << 30U));
  const uInt wanted = inflater_.avail_out;
  while (inflater_.avail_out == wanted) {
    if (rest_ == 0 || (left_ == 0 && !refill())) return ARCHIVE_FATAL;
    const auto some = static_cast<uInt>(std::min<std::uint64_t>(left_, rest_));
    inflater_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(at_)), inflater_.avail_in = some;
    const int code = inflate(&inflater_, Z_NO_FLUSH);
    const uInt used = some - inflater_.avail_in;
    at_ += used, left_ -= used;
    if (rest_ != kUnknown) rest_ -= used;
    if (code == Z_STREAM_END) {
      end_inflating();
      if (rest_ == kUnknown) rest_ = 0;
      break;
    }
    if (code != Z_OK) return ARCHIVE_FATAL;
  }
  return static_cast<std::ptrdiff_t>(wanted - inflater_.avail_out);
}

std::ptrdiff_t archive::read(char* to, std::size_t room) {
  std::ptrdiff_t got = 0;
  if (is_inflating_) {
    got = inflate_some(to, room);
  } else if (rest_ > 0) {
    const std::uint64_t some = std::min<std::uint64_t>(room, rest_);
    if (take(to, some) < some) return ARCHIVE_FATAL;
    rest_ -= some, got = static_cast<std::ptrdiff_t>(some);
  }
  if (!is_zip_ || got < 0) return got;
  sum_ = crc32(sum_, reinterpret_cast<const Bytef*>(to), static_cast<uInt>(got));
  const bool is_wrong = is_checked_ && !is_inflating_ && rest_ == 0 && sum_ != wanted_sum_;
  return is_wrong ? ARCHIVE_FATAL : got;
}

/// Goes to the end of the current member. Returns false if the archive ends in it.
bool archive::end_member() {
  std::array<char, 4096> waste;
  while (is_inflating_) {
    if (inflate_some(waste.data(), waste.size()) < 0) return false;
  }
  const std::uint64_t left = rest_ + padding_;
  rest_ = padding_ = 0;
  return take(nullptr, left) == left && take_descriptor();
}

/// Passes over the sums and sizes behind a member whose header lacks them.
bool archive::take_descriptor() {
  if (!has_descriptor_) return true;
  has_descriptor_ = false;
  std::string first, others;
  const std::uint64_t sizes = is_64_ ? 16 : 8;
  if (!take_text(4, first)) return false;
  return take_text(number(first, 0, 4) == kDescriptor ? 4 + sizes : sizes, others);
}

archive* archive_read_new() { return new archive; }
int archive_read_free(archive* reader) {
  delete reader;
  return ARCHIVE_OK;
}
int archive_read_open(archive* reader, void* who, std::nullptr_t, archive_read_callback* give,
                      std::nullptr_t) {
  return reader->open(give, who);
}
int archive_read_next_header(archive* reader, archive_entry** entry) {
  *entry = &reader->entry;
  return reader->next();
}
std::ptrdiff_t archive_read_data(archive* reader, void* to, std::size_t room) {
  return reader->read(static_cast<char*>(to), room);
}
const char* archive_entry_pathname_utf8(archive_entry* entry) { return entry->path.c_str(); }
int archive_entry_filetype(archive_entry* entry) { return entry->is_file ? AE_IFREG : 0; }
int archive_entry_is_encrypted(archive_entry* entry) { return entry->is_encrypted ? 1 : 0; }
