#include "import/amd/rocpd.h"

#include "foretrace/error.h"
#include "import/files/registered.h"
#include "import/files/sniff.h"
#include "import/scan/json_scan.h"

namespace foretrace {

bool recognizes_rocpd(const Sniffed& file) { return file.database.kind == SqliteKind::rocpd; }

Trace read_rocpd(const TraceFile& input) {
  return within(input.path(), [&] {
    const SqliteFile file(input);
    Trace trace;
    trace.format = "rocpd";
    if (file.has("rocpd_op") && file.has("rocpd_api")) {
      trace.format = "rpd";
      read_rpd(file, trace);
      return trace;
    }
    const std::vector<std::string> guids = guids_of(file);
    if (guids.empty()) throw TraceError("must have a table rocpd_string, but has none");
    if (guids.size() > 1) {
      trace.notes.add(Severity::warning,
                      "recordings of several runs in one file; only the first was read",
                      guids[0].substr(guids[0].empty() ? 0 : 1), std::ssize(guids));
    }
    read_rocpd(file, guids[0], trace);
    return trace;
  });
}

std::vector<std::string> guids_of(const SqliteFile& file) {
  std::vector<std::string> guids;
  constexpr std::string_view kStrings = "rocpd_string";
  for (const std::string& table : file.tables()) {
    if (table.starts_with(kStrings)) guids.push_back(table.substr(kStrings.size()));
  }
  return guids;
}

NameId intern_text(std::string_view text, Names& names) {
  std::int64_t invalid = 0;
  return names.intern(valid_text(text.substr(0, 1U << 20U), invalid));
}

RocpdStrings::RocpdStrings(const SqliteFile& file, std::string_view table, Names& names) {
  SqliteRows rows(file, table, {"id", "string"});
  while (rows.next()) names_[rows.integer(0)] = intern_text(rows.text(1), names);
}

NameId RocpdStrings::operator[](std::int64_t id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? NameId{} : found->second;
}

}  // namespace foretrace
