#pragma once

// Writes a SQLite database in one transaction into a new file (base/files/new_file.h). For a pipe
// or a device, the database is built in memory first.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/new_file.h"

struct sqlite3;
struct sqlite3_stmt;

namespace foretrace {

class SqliteWriter {
 public:
  /// Throws Error if no file can be created at `path`.
  explicit SqliteWriter(const std::string& path);
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  void run(const std::string& sql);
  /// Commits the transaction and gives the file its final name. REQUIRES: all inserts are
  /// destroyed.
  void finish();

 private:
  friend class SqliteInsert;
  struct Close {
    void operator()(sqlite3* database) const;
  };
  [[noreturn]] void fail() const;
  void write_memory();

  std::string path_;
  NewFile file_;
  std::unique_ptr<sqlite3, Close> database_;
};

/// A value of a row: a number, a text or nothing.
class Cell {
 public:
  Cell(std::nullopt_t) {}
  Cell(std::int64_t number) : kind_(Kind::number), number_(number) {}
  Cell(std::optional<std::int64_t> number)
      : kind_(number ? Kind::number : Kind::none), number_(number.value_or(0)) {}
  Cell(std::string_view text) : kind_(Kind::text), text_(text) {}

 private:
  friend class SqliteInsert;
  enum class Kind : std::uint8_t { none, number, text };
  Kind kind_ = Kind::none;
  std::int64_t number_ = 0;
  std::string_view text_;  ///< REQUIRES: the text lives until the row is added.
};

/// Creates a table and inserts its rows.
class SqliteInsert {
 public:
  /// `columns` has the syntax of CREATE TABLE: "id INTEGER NOT NULL, name TEXT".
  SqliteInsert(SqliteWriter& writer, std::string_view table, std::string_view columns);

  /// Adds a row. REQUIRES: there are as many cells as the table has columns.
  void add(std::initializer_list<Cell> cells);

 private:
  struct Finish {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteWriter& writer_;
  std::unique_ptr<sqlite3_stmt, Finish> statement_;
};

}  // namespace foretrace
