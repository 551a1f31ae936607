#include "import/kineto/kineto_records.h"

#include "import/common/word_table.h"
#include "trace/step_name.h"

namespace foretrace {

namespace {

/// Where the events of a category belong. `none` means that a trace has no place for them,
/// `ignored` that they repeat other events.
enum class Place : std::uint8_t { unknown, by_name, host, device, sync, ignored, none };

/// The meaning of a category. The table below has the names of both generations of the profiler,
/// and those of ROCm, XPU and others.
struct Category {
  Place place = Place::unknown;
  HostKind host = HostKind::op;
  DeviceKind device = DeviceKind::kernel;
};
constexpr Category of(HostKind kind) { return {.place = Place::host, .host = kind}; }
constexpr Category of(DeviceKind kind) { return {.place = Place::device, .device = kind}; }

constexpr WordTable<Category> kCategories{
    {"cpu_op", {Place::by_name}},
    {"Operator", {Place::by_name}},
    {"hpu_op", {Place::by_name}},
    {"user_annotation", of(HostKind::annotation)},
    {"User Annotation", of(HostKind::annotation)},
    {"python_function", of(HostKind::python)},
    {"cuda_runtime", of(HostKind::runtime)},
    {"Runtime", of(HostKind::runtime)},
    {"hip_runtime", of(HostKind::runtime)},
    {"xpu_runtime", of(HostKind::runtime)},
    {"mtia_runtime", of(HostKind::runtime)},
    {"glow_runtime", of(HostKind::runtime)},
    {"privateuse1_runtime", of(HostKind::runtime)},
    {"cuda_driver", of(HostKind::driver)},
    {"xpu_driver", of(HostKind::driver)},
    {"privateuse1_driver", of(HostKind::driver)},
    {"overhead", of(HostKind::overhead)},
    {"kernel", of(DeviceKind::kernel)},
    {"Kernel", of(DeviceKind::kernel)},
    {"gpu_memcpy", of(DeviceKind::copy)},
    {"Memcpy", of(DeviceKind::copy)},
    {"gpu_memset", of(DeviceKind::fill)},
    {"Memset", of(DeviceKind::fill)},
    {"gpu_user_annotation", of(DeviceKind::annotation)},
    {"cuda_sync", {Place::sync}},
    {"xpu_sync", {Place::sync}},
    {"Trace", {Place::ignored}},
    {"external_correlation", {Place::ignored}},
    {"cuda_event", {Place::none}},
    {"cuda_profiler_range", {Place::none}},
    {"hardware_counters", {Place::none}},
};

/// Whether a name belongs to a range of the profiler or of PyTorch's own loops. Old traces do not
/// distinguish these from operators.
bool is_old_annotation(std::string_view name) {
  return name.starts_with(kProfilerStep) || name.starts_with("Optimizer.") ||
         name.starts_with("enumerate(DataLoader)#");
}

/// The kind of an event on a CPU thread.
HostKind host_kind(const Category& category, std::string_view name) {
  if (category.place == Place::host) return category.host;
  return is_old_annotation(name) ? HostKind::annotation : HostKind::op;
}

bool is_link(std::string_view category) {
  return category == "fwdbwd" || category == "fwd_bwd" || category == "forward_backward";
}

Category category_of(const KinetoEvent& event) {
  if (!event.has(Field::category) || event.text(Field::category).empty()) {
    // The profiler before Kineto wrote no categories.
    return event.text(Field::pid) == "CUDA functions" ? of(DeviceKind::kernel)
                                                      : Category{Place::by_name};
  }
  return kCategories.find(event.text(Field::category));
}

}  // namespace

void KinetoRecords::add(const KinetoEvent& event, std::int64_t offset) {
  to_.begin(offset);
  if (event.empty()) return;
  const std::string_view phase = event.text(Field::phase);
  switch (phase.size() == 1 ? phase[0] : event.has(Field::duration) ? 'X' : '?') {
    case 'X':
      return add_complete(event);
    case 's':
    case 'f':
      if (is_link(event.text(Field::category))) add_link(event, phase[0] == 'f');
      return;
    case 'i':
    case 'I':
    case 'R':
      return add_instant(event);
    case 'M':
      return add_metadata(event);
    case 'B':
      return begin_range(event);
    case 'E':
      return end_range(event);
    default:
      to_.count(Odd::no_place);
  }
}

void KinetoRecords::add_complete(const KinetoEvent& event) {
  const Category category = category_of(event);
  if (category.place == Place::ignored) return;
  if (category.place == Place::none) return to_.count(Odd::no_place);
  if (category.place == Place::unknown) return to_.count(Odd::unknown_category);
  KinetoTimes times;
  if (!to_.read_start(event, times.start)) return;
  times.duration = to_.read_duration(event);
  ++useful_;
  if (category.place == Place::device) return add_device(to_, event, category.device, times);
  if (category.place == Place::sync) return add_sync(to_, event, times);
  const HostKind kind = host_kind(category, event.text(Field::name));
  if (is_call(kind)) note_bytes(event);
  add_host(to_, event, kind, times);
}

void KinetoRecords::note_bytes(const KinetoEvent& event) {
  const auto correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
  const Field bytes = event.has(Field::bytes) ? Field::bytes : Field::size;
  if (event.has(bytes) && correlation != 0)
    call_bytes_.emplace_back(correlation, event.integer(bytes, 0));
}

void KinetoRecords::add_link(const KinetoEvent& event, bool is_end) {
  LinkRecord link;
  if (!to_.read_start(event, link.time_ns)) return;
  link.id = event.integer(Field::flow_id, 0);
  link.thread = to_.thread_of(event);
  link.is_end = is_end;
  to_.trace.links.push_back(link);
}

void KinetoRecords::add_metadata(const KinetoEvent& event) {
  if (!event.has(Field::label) || !event.has(Field::pid)) return;
  const std::string_view what = event.text(Field::name);
  const bool of_thread = what == "thread_name";
  if (!of_thread && what != "process_name") return;
  std::int64_t invalid = 0;
  const std::string label = decode_text(event[Field::label], invalid);
  if (invalid > 0) to_.count(Odd::invalid_text);
  const std::int64_t process = to_.lanes.identity(event[Field::pid]);
  if (!of_thread) return to_.lanes.name_process(process, label);
  to_.lanes.name_thread(process, event.has(Field::tid) ? to_.lanes.identity(event[Field::tid]) : 0,
                        label);
}

void KinetoRecords::add_instant(const KinetoEvent& event) {
  if (event.text(Field::name) != "[memory]") return;
  MemoryRecord record;
  if (!to_.read_start(event, record.time_ns)) return;
  ++useful_;
  record.thread = to_.thread_of(event);
  record.address = static_cast<std::uint64_t>(event.integer(Field::address, 0));
  record.bytes = event.integer(Field::memory_bytes, 0);
  record.total_allocated = event.integer(Field::total_allocated, -1);
  record.total_reserved = event.integer(Field::total_reserved, -1);
  // c10::DeviceType: 0 is the CPU, 1 CUDA, 6 HIP.
  const bool on_host = event.integer(Field::device_type, 1) <= 0;
  record.device = static_cast<std::int16_t>(on_host ? -1 : event.integer(Field::device_id, -1));
  to_.trace.memory.push_back(record);
}

void KinetoRecords::begin_range(const KinetoEvent& event) {
  HostRecord record;
  if (!to_.read_start(event, record.start_ns)) return;
  record.name = to_.name(event, Field::name);
  record.kind = host_kind(category_of(event), event.text(Field::name));
  record.thread = to_.thread_of(event);
  if (record.thread >= open_.size()) open_.resize(record.thread + std::size_t{1});
  open_[record.thread].push_back(record);
}

void KinetoRecords::end_range(const KinetoEvent& event) {
  std::int64_t end = 0;
  if (!to_.read_start(event, end)) return;
  const std::uint16_t thread = to_.thread_of(event);
  if (thread >= open_.size() || open_[thread].empty()) return to_.count(Odd::unmatched_end);
  HostRecord record = open_[thread].back();
  open_[thread].pop_back();
  record.duration_ns = end - record.start_ns;
  if (record.duration_ns < 0 || record.duration_ns > kMostDuration) {
    to_.count(Odd::negative_duration);
    record.duration_ns = 0;
  }
  ++useful_;
  to_.trace.hosts.push_back(record);
}

}  // namespace foretrace
