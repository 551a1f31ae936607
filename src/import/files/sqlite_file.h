#pragma once

// A SQLite database from an untrusted source, opened so that nothing in it can do harm: read only,
// without locks or a journal, without views, triggers, virtual tables and extensions. Tables are
// read from end to end; missing tables and columns read as NULL, because exporters of traces leave
// out what was not recorded and rename things in every version.
//
// A damaged or hostile file may claim more rows or longer texts than it has bytes. Rows are
// therefore counted against the size of the file.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/files/trace_file.h"

struct sqlite3;
struct sqlite3_stmt;

namespace foretrace {

/// Whether these are the first bytes of a SQLite database.
bool is_sqlite(std::string_view head);
/// The size in its header; 0 if there is none.
std::int64_t sqlite_size(std::string_view head);
/// Changes the header of a database so that SQLite can read it from memory, without its write-ahead
/// log.
std::unique_ptr<Source> without_log(std::unique_ptr<PeekedSource> database);

class SqliteFile {
 public:
  /// Unpacks a compressed or archived database into a file without a name. Throws TraceError if the
  /// database cannot be read; the message contains the path only if the file cannot be opened.
  explicit SqliteFile(const TraceFile& file);

  /// Names of the tables, without views and virtual tables. A table whose name ends with a version
  /// ("NVTX_EVENTS_V2") has its name without it, unless the file has both.
  const std::set<std::string, std::less<>>& tables() const { return tables_; }
  bool has(std::string_view table) const { return tables_.find(table) != tables_.end(); }
  /// Names of the columns, in the order of the table; empty if there is no such table.
  std::vector<std::string> columns(std::string_view table) const;
  std::int64_t size() const { return size_; }

 private:
  friend class SqliteRows;
  struct Close {
    void operator()(sqlite3* database) const;
  };

  void check_size() const;
  void open(const std::string& name, int flags);
  void restrict();
  void list_tables();
  /// The name that a table of tables() has in the file.
  const std::string& stored_name(const std::string& table) const;

  TraceFile file_;  ///< Keeps the unpacked file alive.
  std::unique_ptr<sqlite3, Close> database_;
  std::set<std::string, std::less<>> tables_;
  std::map<std::string, std::string> stored_;  ///< Names in the file, where they differ.
  std::int64_t size_ = 0;                      ///< Size of the file in bytes.
};

/// Reads all rows of a table in their stored order. There are none if the table does not exist.
class SqliteRows {
 public:
  /// Columns that the table lacks read as NULL.
  SqliteRows(const SqliteFile& file, std::string_view table,
             const std::vector<std::string_view>& columns);

  /// Goes to the next row. Returns false at the end. Throws TraceError, which names the table and
  /// the row, if the file is damaged.
  bool next();

  /// Values of the current row. `column` is an index into the list given to the constructor.
  bool has(int column) const;
  std::int64_t integer(int column, std::int64_t otherwise = 0) const;
  /// Valid until next().
  std::string_view text(int column) const;
  /// Whether the table has this column of the list.
  bool known(int column) const { return known_[static_cast<std::size_t>(column)]; }
  std::int64_t number() const { return number_; }  ///< Number of the current row, from 1.

 private:
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const;
  };
  [[noreturn]] void fail(const std::string& why) const;

  const SqliteFile& file_;
  std::string table_;
  std::vector<bool> known_;
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement_;
  std::int64_t number_ = 0;
  mutable std::int64_t text_bytes_ = 0;
};

}  // namespace foretrace
