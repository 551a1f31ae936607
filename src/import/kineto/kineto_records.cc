#include "import/kineto/kineto_records.h"

#include <algorithm>

#include "import/common/times.h"
#include "import/common/word_table.h"
#include "trace/step_name.h"

namespace foretrace {

namespace {

/// Where the events of a category belong. `none` means that a trace has no place for them,
/// `ignored` that they repeat other events.
enum class Destination : std::uint8_t { unknown, by_name, host, device, sync, ignored, none };

/// The meaning of a category. The table below has the names of both generations of the profiler,
/// and those of ROCm, XPU and others.
struct Category {
  Destination destination = Destination::unknown;
  HostKind host = HostKind::op;
  DeviceKind device = DeviceKind::kernel;
};
constexpr Category category_for(HostKind kind) {
  return {.destination = Destination::host, .host = kind};
}
constexpr Category category_for(DeviceKind kind) {
  return {.destination = Destination::device, .device = kind};
}

constexpr WordTable<Category> kCategories{
    {"cpu_op", {Destination::by_name}},
    {"Operator", {Destination::by_name}},
    {"hpu_op", {Destination::by_name}},
    {"user_annotation", category_for(HostKind::annotation)},
    {"User Annotation", category_for(HostKind::annotation)},
    {"python_function", category_for(HostKind::python)},
    {"cuda_runtime", category_for(HostKind::runtime)},
    {"Runtime", category_for(HostKind::runtime)},
    {"hip_runtime", category_for(HostKind::runtime)},
    {"xpu_runtime", category_for(HostKind::runtime)},
    {"mtia_runtime", category_for(HostKind::runtime)},
    {"glow_runtime", category_for(HostKind::runtime)},
    {"privateuse1_runtime", category_for(HostKind::runtime)},
    {"cuda_driver", category_for(HostKind::driver)},
    {"xpu_driver", category_for(HostKind::driver)},
    {"privateuse1_driver", category_for(HostKind::driver)},
    {"overhead", category_for(HostKind::overhead)},
    {"kernel", category_for(DeviceKind::kernel)},
    {"Kernel", category_for(DeviceKind::kernel)},
    {"gpu_memcpy", category_for(DeviceKind::copy)},
    {"Memcpy", category_for(DeviceKind::copy)},
    {"gpu_memset", category_for(DeviceKind::fill)},
    {"Memset", category_for(DeviceKind::fill)},
    {"gpu_user_annotation", category_for(DeviceKind::annotation)},
    {"cuda_sync", {Destination::sync}},
    {"xpu_sync", {Destination::sync}},
    {"Trace", {Destination::ignored}},
    {"external_correlation", {Destination::ignored}},
    {"mtia_ccp_events", category_for(DeviceKind::kernel)},
    {"cuda_event", {Destination::none}},
    {"cuda_profiler_range", {Destination::none}},
    {"hardware_counters", {Destination::none}},
};

/// Whether a name belongs to a range of the profiler or of PyTorch's own loops. Old traces do not
/// distinguish these from operators.
bool is_old_annotation(std::string_view name) {
  return name.starts_with(kProfilerStep) || name.starts_with("Optimizer.") ||
         name.starts_with("enumerate(DataLoader)#");
}

/// The kind of an event on a CPU thread.
HostKind host_kind(const Category& category, std::string_view name) {
  if (category.destination == Destination::host) return category.host;
  return is_old_annotation(name) ? HostKind::annotation : HostKind::op;
}

bool is_link(std::string_view category) {
  return category == "fwdbwd" || category == "fwd_bwd" || category == "forward_backward";
}

/// The categories of a device of an unknown kind end as those of the known ones, in either case:
/// "gcu_runtime", "GCU_MEMCPY".
Category category_by_end(std::string_view name) {
  struct CategoryEnd {
    std::string_view end;
    Category category;
  };
  static constexpr CategoryEnd kEnds[] = {
      {"runtime", category_for(HostKind::runtime)},
      {"driver", category_for(HostKind::driver)},
      {"_kernel", category_for(DeviceKind::kernel)},
      {"_memcpy", category_for(DeviceKind::copy)},
      {"_memset", category_for(DeviceKind::fill)},
      {"_user_annotation", category_for(DeviceKind::annotation)},
      {"_sync", {Destination::sync}},
  };
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  for (const CategoryEnd& known : kEnds) {
    if (name.size() < known.end.size()) continue;
    const std::string_view end = name.substr(name.size() - known.end.size());
    if (std::equal(end.begin(), end.end(), known.end.begin(), same)) return known.category;
  }
  return {};
}

Category category_of(const KinetoEvent& event) {
  if (!event.has(Field::category) || event.text(Field::category).empty()) {
    // The profiler before Kineto wrote no categories.
    return event.text(Field::pid) == "CUDA functions" ? category_for(DeviceKind::kernel)
                                                      : Category{Destination::by_name};
  }
  const std::string_view name = event.text(Field::category);
  const Category known = kCategories.find(name);
  // Calls of an accelerator are not always told from its ops by their category ("hpu_op"): an id
  // that device work shares makes a call. A CPU op has none.
  const bool of_accelerator = name.ends_with("_op") && name != "cpu_op";
  if (of_accelerator && event.integer(Field::correlation, 0) > 0)
    return category_for(HostKind::runtime);
  if (known.destination != Destination::unknown) return known;
  return category_by_end(name);
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
    case 't':
    case 'f':
      return add_flow(event, phase[0]);
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
      to_.count(KinetoOddity::no_place);
  }
}

void KinetoRecords::add_complete(const KinetoEvent& event) {
  const Category category = category_of(event);
  if (category.destination == Destination::ignored) return;
  if (category.destination == Destination::none) return to_.count(KinetoOddity::no_place);
  if (category.destination == Destination::unknown)
    return to_.count(KinetoOddity::unknown_category);
  KinetoTimes times;
  if (!to_.read_start(event, times.start)) return;
  times.duration = to_.read_duration(event);
  ++useful_;
  if (category.destination == Destination::device)
    return add_device(to_, event, category.device, times);
  if (category.destination == Destination::sync) return add_sync(to_, event, times);
  const HostKind kind = host_kind(category, event.text(Field::name));
  if (is_call(kind)) note_bytes(event);
  if (event.text(Field::category).empty()) add_lane_work(event, times);
  add_host(to_, event, kind, times);
}

/// Keeps what the next host record cannot hold of an event that only its lane can sort, and reads
/// its times in nanoseconds where the event has them beside those in microseconds.
void KinetoRecords::add_lane_work(const KinetoEvent& event, KinetoTimes& times) {
  LaneWork work;
  work.host = static_cast<std::uint32_t>(to_.trace.hosts.size());
  work.correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
  work.graph_node = static_cast<std::uint64_t>(event.integer(Field::graph_node, 0));
  work.bytes = event.integer(Field::bytes, event.integer(Field::size, 0));
  work.step = event.integer(Field::step_number, -1);
  read_lane_details(event.text(Field::lane_details), work);
  lane_work_.push_back(work);
  constexpr std::int64_t kTick = 1000;
  const std::int64_t begin = event.integer(Field::begin_ns, -1);
  const std::int64_t length = event.integer(Field::length_ns, -1);
  if (begin < times.start || begin >= times.start + kTick) return;
  if (length < 0 || length / kTick < times.duration / kTick - 1 || length > kMaxDuration) return;
  times = {.start = begin, .duration = length};
  to_.note_finer_times(begin % kTick != 0 || length % kTick != 0);
}

void KinetoRecords::add_flow(const KinetoEvent& event, char phase) {
  const std::string_view category = event.text(Field::category);
  if (is_link(category) && phase != 't') return add_link(event, phase == 'f');
  // The ends of these have the correlation id that the arrow shows.
  if (category == "ac2g" || category == "async_cpu_to_gpu") return;
  LaneFlow flow;
  if (!event.has(Field::start) || !event.has(Field::pid) || !event.has(Field::flow_id)) return;
  if (!to_.read_start(event, flow.time_ns)) return;
  flow.id = event.integer(Field::flow_id, 0);
  flow.process = to_.lanes.identity(event[Field::pid]);
  flow.thread = event.has(Field::tid) ? to_.lanes.identity(event[Field::tid]) : 0;
  flow.is_end = phase != 's';
  flows_.push_back(flow);
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
  const std::string_view name = event.text(Field::name);
  const bool of_thread = name == "thread_name";
  if (!of_thread && name != "process_name") return;
  std::int64_t invalid = 0;
  const std::string label = decode_text(event[Field::label], invalid);
  if (invalid > 0) to_.count(KinetoOddity::invalid_text);
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
  if (thread >= open_.size() || open_[thread].empty())
    return to_.count(KinetoOddity::unmatched_end);
  HostRecord record = open_[thread].back();
  open_[thread].pop_back();
  record.duration_ns = end - record.start_ns;
  if (record.duration_ns < 0 || record.duration_ns > kMaxDuration) {
    to_.count(KinetoOddity::negative_duration);
    record.duration_ns = 0;
  }
  ++useful_;
  to_.trace.hosts.push_back(record);
}

}  // namespace foretrace
