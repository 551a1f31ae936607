#include "export/sqlite_writer.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "foretrace/error.h"
#include "foretrace/new_file.h"

namespace foretrace {

void SqliteWriter::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteInsert::Finish::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteWriter::SqliteWriter(const std::string& path) : path_(path), written_(path + ".XXXXXX") {
  const int descriptor = ::mkstemp(written_.data());
  if (descriptor < 0) throw Error("cannot write '" + path + "': " + std::strerror(errno));
  ::close(descriptor);
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(written_.c_str(), &database, flags, nullptr);
  database_.reset(database);
  try {
    if (opened != SQLITE_OK) fail();
    // Until it has its name nobody else sees the file, and a half-written one is thrown away.
    run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; BEGIN");
  } catch (const Error&) {
    ::unlink(written_.c_str());
    throw;
  }
}

SqliteWriter::~SqliteWriter() {
  database_.reset();
  if (!finished_) ::unlink(written_.c_str());
}

void SqliteWriter::fail() const {
  throw Error("cannot write '" + path_ + "': " + sqlite3_errmsg(database_.get()));
}

void SqliteWriter::run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void SqliteWriter::finish() {
  run("COMMIT");
  if (sqlite3_close(database_.get()) != SQLITE_OK) fail();
  static_cast<void>(database_.release());
  give_usual_rights(written_);
  if (std::rename(written_.c_str(), path_.c_str()) != 0)
    throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  finished_ = true;
}

SqliteInsert::SqliteInsert(SqliteWriter& writer, std::string_view table, std::string_view columns)
    : writer_(writer) {
  writer.run("CREATE TABLE " + std::string(table) + " (" + std::string(columns) + ")");
  std::string query = "INSERT INTO " + std::string(table) + " VALUES (?";
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
