#include "import/files/sqlite_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/files/unpacked_file.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::size_t kHeader = 100;
/// A row takes at least this many bytes: one each for its place in the page, its size, its number
/// and its header.
constexpr std::int64_t kMinRow = 4;
constexpr std::int64_t kMaxText = 64 << 20;

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8U | static_cast<unsigned char>(c);
  return value;
}

struct Pages {
  std::uint64_t size = 0, count = 0;  ///< `count` is 0 if the header does not have it.
};

Pages pages_of(std::string_view header) {
  Pages pages;
  if (header.size() < kHeader) return pages;
  pages.size = big_endian(header.substr(16, 2));
  if (pages.size == 1) pages.size = 65536;
  // The count is valid only if these two numbers agree: versions before 3.7 update neither the
  // count nor the second number.
  if (header.substr(24, 4) == header.substr(92, 4)) pages.count = big_endian(header.substr(28, 4));
  return pages;
}

/// Escapes the path for SQLite: everything but letters, digits and a few signs as %xx.
std::string to_uri(const std::string& path) {
  std::string uri = "file://";
  std::error_code ignored;
  for (const char c : fs::absolute(path, ignored).string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-_.~").find(c) != std::string_view::npos;
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += "0123456789ABCDEF"[byte >> 4U];
      uri += "0123456789ABCDEF"[byte & 15U];
    }
  }
  return uri + "?mode=ro&immutable=1";
}

std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

/// The name of a table without the version that exporters append when its columns change:
/// "NVTX_EVENTS" for "NVTX_EVENTS_V2".
std::string_view without_table_version(std::string_view table) {
  const std::size_t end = table.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == table.size() || end < 2) return table;
  return table.substr(end - 1, 2) == "_V" ? table.substr(0, end - 1) : table;
}

/// SQLite does not read a database from memory if its header says that it uses a write-ahead log.
/// The log is not part of the file, so this source removes that mark.
class LoglessDatabase : public Source {
 public:
  explicit LoglessDatabase(std::unique_ptr<PeekedSource> bytes) : bytes_(std::move(bytes)) {
    header_ = bytes_->peek(kHeader);
    if (header_.size() == kHeader) header_[18] = header_[19] = 1;
  }
  std::size_t read(char* to, std::size_t room) override {
    const std::size_t got = bytes_->read(to, room);
    const std::size_t known = at_ < header_.size() ? std::min(header_.size() - at_, got) : 0;
    if (known > 0) std::memcpy(to, header_.data() + at_, known);
    at_ += got;
    return got;
  }
  std::string damage() const override { return bytes_->damage(); }

