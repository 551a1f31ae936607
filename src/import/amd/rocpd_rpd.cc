// Reads files of rocmProfileData. They have a table of calls, a table of operations, and a third
// one that joins the two. The id of a call is the correlation id of its operations. Ranges of roctx
// are calls named "UserMarker".

#include <algorithm>
#include <optional>

#include "base/contains.h"
#include "import/amd/rocpd.h"
#include "import/common/cuda_words.h"

namespace foretrace {

namespace {

struct Launch {
  LaunchShapes::Sizes grid{}, block{};
};

struct Copy {
  std::int64_t bytes = 0, kind = -1;
  bool pinned = false;
};

/// The direction of a copy, from its hipMemcpyKind or else from the type of the operation.
CopyDirection direction_of(std::int64_t kind, std::string_view type) {
  switch (kind) {
    case 0:
      return CopyDirection::on_host;
    case 1:
      return CopyDirection::in;
    case 2:
      return CopyDirection::out;
    case 3:
      return CopyDirection::on_device;
    default:
      break;
  }
  if (contains(type, "HostToDevice")) return CopyDirection::in;
  if (contains(type, "DeviceToHost")) return CopyDirection::out;
  return contains(type, "DeviceToDevice") ? CopyDirection::on_device : CopyDirection::none;
}

class RpdReader {
 public:
  RpdReader(const SqliteFile& file, Trace& trace)
      : file_(file), trace_(trace), records_(trace), strings_(file, "rocpd_string", trace.names) {}

  void read() {
    const std::string_view texts = file_.has("rocpd_ustring") ? "rocpd_ustring" : "";
    if (!texts.empty()) arguments_.emplace(file_, texts, trace_.names);
    read_joins();
    read_launches();
    read_copies();
    read_calls();
    read_operations();
    records_.finish();
    if (barriers_ > 0) {
      trace_.notes.add(Severity::info, "operations that only wait for others, left out", {},
                       barriers_);
    }
    read_metadata();
  }

 private:
  void read_joins();
  void read_launches();
  void read_copies();
  void read_calls();
  void read_operations();
  void read_metadata();
  void add_operation(const SqliteRows& row);

  const SqliteFile& file_;
  Trace& trace_;
  AmdRecords records_;
  RocpdStrings strings_;
  std::optional<RocpdStrings> arguments_;
  std::unordered_map<std::int64_t, std::int64_t> call_of_;  ///< Id of the call, by operation.
  std::unordered_map<std::int64_t, Launch> launches_;       ///< By call, or by operation.
  std::unordered_map<std::int64_t, Copy> copies_;
  bool by_operation_ = false;  ///< Whether details belong to operations, as in the first version.
  std::int64_t barriers_ = 0;
};

void RpdReader::read_joins() {
  SqliteRows rows(file_, "rocpd_api_ops", {"api_id", "op_id"});
  while (rows.next()) call_of_[rows.integer(1)] = rows.integer(0);
}

void RpdReader::read_launches() {
  by_operation_ = file_.has("rocpd_kernelop") || file_.has("rocpd_copyop");
  const std::string_view table = by_operation_ ? "rocpd_kernelop" : "rocpd_kernelapi";
  SqliteRows rows(file_, table,
                  {by_operation_ ? "op_ptr_id" : "api_ptr_id", "gridX", "gridY",
                   by_operation_ ? "gridz" : "gridZ", "workgroupX", "workgroupY", "workgroupZ"});
  while (rows.next()) {
    launches_[rows.integer(0)] = {
        .grid = {rows.integer(1, 1), rows.integer(2, 1), rows.integer(3, 1)},
        .block = {rows.integer(4, 1), rows.integer(5, 1), rows.integer(6, 1)}};
  }
}

void RpdReader::read_copies() {
  SqliteRows rows(file_, by_operation_ ? "rocpd_copyop" : "rocpd_copyapi",
                  {by_operation_ ? "op_ptr_id" : "api_ptr_id", "size", "kind", "pinned"});
  while (rows.next()) {
    copies_[rows.integer(0)] = {.bytes = std::max<std::int64_t>(rows.integer(1), 0),
                                .kind = rows.integer(2, -1),
                                .pinned = rows.integer(3) != 0};
  }
}

void RpdReader::read_calls() {
  SqliteRows rows(file_, "rocpd_api",
                  {"id", "pid", "tid", "start", "end", "apiName_id", "args_id", "domain_id"});
  while (rows.next()) {
    HostRecord call;
    call.name = strings_[rows.integer(5)];
    const std::string_view name = trace_.names[call.name];
    call.thread = records_.thread(rows.integer(1), rows.integer(2));
    if (name == "UserMarker") {
      const NameId text = (arguments_ ? *arguments_ : strings_)[rows.integer(6)];
      call.kind = HostKind::annotation;
      if (text != NameId{}) call.name = text;
    } else {
      call.kind = name.starts_with("hsa_") ? HostKind::driver : HostKind::runtime;
      call.correlation = static_cast<std::uint32_t>(rows.integer(0));
    }
    records_.add_host(call, {rows.integer(3, -1), rows.integer(4, -1)});
  }
}

void RpdReader::read_operations() {
  SqliteRows rows(file_, "rocpd_op",
                  {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"});
  while (rows.next()) add_operation(rows);
}

void RpdReader::add_operation(const SqliteRows& row) {
  const NameId type = strings_[row.integer(6)];
  const std::string_view operation = trace_.names[type];
  const bool is_kernel = contains(operation, "Kernel");
  if (!is_kernel && (contains(operation, "Barrier") || contains(operation, "Marker"))) {
    ++barriers_;
    return;
  }
  const auto call = call_of_.find(row.integer(0));
  const std::int64_t caller = call == call_of_.end() ? 0 : call->second;
  const std::int64_t details = by_operation_ ? row.integer(0) : caller;
  DeviceRecord record;
  record.correlation = static_cast<std::uint32_t>(caller);
  record.name = strings_[row.integer(5)];
  if (record.name == NameId{}) record.name = type;
  if (!is_kernel && contains(operation, "Copy")) {
    record.kind = DeviceKind::copy;
    const auto copy = copies_.find(details);
    if (copy != copies_.end()) {
      record.bytes = copy->second.bytes;
      record.pinned_host = copy->second.pinned;
    }
    record.direction = direction_of(copy == copies_.end() ? -1 : copy->second.kind, operation);
  } else if (!is_kernel && (contains(operation, "Fill") || contains(operation, "Memset"))) {
    record.kind = DeviceKind::fill;
  } else if (const auto launch = launches_.find(details); launch != launches_.end()) {
    records_.launches.set(record, launch->second.grid, launch->second.block);
  }
  const auto device = std::clamp<std::int64_t>(row.integer(1), 0, INT16_MAX);
  record.stream = records_.stream(static_cast<std::int32_t>(device), row.integer(2));
  records_.add_device(record, {row.integer(3, -1), row.integer(4, -1)});
}

void RpdReader::read_metadata() {
  SqliteRows rows(file_, "rocpd_metadata", {"tag", "value"});
  while (rows.next() && trace_.metadata.size() < 64) {
    const std::string_view tag =
        trace_.names[intern_text(rows.text(0).substr(0, 64), trace_.names)];
    const std::string_view value =
        trace_.names[intern_text(rows.text(1).substr(0, 4096), trace_.names)];
    std::string text = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    trace_.metadata[std::string(tag)] = text + '"';
  }
}

}  // namespace

void read_rpd(const SqliteFile& file, Trace& trace) { RpdReader(file, trace).read(); }

}  // namespace foretrace
