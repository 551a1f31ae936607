#include "collect/nvtx/nvtx.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "collect/cupti/recorder.h"
#include "collect/nvtx/nvtx_abi.h"
#include "collect/runtime/keep_errno.h"

namespace foretrace::collect {
namespace {

// Converts NVTX payloads to JSON text, so that a trace shows how many bytes a collective moved.

/// A JSON text of limited size. Members that do not fit are left out.
class PayloadText {
 public:
  /// Converts the payload of an event. The text is empty if there is none.
  explicit PayloadText(const nvtx::EventAttributes& event);
  PayloadText(const nvtx::PayloadData* data, std::size_t count);

  std::string_view text() const { return {bytes_, used_}; }

 private:
  void add_all(const nvtx::PayloadData* data, std::size_t count);
  void add_fields(const nvtx::PayloadData& data);
  /// Appends one member, or nothing if it does not fit. `kind` is 'i', 'u' or 'f'.
  void add(const char* key, char kind, const void* value, std::size_t bytes);
  void close();

  static constexpr std::size_t kRoom = 1024;
  char bytes_[kRoom];
  std::size_t used_ = 0;
};

/// A copy of a registered schema; the program may free its own.
struct Schema {
  std::uint64_t id;
  std::size_t count;
  nvtx::SchemaEntry* entries;
  std::size_t value_size = 0;  ///< Only set for an enumeration, which has no entries.
};

constexpr std::size_t kMostSchemas = 256;

constexpr std::size_t kMostEntries = 256;

std::mutex schemas_mutex;

Schema schemas[kMostSchemas];

std::size_t schema_count = 0;

std::uint64_t next_schema = nvtx::kFirstDynamicSchema;

const Schema* find_schema(std::uint64_t id) {
  const std::lock_guard lock(schemas_mutex);
  for (std::size_t i = schema_count; i > 0; --i) {
    if (schemas[i - 1].id == id) return &schemas[i - 1];
  }
  return nullptr;
}

/// Size and kind of each NVTX type in "nvToolsExtPayload.h", on LP64.
struct TypeTraits {
  std::uint64_t type;
  std::size_t bytes;
  char kind;  ///< 'i' signed, 'u' unsigned, 'f' floating
};

constexpr TypeTraits kTypes[] = {
    {1, 1, 'i'},  {2, 1, 'u'},  {3, 2, 'i'},  {4, 2, 'u'},  {5, 4, 'i'},  {6, 4, 'u'},
    {7, 8, 'i'},  {8, 8, 'u'},  {9, 8, 'i'},  {10, 8, 'u'}, {11, 1, 'i'}, {12, 1, 'u'},
    {13, 2, 'i'}, {14, 2, 'u'}, {15, 4, 'i'}, {16, 4, 'u'}, {17, 8, 'i'}, {18, 8, 'u'},
    {19, 4, 'f'}, {20, 8, 'f'}, {22, 8, 'u'}, {23, 8, 'u'}, {32, 1, 'u'}, {43, 4, 'f'},
    {44, 8, 'f'}, {71, 4, 'u'}, {72, 8, 'u'}, {73, 4, 'u'}, {74, 8, 'u'},
};

/// Describes an NVTX type or an enumeration of the program. Any other type has 0 bytes.
TypeTraits traits_of(std::uint64_t type) {
  for (const TypeTraits& known : kTypes) {
    if (known.type == type) return known;
  }
  const Schema* schema = find_schema(type);
  return {type, schema == nullptr ? 0 : schema->value_size, 'u'};
}

/// Copies a name, leaving out characters that JSON would have to escape.
void copy_key(const char* from, char* to, std::size_t room) {
  std::size_t used = 0;
  for (; from != nullptr && *from != '\0' && used + 1 < room; ++from) {
    const auto c = static_cast<unsigned char>(*from);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') to[used++] = *from;
  }
  to[used] = '\0';
}

std::uint64_t load(const void* bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  return value;
}

std::int64_t load_signed(const void* bytes, std::size_t size) {
  const std::uint64_t value = load(bytes, size);
  const unsigned shift = 64 - 8 * static_cast<unsigned>(size);
  return static_cast<std::int64_t>(value << shift) >> shift;
}

/// Remembers the fields of a payload. Returns the number of the schema.
std::uint64_t register_schema(const nvtx::SchemaAttributes* attributes) {
  if (attributes == nullptr || attributes->entries == nullptr) return 0;
  const std::size_t count = std::min(attributes->entry_count, kMostEntries);
  auto* entries = static_cast<nvtx::SchemaEntry*>(std::calloc(count, sizeof(nvtx::SchemaEntry)));
  if (entries == nullptr) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    entries[i] = attributes->entries[i];
    if (entries[i].name != nullptr) entries[i].name = strdup(entries[i].name);
  }
  const std::lock_guard lock(schemas_mutex);
  const bool has_id = (attributes->field_mask & nvtx::kSchemaHasId) != 0;
  const std::uint64_t id = has_id ? attributes->schema : next_schema++;
  if (schema_count < kMostSchemas) schemas[schema_count++] = {id, count, entries};
  return id;
}

/// Remembers an enumeration, whose values are written as numbers. Returns the number of its schema.
std::uint64_t register_enum(const nvtx::EnumAttributes* attributes) {
  if (attributes == nullptr) return 0;
  const std::lock_guard lock(schemas_mutex);
  const bool has_id = (attributes->field_mask & nvtx::kEnumHasId) != 0;
  const std::uint64_t id = has_id ? attributes->schema : next_schema++;
  const std::size_t size = attributes->value_size;
  if (schema_count < kMostSchemas && (size == 1 || size == 2 || size == 4 || size == 8))
    schemas[schema_count++] = {id, 0, nullptr, size};
  return id;
}

PayloadText::PayloadText(const nvtx::EventAttributes& event) {
  switch (event.payload_type) {
    case nvtx::kUnsigned64:
      add("payload", 'u', &event.payload, 8);
      break;
    case nvtx::kSigned64:
      add("payload", 'i', &event.payload, 8);
      break;
    case nvtx::kDouble:
      add("payload", 'f', &event.payload, 8);
      break;
    case nvtx::kUnsigned32:
      add("payload", 'u', &event.payload, 4);
      break;
    case nvtx::kSigned32:
      add("payload", 'i', &event.payload, 4);
      break;
    case nvtx::kFloat:
      add("payload", 'f', &event.payload, 4);
      break;
    case nvtx::kPayloadExtension:
      add_all(static_cast<const nvtx::PayloadData*>(event.payload.extension),
              static_cast<std::size_t>(std::max(event.payload_count, 1)));
      break;
    default:
      break;
  }
  close();
}

PayloadText::PayloadText(const nvtx::PayloadData* data, std::size_t count) {
  add_all(data, count);
  close();
}

void PayloadText::add_all(const nvtx::PayloadData* data, std::size_t count) {
  constexpr std::size_t kMostPayloads = 16;
  for (std::size_t i = 0; data != nullptr && i < std::min(count, kMostPayloads); ++i)
    add_fields(data[i]);
}

void PayloadText::add_fields(const nvtx::PayloadData& data) {
  const Schema* schema = find_schema(data.schema);
  if (schema == nullptr || data.bytes == nullptr) return;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < schema->count; ++i) {
    const nvtx::SchemaEntry& entry = schema->entries[i];
    const TypeTraits type = traits_of(entry.type);
    // Skip fields of unknown size. Later fields are then found only if their entries give an
    // offset.
    if (type.bytes == 0 || (entry.flags & nvtx::kNotInPlace) != 0) continue;
    const std::uint64_t aligned = (end + type.bytes - 1) / type.bytes * type.bytes;
    const std::uint64_t at = entry.offset != 0 || i == 0 ? entry.offset : aligned;
    if (data.size != SIZE_MAX && at + type.bytes > data.size) return;
    end = at + type.bytes;
    char key[64];
    copy_key(entry.name, key, sizeof key);
    add(key, type.kind, static_cast<const char*>(data.bytes) + at, type.bytes);
  }
}

