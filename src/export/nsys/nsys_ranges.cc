// Writes ops, annotations and Python frames as NVTX ranges. Scripts see their names; the JSON
// payload of a range has the other facts about an op.

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "export/nsys/nsys_report.h"
#include "trace/nsys_words.h"

namespace foretrace {

namespace {

/// Numbers of the table ENUM_NSYS_EVENT_TYPE.
constexpr std::int64_t kCategoryName = 33;
constexpr std::int64_t kMark = 34;
constexpr std::int64_t kPushPopRange = 59;
constexpr std::int64_t kStartEndRange = 60;

enum Category : std::int64_t { op = 1, python = 2, annotation = 3 };

bool is_range(const HostRecord& record) {
  return record.kind == HostKind::op || record.kind == HostKind::annotation ||
         record.kind == HostKind::python;
}

std::int64_t category_of(const HostRecord& record) {
  if (record.kind == HostKind::op) return op;
  return record.kind == HostKind::python ? python : annotation;
}

}  // namespace

std::string NsysExport::payload(const HostRecord& record) const {
  if (record.details == kNone && record.external == 0) return {};
  nlohmann::json json = nlohmann::json::object();
  if (record.external != 0) json["external"] = record.external;
  if (record.details != kNone) {
    const OpDetails& details = trace_.op_details[record.details];
    json["details"] = 1;
    const auto add_text = [&](const char* key, NameId name) {
      if (name != NameId{}) json[key] = trace_.names[name];
    };
    const auto add_number = [&](const char* key, std::int64_t number, std::int64_t none) {
      if (number != none) json[key] = number;
    };
    add_text("shapes", details.shapes);
    add_text("types", details.types);
    add_text("values", details.values);
    add_text("stack", details.stack);
    add_number("sequence", details.sequence, -1);
    add_number("forward_thread", static_cast<std::int64_t>(details.forward_thread), 0);
    add_number("python_id", details.python_id, -1);
    add_number("python_parent", details.python_parent, -1);
    add_number("record_function", details.record_function, -1);
  }
  return std::string(nsys_words::kPayloadStart) + json_line(json) + "}";
}

void NsysExport::write_ranges() {
  SqliteInsert rows(writer_, "NVTX_EVENTS",
                    "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
                    "rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, "
                    "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, "
                    "uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, "
                    "uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
                    "jsonTextId INTEGER, jsonText TEXT, binaryData TEXT");
  const auto add = [&](std::int64_t start, Cell end, std::int64_t type, std::int64_t category,
                       std::string_view text, std::int64_t thread, const std::string& json) {
    const auto none = std::nullopt;
    rows.add({start,
              end,
              type,
              none,
              category,
              none,
              text,
              thread,
              none,
              none,
              std::int64_t{0},
              none,
              none,
              none,
              none,
              none,
              none,
              none,
              json.empty() ? Cell(none) : Cell(std::string_view(json)),
              none});
  };
  const std::int64_t process = threads_.global_pid();
  add(0, std::nullopt, kCategoryName, op, nsys_words::kOpCategory, process, {});
  add(0, std::nullopt, kCategoryName, python, nsys_words::kPythonCategory, process, {});
  add(0, std::nullopt, kCategoryName, annotation, nsys_words::kAnnotationCategory, process, {});
  for (const HostRecord& record : trace_.hosts) {
    if (!is_range(record)) continue;
    const bool mark = record.kind == HostKind::annotation && record.duration_ns == 0;
    add(record.start_ns, mark ? Cell(std::nullopt) : Cell(record.start_ns + record.duration_ns),
        mark           ? kMark
        : record.nests ? kPushPopRange
                       : kStartEndRange,
        category_of(record), trace_.names[record.name], threads_.global_tid(record.thread),
        payload(record));
  }
}

}  // namespace foretrace
