#include "export/nsys/sqlite_writer.h"

#include <sqlite3.h>

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {

void SqliteWriter::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteInsert::Finish::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteWriter::SqliteWriter(const std::string& path) : path_(path), file_(path) {
  const std::string place = file_.is_stream() ? ":memory:" : file_.temporary_path();
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(place.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (opened != SQLITE_OK) fail();
  // No journal or locks are needed: nobody else sees the file before it has its final name, and an
  // incomplete file is discarded.
  run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; BEGIN");
}

void SqliteWriter::fail() const {
  throw Error(fmt::format("cannot write '{}': {}", path_, sqlite3_errmsg(database_.get())));
}

void SqliteWriter::run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void SqliteWriter::write_memory() {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(
      sqlite3_serialize(database_.get(), "main", &size, 0), sqlite3_free);
  if (!bytes) fail();
  file_.write({reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)});
}

void SqliteWriter::finish() {
  run("COMMIT");
  if (file_.is_stream()) write_memory();
  if (sqlite3_close(database_.get()) != SQLITE_OK) fail();
  static_cast<void>(database_.release());
  file_.commit();
}

SqliteInsert::SqliteInsert(SqliteWriter& writer, std::string_view table, std::string_view columns)
    : writer_(writer) {
  writer.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  std::string query = fmt::format("INSERT INTO {} VALUES (?", table);
  for (auto left = std::count(columns.begin(), columns.end(), ','); left > 0; --left) query += ",?";
  sqlite3_stmt* statement = nullptr;
  const int prepared =
      sqlite3_prepare_v2(writer.database_.get(), (query + ")").c_str(), -1, &statement, nullptr);
  statement_.reset(statement);
  if (prepared != SQLITE_OK) writer.fail();
}

void SqliteInsert::add(std::initializer_list<Cell> cells) {
  CHECK(static_cast<int>(cells.size()) == sqlite3_bind_parameter_count(statement_.get()));
  int column = 0;
  for (const Cell& cell : cells) {
    ++column;
    switch (cell.kind_) {
      case Cell::Kind::none:
        sqlite3_bind_null(statement_.get(), column);
        break;
      case Cell::Kind::number:
        sqlite3_bind_int64(statement_.get(), column, cell.number_);
        break;
      case Cell::Kind::text:
        sqlite3_bind_text64(statement_.get(), column, cell.text_.data() ? cell.text_.data() : "",
                            cell.text_.size(), SQLITE_STATIC, SQLITE_UTF8);
        break;
    }
  }
  const int stepped = sqlite3_step(statement_.get());
  sqlite3_reset(statement_.get());
  if (stepped != SQLITE_DONE) writer_.fail();
}

}  // namespace foretrace