void PayloadText::add(const char* key, char kind, const void* value, std::size_t bytes) {
  char member[128];
  const char* comma = used_ == 0 ? "{" : ", ";
  int size = 0;
  if (kind == 'f') {
    float single = 0;
    double wide = 0;
    if (bytes == 4) {
      std::memcpy(&single, value, 4);
      wide = static_cast<double>(single);
    } else {
      std::memcpy(&wide, value, 8);
    }
    if (!std::isfinite(wide)) return;
    size = std::snprintf(member, sizeof member, "%s\"%s\": %.17g", comma, key, wide);
  } else if (kind == 'i') {
    size = std::snprintf(member, sizeof member, "%s\"%s\": %lld", comma, key,
                         static_cast<long long>(load_signed(value, bytes)));
  } else {
    size = std::snprintf(member, sizeof member, "%s\"%s\": %llu", comma, key,
                         static_cast<unsigned long long>(load(value, bytes)));
  }
  if (size <= 0 || static_cast<std::size_t>(size) >= sizeof member) return;
  if (used_ + static_cast<std::size_t>(size) + 1 > kRoom) return;
  std::memcpy(bytes_ + used_, member, static_cast<std::size_t>(size));
  used_ += static_cast<std::size_t>(size);
}

void PayloadText::close() {
  if (used_ > 0) bytes_[used_++] = '}';
}