 private:
  std::unique_ptr<PeekedSource> bytes_;
  std::string header_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_sqlite(std::string_view head) { return head.substr(0, kMagic.size()) == kMagic; }

void SqliteFile::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteRows::FinalizeStatement::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

std::int64_t sqlite_size(std::string_view head) {
  const Pages pages = pages_of(head);
  return static_cast<std::int64_t>(pages.count * pages.size);  // A product of 32 and 17 bits.
}

std::unique_ptr<Source> without_log(std::unique_ptr<PeekedSource> database) {
  return std::make_unique<LoglessDatabase>(std::move(database));
}

SqliteFile::SqliteFile(const TraceFile& file) : file_(file) {
  if (!is_sqlite(file.head())) throw TraceError("must be a SQLite database");
  if (const std::string* const path = file.plain()) {
    std::error_code error;
    size_ = static_cast<std::int64_t>(fs::file_size(*path, error));
    if (error) throw TraceError("cannot be opened: " + error.message());
    check_size();
    open(to_uri(*path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  } else {
    const std::string_view bytes = file.unpacked().bytes();
    size_ = static_cast<std::int64_t>(bytes.size());
    check_size();
    open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY);
    auto* const start = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    const int taken = sqlite3_deserialize(database_.get(), "main", start, size_, size_,
                                          SQLITE_DESERIALIZE_READONLY);
    if (taken != SQLITE_OK)
      throw TraceError(std::string("cannot be opened: ") + sqlite3_errstr(taken));
  }
  restrict();
  list_tables();
}

void SqliteFile::check_size() const {
  const Pages pages = pages_of(file_.head());
  if (pages.count * pages.size <= static_cast<std::uint64_t>(size_)) return;
  throw TraceError(fmt::format(
      "the database is cut off: it must have {} pages of {} bytes, but the file has {} bytes",
      pages.count, pages.size, size_));
}

void SqliteFile::open(const std::string& name, int flags) {
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(name.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  if (opened != SQLITE_OK)
    throw TraceError(std::string("cannot be opened: ") + sqlite3_errstr(opened));
}

void SqliteFile::restrict() {
  sqlite3* const database = database_.get();
  for (const auto& [option, value] :
       {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1), std::pair(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), std::pair(SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)}) {
    sqlite3_db_config(database, option, value, nullptr);
  }
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH,
                static_cast<int>(std::min(std::max<std::int64_t>(size_, 4096), kMaxText)));
  // With memory-mapped reading, truncating the file meanwhile would kill the program.
  sqlite3_exec(database, "PRAGMA mmap_size=0; PRAGMA cell_size_check=1", nullptr, nullptr, nullptr);
}

void SqliteFile::list_tables() {
  tables_.insert("sqlite_schema");
  SqliteRows rows(*this, "sqlite_schema", {"type", "name", "rootpage"});
  std::set<std::string, std::less<>> found;
  while (rows.next()) {
    // A table without pages of its own is a virtual table, implemented by an extension.
    if (rows.text(0) == "table" && rows.integer(2) > 0) found.insert(std::string(rows.text(1)));
  }
  tables_ = std::move(found);
  for (const std::string& table : std::set(tables_)) {
    const std::string_view plain = without_table_version(table);
    if (plain.size() == table.size() || tables_.contains(plain)) continue;
    tables_.erase(table);
    tables_.emplace(plain);
    stored_[std::string(plain)] = table;
  }
}

const std::string& SqliteFile::stored_name(const std::string& table) const {
  const auto found = stored_.find(table);
  return found == stored_.end() ? table : found->second;
}

std::vector<std::string> SqliteFile::columns(std::string_view table) const {
  std::vector<std::string> names;
  if (!has(table)) return names;
  sqlite3_stmt* statement = nullptr;
  const std::string query =
      fmt::format("PRAGMA table_info({})", in_quotes(stored_name(std::string(table))));
  sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr);
  while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
    const unsigned char* const name = sqlite3_column_text(statement, 1);
    if (name != nullptr) names.emplace_back(reinterpret_cast<const char*>(name));
  }
  sqlite3_finalize(statement);
  return names;
}

SqliteRows::SqliteRows(const SqliteFile& file, std::string_view table,
                       const std::vector<std::string_view>& columns)
    : file_(file), table_(table), known_(columns.size(), false) {
  if (!file.has(table)) return;
  const bool schema = table == "sqlite_schema";
  const std::vector<std::string> present = file.columns(table);
  std::string query;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    known_[i] = schema || std::find(present.begin(), present.end(), columns[i]) != present.end();
    query += (query.empty() ? "SELECT " : ", ") + (known_[i] ? in_quotes(columns[i]) : "NULL");
  }
  // Without this, SQLite might read an index instead, whose copy of the rows may differ in a
  // damaged file.
  query += " FROM " + in_quotes(schema ? "sqlite_master" : file.stored_name(table_)) +
           (schema ? "" : " NOT INDEXED");
  sqlite3_stmt* statement = nullptr;
  const int prepared =
      sqlite3_prepare_v2(file.database_.get(), query.c_str(), -1, &statement, nullptr);
  statement_.reset(statement);
  if (prepared != SQLITE_OK) fail(sqlite3_errmsg(file.database_.get()));
}

bool SqliteRows::next() {
  if (statement_ == nullptr) return false;
  const int stepped = sqlite3_step(statement_.get());
  if (stepped == SQLITE_DONE) return false;
  ++number_;
  if (stepped != SQLITE_ROW) fail(sqlite3_errmsg(file_.database_.get()));
  if (number_ > file_.size() / kMinRow) fail("there are more rows than the file has room for");
  return true;
}

bool SqliteRows::has(int column) const {
  return sqlite3_column_type(statement_.get(), column) != SQLITE_NULL;
}

std::int64_t SqliteRows::integer(int column, std::int64_t otherwise) const {
  return has(column) ? sqlite3_column_int64(statement_.get(), column) : otherwise;
}

std::string_view SqliteRows::text(int column) const {
  const unsigned char* const text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  text_bytes_ += size;
  // Converted to text, UTF-16 takes up to twice as many bytes, and numbers up to four times as
  // many.
  if (text_bytes_ > 8 * file_.size()) fail("there is more text than the file has room for");
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
}

void SqliteRows::fail(const std::string& why) const {
  const std::string place = number_ > 0 ? ", row " + std::to_string(number_) : std::string();
  throw TraceError(fmt::format("the table {}{} cannot be read: {}", table_, place, why));
}

}  // namespace foretrace
