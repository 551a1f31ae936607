#include "import/kineto/kineto_records.h"

#include "import/common/word_table.h"
#include "trace/step_name.h"

namespace foretrace {

namespace {

/// Times further from 0 cannot be subtracted from each other in 64 bits.
constexpr std::int64_t kMostTime = 4'000'000'000'000'000'000;
constexpr std::int64_t kMostDuration = 1'000'000'000'000'000'000;

constexpr WordTable<Category> kCategories{
    {"cpu_op", Category::op},
    {"Operator", Category::op},
    {"hpu_op", Category::op},
    {"user_annotation", Category::annotation},
    {"User Annotation", Category::annotation},
    {"python_function", Category::python},
    {"cuda_runtime", Category::runtime},
    {"Runtime", Category::runtime},
    {"hip_runtime", Category::runtime},
    {"xpu_runtime", Category::runtime},
    {"mtia_runtime", Category::runtime},
    {"glow_runtime", Category::runtime},
    {"privateuse1_runtime", Category::runtime},
    {"cuda_driver", Category::driver},
    {"xpu_driver", Category::driver},
    {"privateuse1_driver", Category::driver},
    {"overhead", Category::overhead},
    {"kernel", Category::kernel},
    {"Kernel", Category::kernel},
    {"gpu_memcpy", Category::copy},
    {"Memcpy", Category::copy},
    {"gpu_memset", Category::fill},
    {"Memset", Category::fill},
    {"gpu_user_annotation", Category::device_annotation},
    {"cuda_sync", Category::sync},
    {"xpu_sync", Category::sync},
    {"Trace", Category::ignored},
    {"external_correlation", Category::ignored},
    {"cuda_event", Category::no_place},
    {"cuda_profiler_range", Category::no_place},
    {"hardware_counters", Category::no_place},
};

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// Ranges of the profiler and of PyTorch's own loops, which old traces do not distinguish from
/// operators.
bool is_old_annotation(std::string_view name) {
  return starts_with(name, kProfilerStep) || starts_with(name, "Optimizer.") ||
         starts_with(name, "enumerate(DataLoader)#");
}

/// The kind of an event on a CPU thread.
HostKind host_kind(Category category, std::string_view name) {
  switch (category) {
    case Category::annotation:
      return HostKind::annotation;
    case Category::python:
      return HostKind::python;
    case Category::runtime:
      return HostKind::runtime;
    case Category::driver:
      return HostKind::driver;
    case Category::overhead:
      return HostKind::overhead;
    default:
      return is_old_annotation(name) ? HostKind::annotation : HostKind::op;
  }
}

bool is_link(std::string_view category) {
  return category == "fwdbwd" || category == "fwd_bwd" || category == "forward_backward";
}

}  // namespace

void KinetoRecords::count(Odd odd, std::int64_t offset) {
  auto& [count, first] = odd_[static_cast<std::size_t>(odd)];
  if (count++ == 0) first = offset;
}

void KinetoRecords::add(const KinetoEvent& event, std::int64_t offset) {
  offset_ = offset;
  if (event.empty()) return;
  const std::string_view phase = event.text(Field::phase);
  switch (phase.size() == 1 ? phase[0] : event.has(Field::duration) ? 'X' : '?') {
    case 'X':
      return add_complete(event, offset);
    case 's':
    case 'f':
      if (is_link(event.text(Field::category))) add_link(event, phase[0] == 'f', offset);
      return;
    case 'i':
    case 'I':
    case 'R':
      return add_instant(event, offset);
    case 'M':
      return add_metadata(event);
    case 'B':
      return begin_range(event, offset);
    case 'E':
      return end_range(event, offset);
    default:
      count(Odd::no_place, offset);
  }
}

void KinetoRecords::add_complete(const KinetoEvent& event, std::int64_t offset) {
  const Category kind = category(event);
  if (kind == Category::ignored) return;
  if (kind == Category::no_place) return count(Odd::no_place, offset);
  if (kind == Category::unknown) return count(Odd::unknown_category, offset);
  Times times;
  if (!read_start(event, offset, times.start)) return;
  times.duration = read_duration(event, offset);
  ++useful_;
  switch (kind) {
    case Category::kernel:
      return add_device(event, DeviceKind::kernel, times);
    case Category::copy:
      return add_device(event, DeviceKind::copy, times);
    case Category::fill:
      return add_device(event, DeviceKind::fill, times);
    case Category::device_annotation:
      return add_device(event, DeviceKind::annotation, times);
    case Category::sync:
      return add_sync(event, times);
    default:
      return add_host(event, host_kind(kind, event.text(Field::name)), times);
  }
}

Category KinetoRecords::category(const KinetoEvent& event) const {
  if (!event.has(Field::category) || event.text(Field::category).empty()) {
    // The profiler before Kineto wrote no categories.
    return event.text(Field::pid) == "CUDA functions" ? Category::kernel : Category::none;
  }
  return kCategories.find(event.text(Field::category));
}

bool KinetoRecords::read_start(const KinetoEvent& event, std::int64_t offset, std::int64_t& start) {
  if (!event.has(Field::start)) return count(Odd::no_time, offset), false;
  ExactTime time;
  if (!to_nanoseconds(event[Field::start], kMostTime, time))
    return count(Odd::bad_time, offset), false;
  whole_us_ &= time.whole_us;
  start = time.ns;
  return true;
}

std::int64_t KinetoRecords::read_duration(const KinetoEvent& event, std::int64_t offset) {
  if (!event.has(Field::duration)) return count(Odd::no_duration, offset), 0;
  ExactTime time;
  if (!to_nanoseconds(event[Field::duration], kMostDuration, time))
    return count(Odd::bad_duration, offset), 0;
  if (time.ns < 0) return count(Odd::negative_duration, offset), 0;
  whole_us_ &= time.whole_us;
  return time.ns;
}

NameId KinetoRecords::name(const JsonValue& value) {
  if (value.kind == ValueKind::literal && value.view() == "null") return NameId{};
  const bool decode =
      value.kind == ValueKind::text ? value.escaped || value.non_ascii : value.non_ascii;
  if (!decode) return intern_.intern(value.view());
  std::int64_t invalid = 0;
  const std::string text = decode_text(value, invalid);
  if (invalid > 0) count(Odd::invalid_text, offset_);
  return intern_.intern(text);
}

std::uint16_t KinetoRecords::thread_of(const KinetoEvent& event) {
  return lanes_.thread(event.has(Field::pid) ? lanes_.identity(event[Field::pid]) : 0,
                       event.has(Field::tid) ? lanes_.identity(event[Field::tid]) : 0);
}

void KinetoRecords::add_link(const KinetoEvent& event, bool is_end, std::int64_t offset) {
  LinkRecord link;
  if (!read_start(event, offset, link.time_ns)) return;
  link.id = event.integer(Field::flow_id, 0);
  link.thread = thread_of(event);
  link.is_end = is_end;
  trace_.links.push_back(link);
}

void KinetoRecords::add_metadata(const KinetoEvent& event) {
  if (!event.has(Field::label) || !event.has(Field::pid)) return;
  const std::string_view what = event.text(Field::name);
  const bool of_thread = what == "thread_name";
  if (!of_thread && what != "process_name") return;
  std::int64_t invalid = 0;
  const std::string label = decode_text(event[Field::label], invalid);
  if (invalid > 0) count(Odd::invalid_text, offset_);
  const std::int64_t process = lanes_.identity(event[Field::pid]);
  if (!of_thread) return lanes_.name_process(process, label);
  lanes_.name_thread(process, event.has(Field::tid) ? lanes_.identity(event[Field::tid]) : 0,
                     label);
}

void KinetoRecords::add_instant(const KinetoEvent& event, std::int64_t offset) {
  if (event.text(Field::name) != "[memory]") return;
  MemoryRecord record;
  if (!read_start(event, offset, record.time_ns)) return;
  ++useful_;
  record.thread = thread_of(event);
  record.address = static_cast<std::uint64_t>(event.integer(Field::address, 0));
  record.bytes = event.integer(Field::memory_bytes, 0);
  record.total_allocated = event.integer(Field::total_allocated, -1);
  record.total_reserved = event.integer(Field::total_reserved, -1);
  // c10::DeviceType: 0 is the CPU, 1 CUDA, 6 HIP.
  const bool on_host = event.integer(Field::device_type, 1) <= 0;
  record.device = static_cast<std::int16_t>(on_host ? -1 : event.integer(Field::device_id, -1));
  trace_.memory.push_back(record);
}

void KinetoRecords::begin_range(const KinetoEvent& event, std::int64_t offset) {
  HostRecord record;
  if (!read_start(event, offset, record.start_ns)) return;
  record.name = name(event, Field::name);
  record.kind = host_kind(category(event), event.text(Field::name));
  record.thread = thread_of(event);
  if (record.thread >= open_.size()) open_.resize(record.thread + std::size_t{1});
  open_[record.thread].push_back(record);
}

void KinetoRecords::end_range(const KinetoEvent& event, std::int64_t offset) {
  std::int64_t end = 0;
  if (!read_start(event, offset, end)) return;
  const std::uint16_t thread = thread_of(event);
  if (thread >= open_.size() || open_[thread].empty()) return count(Odd::unmatched_end, offset);
  HostRecord record = open_[thread].back();
  open_[thread].pop_back();
  record.duration_ns = end - record.start_ns;
  if (record.duration_ns < 0 || record.duration_ns > kMostDuration) {
    count(Odd::negative_duration, offset);
    record.duration_ns = 0;
  }
  ++useful_;
  trace_.hosts.push_back(record);
}

}  // namespace foretrace