/// Returns the text that the message entry of a payload points to, or nullptr if it has none. This
/// is the name of a range that begins with nothing but a payload.
const char* message_of(const nvtx::PayloadData* data, std::size_t count) {
  for (std::size_t i = 0; data != nullptr && i < count; ++i) {
    const Schema* schema = find_schema(data[i].schema);
    if (schema == nullptr || data[i].bytes == nullptr) continue;
    for (std::size_t k = 0; k < schema->count; ++k) {
      constexpr std::uint64_t kText = 75;
      const nvtx::SchemaEntry& entry = schema->entries[k];
      const bool is_text = entry.type == kText || entry.type == kText + 1;
      if ((entry.flags & nvtx::kIsMessage) == 0 || !is_text) continue;
      const char* text = nullptr;
      if (entry.offset + sizeof text > data[i].size) continue;
      std::memcpy(&text, static_cast<const char*>(data[i].bytes) + entry.offset, sizeof text);
      return text;
    }
  }
  return nullptr;
}

/// The arguments of a range or mark.
struct EventArguments {
  const char* name = nullptr;  ///< The text, used if `number` is 0.
  std::uint32_t number = 0;
  std::uint32_t domain = 0;
  std::string_view payload{};
};

/// The handle of a domain or registered string is the number of its text plus one, so that no
/// handle is a null pointer.
void* to_handle(std::uint32_t number) {
  return reinterpret_cast<void*>(std::uintptr_t{number} + 1);
}
std::uint32_t from_handle(const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value == 0 ? 0 : static_cast<std::uint32_t>(value - 1);
}

/// Converts a wide text to UTF-8 and cuts it if it is too long for the buffer.
class Utf8Text {
 public:
  explicit Utf8Text(const wchar_t* wide) {
    for (; wide != nullptr && *wide != L'\0' && used_ + 5 < sizeof text_; ++wide)
      add(static_cast<std::uint32_t>(*wide));
    text_[used_] = '\0';
  }
  const char* text() const { return text_; }

 private:
  void add(std::uint32_t c) {
    if (c < 0x80) return put(c);
    if (c < 0x800) return put(0xc0U | c >> 6U), put(0x80U | (c & 0x3fU));
    if (c < 0x10000) {
      return put(0xe0U | c >> 12U), put(0x80U | (c >> 6U & 0x3fU)), put(0x80U | (c & 0x3fU));
    }
    put(0xf0U | (c >> 18U & 7U));
    put(0x80U | (c >> 12U & 0x3fU));
    put(0x80U | (c >> 6U & 0x3fU));
    put(0x80U | (c & 0x3fU));
  }
  void put(std::uint32_t byte) { text_[used_++] = static_cast<char>(byte); }

  char text_[1024];
  std::size_t used_ = 0;
};

std::atomic<std::uint64_t> next_range{1};

Texts& texts() { return Recorder::instance().writer().texts; }

void write(spool::RowKind kind, ThreadLog& log, const EventArguments& arguments, std::uint64_t id) {
  spool::Range row;
  row.row = kind;
  row.thread = log.thread();
  row.name = arguments.number != 0 ? arguments.number : texts().number_at(arguments.name);
  row.domain = arguments.domain;
  row.payload = texts().number(arguments.payload);
  row.id = id;
  row.time = Recorder::now();
  log.add(row);
}

/// Returns the log for a new range or mark, or nullptr if nothing is recorded. If steps define the
/// window, their ranges are examined even while nothing is recorded.
ThreadLog* log_of(const EventArguments& arguments) {
  Recorder& recorder = Recorder::instance();
  if (!recorder.start()) return nullptr;
  if (recorder.settings().by_steps) recorder.note_range(arguments.name);
  return recorder.log();
}

/// Begins a nested range. Returns its level on the thread, from 0, as NVTX requires.
int push(const EventArguments& arguments) {
  ThreadLog* log = log_of(arguments);
  if (log == nullptr) return 0;
  write(spool::RowKind::range_push, *log, arguments, 0);
  return log->depth++;
}

