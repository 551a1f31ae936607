// Reads single records of rocprofiler-sdk and the tables that they refer to.

#include <algorithm>

#include "import/amd/rocprof.h"
#include "import/common/cuda_words.h"

namespace foretrace {

namespace {

/// Reads the number in an object such as {"handle": 18}.
std::int64_t handle(const JsonValue& value) {
  if (value.kind != ValueKind::object) return to_integer(value);
  std::int64_t number = 0;
  each_member(value, [&](std::string_view key, const JsonValue& member) {
    if (key == "handle" || key == "value") number = to_integer(member);
  });
  return number;
}

void read_xyz(const JsonValue& value, std::int64_t (&sizes)[3]) {
  each_member(value, [&](std::string_view key, const JsonValue& member) {
    if (key.size() == 1 && key[0] >= 'x' && key[0] <= 'z')
      sizes[key[0] - 'x'] = std::max<std::int64_t>(to_integer(member), 0);
  });
}

/// Converts a correlation id; 0 means none. The profiler counts calls from 1, so 32 bits suffice.
std::uint32_t correlation(std::int64_t id) {
  return id > 0 ? static_cast<std::uint32_t>(static_cast<std::uint64_t>(id)) : 0;
}

}  // namespace

NameId RocprofDocument::text(const JsonValue& value) {
  std::int64_t invalid = 0;
  return trace_.names.intern(decode_text(value, invalid));
}

void RocprofDocument::read_agent(const JsonValue& agent) {
  std::int64_t number = 0, type = 0, memory = 0;
  Device device;
  std::string name, product_name;
  each_member(agent, [&](std::string_view key, const JsonValue& value) {
    if (key == "id") number = handle(value);
    if (key == "type") type = to_integer(value);
    if (key == "cu_count") device.multiprocessors = static_cast<std::int32_t>(to_integer(value));
    if (key == "name") name = trace_.names[text(value)];
    if (key == "product_name") product_name = trace_.names[text(value)];
    if (key != "mem_banks") return;
    each_element(value, [&](const JsonValue& bank) {
      each_member(bank, [&](std::string_view of_bank, const JsonValue& size) {
        if (of_bank == "size_in_bytes" && __builtin_add_overflow(memory, to_integer(size), &memory))
          memory = 0;
      });
    });
  });
  device.name = product_name.empty() ? name : product_name;
  device.memory_bytes = std::max<std::int64_t>(memory, 0);
  constexpr std::int64_t kGpu = 2;
  records_.add_agent(number, type == kGpu, std::move(device));
}

void RocprofDocument::read_symbol(const JsonValue& symbol) {
  std::int64_t number = 0;
  NameId formatted{}, plain{};
  each_member(symbol, [&](std::string_view key, const JsonValue& value) {
    if (key == "kernel_id") number = to_integer(value);
    if (key == "formatted_kernel_name") formatted = text(value);
    if (key == "kernel_name") plain = text(value);
  });
  const NameId name = formatted != NameId{} ? formatted : plain;
  if (name != NameId{}) symbols_[number] = name;
}

RocprofDocument::Domain RocprofDocument::read_domain(const JsonValue& value) {
  Domain domain;
  each_member(value, [&](std::string_view key, const JsonValue& member) {
    if (key == "kind") domain.name = trace_.names[text(member)];
    if (key != "operations") return;
    each_element(member, [&](const JsonValue& name) { domain.operations.push_back(text(name)); });
  });
  return domain;
}

void RocprofDocument::read_marker_text(const JsonValue& marker) {
  std::int64_t id = 0;
  NameId message{};
  each_member(marker, [&](std::string_view key, const JsonValue& value) {
    if (key == "key" || key == "correlation_id") id = handle(value);
    if (key == "value" || key == "message") message = text(value);
  });
  if (message != NameId{}) marker_texts_[correlation(id)] = message;
}

void RocprofDocument::read_member(std::string_view key, const JsonValue& value, Record& record) {
  if (key == "kind") record.operation.kind = static_cast<std::size_t>(to_integer(value));
  if (key == "operation") record.operation.number = static_cast<std::size_t>(to_integer(value));
  if (key == "thread_id") record.thread = to_integer(value);
  if (key == "start_timestamp" || key == "timestamp") record.times.start = to_integer(value);
  if (key == "end_timestamp") record.times.end = to_integer(value);
  if (key == "agent_id") record.agent = handle(value);
  if (key == "src_agent_id") record.source = handle(value);
  if (key == "dst_agent_id") record.target = handle(value);
  if (key == "stream_id") record.stream = handle(value);
  if (key == "queue_id") record.queue = handle(value);
  if (key == "bytes" || key == "allocation_size") record.bytes = to_integer(value);
  if (key == "address") record.address = handle(value);
  if (key == "dispatch_info") read_dispatch(value, record);
  if (key == "correlation_id") read_correlations(value, record);
}

void RocprofDocument::read_correlations(const JsonValue& ids, Record& record) {
  each_member(ids, [&](std::string_view key, const JsonValue& id) {
    if (key == "internal") record.correlation = correlation(handle(id));
    if (key == "external") record.external = correlation(handle(id));
  });
}

void RocprofDocument::read_dispatch(const JsonValue& info, Record& record) {
  each_member(info, [&](std::string_view key, const JsonValue& value) {
    if (key == "agent_id") record.agent = handle(value);
    if (key == "queue_id") record.queue = handle(value);
    if (key == "kernel_id") record.kernel = to_integer(value);
    if (key == "workgroup_size") read_xyz(value, record.group);
    if (key == "grid_size") read_xyz(value, record.grid);
  });
}

void RocprofDocument::read_record(std::string_view domain, const JsonValue& value) {
  Record record;
  const bool whole = each_member(value, [&](std::string_view key, const JsonValue& member) {
    read_member(key, member, record);
  });
  if (!whole) {
    ++broken_;
  } else if (domain == "kernel_dispatch") {
    add_kernel(record);
  } else if (domain == "memory_copy") {
    add_copy(record);
  } else if (domain == "memory_allocation") {
    add_allocation(record);
  } else if (domain.ends_with("_api")) {
    add_call(domain, record);
  } else if (other_domains_++ == 0) {
    first_other_domain_ = domain;
  }
}

void RocprofDocument::add_kernel(const Record& record) {
  DeviceRecord kernel;
  kernel.correlation = record.correlation;
  kernel.external = record.external;
  // The grid is given in work-items, not in blocks.
  const auto blocks = [&](int i) -> std::int64_t {
    const std::int64_t items = record.grid[i], group = record.group[i];
    return group == 0 ? 0 : items / group + (items % group != 0 ? 1 : 0);
  };
  records_.launches.set(kernel, {blocks(0), blocks(1), blocks(2)},
                        {record.group[0], record.group[1], record.group[2]});
  kernel.stream = records_.stream(std::max(records_.agent(record.agent).ordinal, 0),
                                  record.stream >= 0 ? record.stream : record.queue);
  if (records_.add_device(kernel, record.times))
    unnamed_kernels_.emplace_back(trace_.devices.size() - 1, record.kernel);
}

void RocprofDocument::add_copy(const Record& record) {
  DeviceRecord copy;
  copy.kind = DeviceKind::copy;
  copy.correlation = record.correlation;
  copy.external = record.external;
  copy.bytes = record.bytes;
  copy.direction = records_.direction(record.source, record.target);
  constexpr std::string_view kNames[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH",
                                         "Memcpy DtoD", "Memcpy PtoP", "Memcpy HtoH"};
  copy.name = trace_.names.intern(kNames[static_cast<std::size_t>(copy.direction)]);
  copy.stream = records_.stream(records_.device_of_copy(record.source, record.target),
                                std::max<std::int64_t>(record.stream, 0));
  records_.add_device(copy, record.times);
}

void RocprofDocument::add_call(std::string_view domain, const Record& record) {
  HostRecord call;
  std::string upper(domain);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  call.kind = kind_of_domain(upper);
  call.correlation = record.correlation;
  call.external = record.external;
  call.thread = records_.thread(process_, record.thread);
  AmdTimes times = record.times;
  times.end = std::max(times.end, times.start);
  if (records_.add_host(call, times))
    unnamed_calls_.emplace_back(trace_.hosts.size() - 1, record.operation);
}

/// The operations of this domain are 1 allocate, 2 allocate virtual memory, 3 free, 4 free virtual
/// memory.
void RocprofDocument::add_allocation(const Record& record) {
  MemoryRecord memory;
  memory.address = static_cast<std::uint64_t>(record.address);
  memory.bytes = record.bytes;
  const AmdAgent agent = records_.agent(record.agent);
  memory.device = static_cast<std::int16_t>(agent.is_gpu ? agent.ordinal : -1);
  memory.thread = records_.thread(process_, record.thread);
  constexpr std::size_t kFirstFree = 3;
  if (record.operation.number >= kFirstFree) return records_.add_free(memory, record.times.start);
  records_.add_allocation(memory, record.times.start);
}

}  // namespace foretrace
