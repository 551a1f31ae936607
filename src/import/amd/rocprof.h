#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretrace/trace.h"
#include "import/amd/amd_records.h"
#include "import/files/source.h"
#include "import/scan/json_stream.h"

namespace foretrace {

Trace read_rocprof(Source& bytes, std::size_t window = TextWindow::kSize);

class RocprofDocument {
 public:
  explicit RocprofDocument(Source& bytes, std::size_t window)
      : json_(bytes, window), records_(trace_) {}

  Trace read();

 private:
  /// The number of a domain and of one of its operations.
  struct Operation {
    std::size_t kind = 0;
    std::size_t number = 0;
  };
  struct Domain {
    std::string name;
    std::vector<NameId> operations;
  };
  /// The members of a record of any domain; no domain has all of them.
  struct Record {
    Operation operation;
    AmdTimes times;
    std::int64_t thread = 0;
    std::uint32_t correlation = 0, external = 0;
    std::int64_t agent = 0, source = 0, target = 0, queue = 0, stream = -1;
    std::int64_t kernel = 0, bytes = 0, address = 0;
    std::int64_t grid[3] = {0, 0, 0}, group[3] = {0, 0, 0};
    NameId message{};
  };

  template <class Visit>
  bool each_in_object(Visit&& visit);
  template <class Visit>
  bool each_in_list(Visit&& visit);
  template <class Visit>
  bool each_value(Visit&& visit);

  bool read_process();
  bool read_metadata();
  bool read_strings();
  void read_agent(const JsonValue& agent);
  void read_symbol(const JsonValue& symbol);
  Domain read_domain(const JsonValue& domain);
  void read_marker_text(const JsonValue& marker);

  void read_record(std::string_view domain, const JsonValue& value);
  void read_member(std::string_view key, const JsonValue& value, Record& record);
  void read_correlations(const JsonValue& ids, Record& record);
  void read_dispatch(const JsonValue& info, Record& record);
  void add_kernel(const Record& record);
  void add_copy(const Record& record);
  void add_call(std::string_view domain, const Record& record);
  void add_allocation(const Record& record);

  NameId text(const JsonValue& value);
  const Domain* find_domain(std::size_t kind) const;
  void resolve_names();
  void note_cut();
  void write_notes();

  Trace trace_;
  JsonStream json_;
  AmdRecords records_;
  std::int64_t process_ = 0;
  std::unordered_map<std::int64_t, NameId> symbols_;
  std::unordered_map<std::uint32_t, NameId> marker_texts_;
  std::vector<Domain> buffer_domains_, callback_domains_;
  std::vector<std::pair<std::size_t, std::int64_t>> unnamed_kernels_;
  std::vector<std::pair<std::size_t, Operation>> unnamed_calls_;
  std::int64_t kernels_without_symbol_ = 0, broken_ = 0, other_domains_ = 0;
  std::string first_other_domain_;
};

}  // namespace foretrace