int pop(std::uint32_t domain) {
  ThreadLog* log = Recorder::instance().log();
  if (log == nullptr) return 0;
  // The reader of the spool recognizes a pop whose push was before the window.
  spool::Range row;
  row.row = spool::RowKind::range_pop;
  row.time = Recorder::now();
  row.thread = log->thread();
  row.domain = domain;
  log->add(row);
  if (log->depth > 0) --log->depth;
  return log->depth;
}

std::uint64_t start(const EventArguments& arguments) {
  const std::uint64_t id = next_range.fetch_add(1, std::memory_order_relaxed);
  if (ThreadLog* log = log_of(arguments)) write(spool::RowKind::range_start, *log, arguments, id);
  return id;
}

void end(std::uint64_t id) {
  if (ThreadLog* log = Recorder::instance().log()) write(spool::RowKind::range_end, *log, {}, id);
}

void mark(const EventArguments& arguments) {
  if (ThreadLog* log = log_of(arguments)) write(spool::RowKind::mark, *log, arguments, 0);
}

/// Calls `function` with the name, domain and payload of the event.
template <class Function>
auto with_arguments(const nvtx::EventAttributes* event, const void* domain, Function&& function) {
  EventArguments arguments{.domain = from_handle(domain)};
  if (event == nullptr || event->size < sizeof *event) return function(arguments);
  const PayloadText payload(*event);
  arguments.payload = payload.text();
  if (event->message_type == nvtx::kAscii) {
    arguments.name = event->message.ascii;
  } else if (event->message_type == nvtx::kRegistered) {
    arguments.number = from_handle(event->message.registered);
    arguments.name = texts().text(arguments.number);
  } else if (event->message_type == nvtx::kWide) {
    const Utf8Text narrow(event->message.wide);
    arguments.name = narrow.text();
    return function(arguments);
  }
  return function(arguments);
}

template <class Function>
auto with_arguments(const nvtx::PayloadData* data, std::size_t count, const void* domain,
                    Function&& function) {
  const PayloadText payload(data, count);
  const EventArguments arguments{
      .name = message_of(data, count), .domain = from_handle(domain), .payload = payload.text()};
  return function(arguments);
}

// The functions for NVTX's tables; NVTX defines their signatures.

void core_mark_ex(const nvtx::EventAttributes* event) { with_arguments(event, nullptr, mark); }
void core_mark(const char* name) { mark({.name = name}); }
void core_mark_wide(const wchar_t* name) { mark({.name = Utf8Text(name).text()}); }
std::uint64_t core_start_ex(const nvtx::EventAttributes* event) {
  return with_arguments(event, nullptr, start);
}
std::uint64_t core_start(const char* name) { return start({.name = name}); }
std::uint64_t core_start_wide(const wchar_t* name) {
  return start({.name = Utf8Text(name).text()});
}
void core_end(std::uint64_t id) { end(id); }
int core_push_ex(const nvtx::EventAttributes* event) {
  return with_arguments(event, nullptr, push);
}
int core_push(const char* name) { return push({.name = name}); }
int core_push_wide(const wchar_t* name) { return push({.name = Utf8Text(name).text()}); }
int core_pop() { return pop(0); }

void domain_mark(const void* domain, const nvtx::EventAttributes* event) {
  with_arguments(event, domain, mark);
}
std::uint64_t domain_start(const void* domain, const nvtx::EventAttributes* event) {
  return with_arguments(event, domain, start);
}
void domain_end(const void*, std::uint64_t id) { end(id); }
int domain_push(const void* domain, const nvtx::EventAttributes* event) {
  return with_arguments(event, domain, push);
}
int domain_pop(const void* domain) { return pop(from_handle(domain)); }
void* register_string(const void*, const char* text) {
  return to_handle(texts().number(text == nullptr ? "" : text));
}
void* register_wide_string(const void*, const wchar_t* text) {
  return to_handle(texts().number(Utf8Text(text).text()));
}
void* create_domain(const char* name) {
  return to_handle(texts().number(name == nullptr ? "" : name));
}
void* create_wide_domain(const wchar_t* name) {
  return to_handle(texts().number(Utf8Text(name).text()));
}

std::uint64_t schema_register(const void*, const nvtx::SchemaAttributes* attributes) {
  return register_schema(attributes);
}
std::uint64_t enum_register(const void*, const nvtx::EnumAttributes* attributes) {
  return register_enum(attributes);
}
void payload_mark(const void* domain, const nvtx::PayloadData* data, std::size_t count) {
  with_arguments(data, count, domain, mark);
}
int payload_push(const void* domain, const nvtx::PayloadData* data, std::size_t count) {
  return with_arguments(data, count, domain, push);
}
int payload_pop(const void* domain, const nvtx::PayloadData*, std::size_t) {
  return pop(from_handle(domain));
}
std::uint64_t payload_start(const void* domain, const nvtx::PayloadData* data, std::size_t count) {
  return with_arguments(data, count, domain, start);
}
void payload_end(const void*, std::uint64_t id, const nvtx::PayloadData*, std::size_t) { end(id); }
std::uint8_t domain_is_enabled(const void*) { return 1; }

