#include "collect/nvtx/nvtx.h"

#include <atomic>
#include <cstring>
#include <string_view>

#include "collect/cupti/recorder.h"
#include "collect/nvtx/payload.h"
#include "collect/runtime/keep_errno.h"

namespace foretrace::collect {

namespace {

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
