// Reads the ranges that the program itself marked. Ranges of PyTorch's emit_nvtx become ops; all
// others become annotations, whose names begin with their domain unless it is the default one:
// "NCCL:ncclAllReduce".

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "import/common/nvtx_op.h"
#include "import/nsys/nsys_readers.h"
#include "trace/nsys_words.h"

namespace foretrace {

namespace {

/// The columns of the query below.
struct NvtxColumn {
  enum : int { start, end, event_type, text, text_id, thread_id, domain, category, payload };
};

/// The numbers of the table ENUM_NSYS_EVENT_TYPE.
enum EventType : std::int64_t {
  category_name = 33,
  mark = 34,
  thread_name = 39,
  push_pop_range = 59,
  start_end_range = 60,
  domain_create = 75,
  domain_destroy = 76
};

/// The name of a domain or a category.
struct NvtxName {
  std::int64_t process = 0, id = 0;
  std::string text;
};

class NvtxReader {
 public:
  explicit NvtxReader(NsysTables& tables) : tables_(tables) {}

  /// Reads the names of domains, categories and threads. Their events may come after the ranges
  /// that use them, so all names are read first.
  void read_names() {
    SqliteRows rows(
        tables_.file, "NVTX_EVENTS",
        {"start", "end", "eventType", "text", "textId", "globalTid", "domainId", "category"});
    while (rows.next()) {
      const std::int64_t type = rows.integer(NvtxColumn::event_type, -1);
      if (type != domain_create && type != category_name && type != thread_name) continue;
      if (!tables_.is_mine(rows, NvtxColumn::thread_id)) continue;
      const std::string_view raw =
          rows.has(NvtxColumn::text) ? rows.text(NvtxColumn::text)
                                     : tables_.strings.text(rows.integer(NvtxColumn::text_id, -1));
      const std::string name(tables_.trace.names[tables_.strings.intern(raw)]);
      const std::int64_t global = rows.integer(NvtxColumn::thread_id, tables_.process.global);
      if (type == domain_create) {
        domains_.push_back({global, rows.integer(NvtxColumn::domain), name});
      } else if (type == category_name) {
        categories_.push_back(
            {rows.integer(NvtxColumn::domain), rows.integer(NvtxColumn::category), name});
      } else {
        tables_.name_thread(global, name);
      }
    }
  }

  void read() {
    SqliteRows rows(tables_.file, "NVTX_EVENTS",
                    {"start", "end", "eventType", "text", "textId", "globalTid", "domainId",
                     "category", "jsonText"});
    while (rows.next()) {
      if (!tables_.is_mine(rows, NvtxColumn::thread_id)) continue;
      switch (rows.integer(NvtxColumn::event_type, push_pop_range)) {
        case push_pop_range:
        case start_end_range:
          if (rows.has(NvtxColumn::end)) {
            add(rows);
          } else {
            tables_.count(NsysOddity::open_range, "row " + std::to_string(rows.number()));
          }
          break;
        case mark:
          add(rows);
          break;
        case domain_create:
        case domain_destroy:
        case category_name:
        case thread_name:
          break;
        default:
          tables_.count(NsysOddity::unknown_event,
                        "type " + std::to_string(rows.integer(NvtxColumn::event_type)));
      }
    }
  }

 private:
  void add(const SqliteRows& row) {
    NsysTables::Times times;
    if (!tables_.take_times(row, NvtxColumn::start, NvtxColumn::end, times)) return;
    HostRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    record.kind = HostKind::annotation;
    record.nests = row.integer(NvtxColumn::event_type, push_pop_range) != start_end_range;
    record.thread = tables_.thread(row, NvtxColumn::thread_id);
    const std::string_view name = row.has(NvtxColumn::text)
                                      ? row.text(NvtxColumn::text)
                                      : tables_.strings.text(row.integer(NvtxColumn::text_id, -1));
    if (name.empty())
      tables_.count(NsysOddity::no_name, "NVTX row " + std::to_string(row.number()));
    const std::int64_t of_domain = row.integer(NvtxColumn::domain);
    if (take_category(of_domain, row.integer(NvtxColumn::category), record.kind)) {
      record.name = tables_.strings.intern(name);
    } else if (of_domain != 0) {
      const auto known = std::find_if(domains_.begin(), domains_.end(),
                                      [&](const NvtxName& entry) { return entry.id == of_domain; });
      const std::string in_front =
          known != domains_.end() ? known->text : "domain " + std::to_string(of_domain);
      record.name = tables_.strings.intern(in_front + ":" + std::string(name));
    } else if (const auto op = parse_nvtx_op(name)) {
      take_op(*op, record);
    } else {
      record.name = tables_.strings.intern(name);
    }
    if (row.has(NvtxColumn::payload)) take_payload(row.text(NvtxColumn::payload), record);
    tables_.trace.hosts.push_back(record);
  }

  void take_op(const NvtxOp& op, HostRecord& record) {
    record.kind = HostKind::op;
    record.name = tables_.strings.intern(op.name);
    if (op.sequence == -1 && op.record_function == -1 && op.sizes.empty()) return;
    record.details = static_cast<std::uint32_t>(tables_.trace.op_details.size());
    OpDetails details;
    details.shapes = tables_.strings.intern(op.sizes);
    details.sequence = op.sequence;
    details.record_function = op.record_function;
    tables_.trace.op_details.push_back(details);
  }

  /// Sets `kind` from the category of a range, where our own exporter stores the kind. Returns
  /// false for other categories; otherwise the whole text of the range is its name.
  bool take_category(std::int64_t of_domain, std::int64_t number, HostKind& kind) const {
    for (const NvtxName& entry : categories_) {
      if (entry.process != of_domain || entry.id != number) continue;
      if (entry.text == nsys_words::kOpCategory) return kind = HostKind::op, true;
      if (entry.text == nsys_words::kPythonCategory) return kind = HostKind::python, true;
      if (entry.text == nsys_words::kAnnotationCategory) return kind = HostKind::annotation, true;
    }
    return false;
  }

  /// Reads the payload that our own exporter adds to a range. A trace has no place for other
  /// payloads.
  void take_payload(std::string_view text, HostRecord& record) {
    if (!text.starts_with(nsys_words::kPayloadStart)) return;
    const nlohmann::json all = try_parse_json<nlohmann::json>(text);
    if (!all.is_object() || !all.begin().value().is_object()) return;
    const nlohmann::json& json = all.begin().value();
    OpDetails details;
    const auto name_of = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string()
                 ? tables_.strings.intern(found->get_ref<const std::string&>())
                 : NameId{};
    };
    const auto number_of = [&](const char* key, std::int64_t otherwise) {
      const auto found = json.find(key);
      return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                               : otherwise;
    };
    record.external = static_cast<std::uint32_t>(number_of("external", 0));
    details.shapes = name_of("shapes");
    details.types = name_of("types");
    details.values = name_of("values");
    details.stack = name_of("stack");
    details.sequence = number_of("sequence", -1);
    details.forward_thread = static_cast<std::uint64_t>(number_of("forward_thread", 0));
    details.python_id = number_of("python_id", -1);
    details.python_parent = number_of("python_parent", -1);
    details.record_function = number_of("record_function", -1);
    if (number_of("details", 0) == 0) return;
    record.details = static_cast<std::uint32_t>(tables_.trace.op_details.size());
    tables_.trace.op_details.push_back(details);
  }

  NsysTables& tables_;
  std::vector<NvtxName> domains_, categories_;
};

}  // namespace

void read_nsys_nvtx(NsysTables& tables) {
  NvtxReader reader(tables);
  reader.read_names();
  reader.read();
}

}  // namespace foretrace