/// Writes the name that the program gives to a thread. It takes precedence over the system's name.
void name_thread(std::uint32_t thread, const char* name) {
  Recorder& recorder = Recorder::instance();
  if (name == nullptr || !recorder.start()) return;
  spool::ThreadName row;
  row.is_given = 1;
  row.thread = thread;
  row.name = texts().number(name);
  recorder.writer().write_row(row);
}

template <auto function>
void set(nvtx::FunctionTable table, unsigned int size, std::uint32_t slot) {
  if (slot < size && table[slot] != nullptr)
    *table[slot] = reinterpret_cast<nvtx::FunctionPointer>(ErrnoPreserving<function>::call);
}

void set_core(nvtx::FunctionTable table, unsigned int size) {
  set<core_mark_ex>(table, size, nvtx::kMarkEx);
  set<core_mark>(table, size, nvtx::kMarkA);
  set<core_mark_wide>(table, size, nvtx::kMarkW);
  set<core_start_ex>(table, size, nvtx::kRangeStartEx);
  set<core_start>(table, size, nvtx::kRangeStartA);
  set<core_start_wide>(table, size, nvtx::kRangeStartW);
  set<core_end>(table, size, nvtx::kRangeEnd);
  set<core_push_ex>(table, size, nvtx::kRangePushEx);
  set<core_push>(table, size, nvtx::kRangePushA);
  set<core_push_wide>(table, size, nvtx::kRangePushW);
  set<core_pop>(table, size, nvtx::kRangePop);
  set<name_thread>(table, size, nvtx::kNameThreadA);
}

void set_domains(nvtx::FunctionTable table, unsigned int size) {
  set<domain_mark>(table, size, nvtx::kDomainMarkEx);
  set<domain_start>(table, size, nvtx::kDomainRangeStartEx);
  set<domain_end>(table, size, nvtx::kDomainRangeEnd);
  set<domain_push>(table, size, nvtx::kDomainRangePushEx);
  set<domain_pop>(table, size, nvtx::kDomainRangePop);
  set<register_string>(table, size, nvtx::kDomainRegisterStringA);
  set<register_wide_string>(table, size, nvtx::kDomainRegisterStringW);
  set<create_domain>(table, size, nvtx::kDomainCreateA);
  set<create_wide_domain>(table, size, nvtx::kDomainCreateW);
}

}  // namespace

int attach_nvtx(nvtx::GetExportTable get_table) {
  if (get_table == nullptr || !read_settings().records(kNvtx)) return 0;
  const auto* callbacks = static_cast<const nvtx::Callbacks*>(get_table(nvtx::kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  nvtx::FunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->get_function_table(nvtx::kCore, &table, &size) == 1) set_core(table, size);
  table = nullptr;
  if (callbacks->get_function_table(nvtx::kCore2, &table, &size) == 1) set_domains(table, size);
  return 1;
}

int attach_nvtx_extension(nvtx::ModuleInfo* module) {
  if (module == nullptr || module->module != nvtx::kPayloadModule || module->segment_count == 0 ||
      !read_settings().records(kNvtx)) {
    return 0;
  }
  const nvtx::ModuleSegment& segment = module->segments[0];
  const auto fill = [&](std::size_t slot, auto* function) {
    if (slot < segment.slot_count) segment.slots[slot] = reinterpret_cast<std::intptr_t>(function);
  };
  fill(nvtx::kSchemaRegister, ErrnoPreserving<schema_register>::call);
  fill(nvtx::kEnumRegister, ErrnoPreserving<enum_register>::call);
  fill(nvtx::kMarkPayload, ErrnoPreserving<payload_mark>::call);
  fill(nvtx::kRangePushPayload, ErrnoPreserving<payload_push>::call);
  fill(nvtx::kRangePopPayload, ErrnoPreserving<payload_pop>::call);
  fill(nvtx::kRangeStartPayload, ErrnoPreserving<payload_start>::call);
  fill(nvtx::kRangeEndPayload, ErrnoPreserving<payload_end>::call);
  fill(nvtx::kDomainIsEnabled, ErrnoPreserving<domain_is_enabled>::call);
  return 1;
}

}  // namespace foretrace::collect
