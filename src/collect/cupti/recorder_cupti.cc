// The part of the recorder that calls CUPTI, and the callbacks that CUPTI makes.

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collect/cupti/decode.h"
#include "collect/cupti/recorder.h"
#include "collect/runtime/keep_errno.h"

namespace foretrace::collect {

namespace {

constexpr std::size_t kBatch = std::size_t{256} << 10;

/// Returns the CUDA version that the driver supports, as 12020 for 12.2; 0 for the stub of a
/// toolkit, which is no driver, and -1 if there is no library of the driver's.
int driver_version() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  const auto version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  return version != nullptr && version(&number) == 0 ? number : 0;
}

/// Whether the kernel shows a GPU of NVIDIA's: on Linux, in WSL or on a Jetson. The driver cannot
/// be asked, because it is in the middle of its own start.
bool has_device(const char* folder) {
  for (const char* node : {"nvidiactl", "dxg", "nvmap", "nvhost-ctrl-gpu"}) {
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/%s", folder, node);
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

/// CUPTI has one code for all these: 15 before CUDA 13 and 999 since.
void explain_missing_driver(std::uint32_t cupti_version, const char* devices, char (&text)[512]) {
  // Before CUDA 13, the number did not contain that of CUDA; the oldest that is read is
  // CUDA 11.8's.
  const int cuda = cupti_version >= 130000 ? static_cast<int>(cupti_version / 10000)
                   : cupti_version == cupti::kOldestVersion ? 11
                                                            : 12;
  const int driver = driver_version();
  if (driver < 0) {
    std::snprintf(
        text, sizeof text,
        "there is no NVIDIA driver (libcuda.so.1 is not found): install one, or start the "
        "container with --gpus all");
  } else if (driver == 0) {
    std::snprintf(
        text, sizeof text,
        "there is no NVIDIA driver (libcuda.so.1 is a stub): take the folder of stubs off "
        "LD_LIBRARY_PATH, or install a driver");
  } else if (!has_device(devices)) {
    std::snprintf(
        text, sizeof text,
        "there is no NVIDIA GPU (none in %s): run on a machine that has one, or start the "
        "container with --gpus all",
        devices);
  } else if (driver / 1000 < cuda) {
    std::snprintf(text, sizeof text,
                  "the driver (CUDA %d.%d) is older than this CUPTI (CUDA %d): install a newer "
                  "driver, or put the CUPTI of the program's own CUDA version in front of "
                  "LD_LIBRARY_PATH",
                  driver / 1000, driver % 1000 / 10, cuda);
  } else {
    std::snprintf(text, sizeof text,
                  "the driver (CUDA %d.%d) does not let it start: see whether nvidia-smi lists a "
                  "GPU, CUDA_VISIBLE_DEVICES hides none, and the CUPTI of the program's own CUDA "
                  "version is in front of LD_LIBRARY_PATH",
                  driver / 1000, driver % 1000 / 10);
  }
}

const char* cure_of(cupti::Result result) {
  switch (result) {
    case cupti::kInsufficientPrivileges:
    case cupti::kVirtualizedInsufficientPrivileges:
      return "profiling is reserved to the administrator: run as root, or have "
             "NVreg_RestrictProfilingToAdminUsers=0 set for the driver";
    case cupti::kMultipleSubscribers:
      return "another profiler holds CUPTI in this process (torch.profiler, nsys, ncu, cuda-gdb): "
             "record without it";
    default:
      return "";
  }
}

}  // namespace

void Recorder::start_cupti() {
  if (!start() || holds_cupti_) return;
  if ((settings_.record & ~(kNvtx | kMemory)) == 0) return;
  if (const char* missing = cupti_.load(settings_.cupti)) return report_failure(missing, "");
  cupti_.get_version(&version_);
  writer_.cupti_version = version_;
  if (version_ < cupti::kOldestVersion) {
    char problem[128];
    std::snprintf(problem, sizeof problem,
                  "must be CUPTI of CUDA 11.8 or later, but its version is %u", version_);
    return report_failure(problem, "");
  }
  if (!subscribe()) return;
  if (settings_.raw_file != nullptr) raw_dump_.open(writer_.files, settings_.raw_file, version_);
  buffers_.set_limits(settings_.buffers, settings_.buffer_bytes);
  if (version_ < cupti::kVersionWithoutBufferCrash) buffers_.always_give();
  cupti_.set_thread_id_type(cupti::kSystemThreadIds);
  if (cupti_.register_timestamps == nullptr ||
      cupti_.register_timestamps(&Recorder::now) != cupti::kSuccess) {
    writer_.device_clock = spool::Clock::realtime;
  }
  const cupti::Result result = cupti_.register_callbacks(on_request, on_complete);
  if (result != cupti::kSuccess) return report_refusal(cupti_.text(result), result);
  holds_cupti_ = true;
  enable_metadata();
  enable_callbacks();
  if (is_open()) {
    window_open_ = false;
    request_window(WindowRequest::open);
  }
}

bool Recorder::subscribe() {
  char holder[128] = "";
  cupti::Result result = cupti::kUnknown;
  if (cupti_.subscribe_v2 != nullptr) {
    cupti::SubscriberParams params{sizeof params, "foretrace", holder, sizeof holder};
    result = cupti_.subscribe_v2(&subscriber_, on_callback, this, &params);
  } else {
    result = cupti_.subscribe(&subscriber_, on_callback, this);
  }
  if (result == cupti::kSuccess) return true;
  char problem[512];
  std::snprintf(problem, sizeof problem, "CUPTI says \"%s\" (%d)%s%s", cupti_.text(result), result,
                *holder == '\0' ? "" : ", and that it is held by ", holder);
  report_refusal(problem, result);
  return false;
}

void Recorder::report_refusal(const char* problem, cupti::Result result) {
  char missing[512];
  const bool no_driver = result == cupti::kNotInitialized || result == cupti::kUnknown;
  if (no_driver) explain_missing_driver(version_, settings_.devices, missing);
  report_failure(problem, no_driver ? missing : cure_of(result));
}

void Recorder::enable_metadata() {
  for (const cupti::Kind kind : {cupti::Kind::device, cupti::Kind::context, cupti::Kind::stream})
    cupti_.enable(kind);
}

/// Stops recording calls that programs make thousands of times and that nothing waits for. CUPTI
/// forgets this setting whenever it enables their kind, so it is repeated afterwards.
void Recorder::disable_frequent_calls() {
  if (cupti_.enable_runtime_api != nullptr) {
    for (const std::uint32_t id : cupti::kFrequentRuntimeCalls) cupti_.enable_runtime_api(id, 0);
  }
  if (cupti_.enable_driver_api != nullptr) {
    for (const std::uint32_t id : cupti::kFrequentDriverCalls) cupti_.enable_driver_api(id, 0);
  }
}

void Recorder::enable_callbacks() {
  const auto on = [&](cupti::Domain domain, std::uint32_t id) {
    cupti_.enable_callback(1, subscriber_, domain, id);
  };
  on(cupti::Domain::state, cupti::kFatalError);
  if (settings_.records(kGraphs) && cupti_.graph_node_id != nullptr) {
    on(cupti::Domain::resource, cupti::kGraphNodeDependencyCreated);
    on(cupti::Domain::resource, cupti::kGraphNodeCloned);
  }
  if (settings_.by_profiler_api) {
    on(cupti::Domain::driver, cupti::kProfilerStart);
    on(cupti::Domain::driver, cupti::kProfilerStop);
    on(cupti::Domain::runtime, cupti::kRuntimeProfilerStart);
    on(cupti::Domain::runtime, cupti::kRuntimeProfilerStop);
  }
}

void Recorder::on_callback(void* user, cupti::Domain domain, std::uint32_t id, const void* data) {
  const KeepErrno keep;
  auto& recorder = *static_cast<Recorder*>(user);
  if (!recorder.is_recording() || data == nullptr) return;
  if (domain == cupti::Domain::driver || domain == cupti::Domain::runtime) {
    const bool runtime = domain == cupti::Domain::runtime;
    constexpr std::uint32_t kLeaving = 1;
    const bool leaving = static_cast<const cupti::CallbackData*>(data)->site == kLeaving;
    const bool start = id == (runtime ? cupti::kRuntimeProfilerStart : cupti::kProfilerStart);
    const bool stop = id == (runtime ? cupti::kRuntimeProfilerStop : cupti::kProfilerStop);
    if (start && leaving) recorder.request_window(WindowRequest::open);
    if (stop && !leaving) recorder.request_window(WindowRequest::closed);
  } else if (domain == cupti::Domain::resource) {
    const void* graph = static_cast<const cupti::ResourceData*>(data)->descriptor;
    if (graph != nullptr) recorder.note_graph(id, *static_cast<const cupti::GraphData*>(graph));
  } else if (domain == cupti::Domain::state && id == cupti::kFatalError) {
    const auto& state = *static_cast<const cupti::StateData*>(data);
    recorder.writer_.cupti_error = static_cast<std::uint32_t>(state.result);
    recorder.writer_.write_fact("problem",
                                state.message == nullptr ? "CUPTI failed" : state.message);
  }
}

/// Logs a node or an edge of a CUDA graph. This happens outside the window, too, because a graph
/// that is created before the window may be launched in it.
void Recorder::note_graph(std::uint32_t id, const cupti::GraphData& graph) {
  ThreadLog* log = ThreadLog::of_calling_thread(writer_);
  if (log == nullptr) return;
  if (id == cupti::kGraphNodeDependencyCreated) {
    spool::GraphEdge row;
    if (cupti_.graph_node_id(graph.dependency, &row.before) != cupti::kSuccess) return;
    if (cupti_.graph_node_id(graph.node, &row.after) != cupti::kSuccess) return;
    log->add(row);
  } else {
    spool::GraphClone row;
    if (cupti_.graph_node_id(graph.original_node, &row.original) != cupti::kSuccess) return;
    if (cupti_.graph_node_id(graph.node, &row.node) != cupti::kSuccess) return;
    if (cupti_.graph_id != nullptr) cupti_.graph_id(graph.graph, &row.graph);
    log->add(row);
  }
}

void Recorder::on_request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  const KeepErrno keep;
  Recorder& recorder = instance();
  recorder.register_exit_handler_again();
  *most = 0;
  *buffer = recorder.buffers_.take();
  *size = *buffer == nullptr ? 0 : recorder.buffers_.bytes();
}

void Recorder::on_complete(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                           std::size_t valid) {
  const KeepErrno keep;
  instance().take_buffer(context, stream, buffer, valid);
}

void Recorder::take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t valid) {
  if (buffer != nullptr && is_recording()) {
    if (valid > 0) {
      raw_dump_.add(cupti_, buffer, valid);
      decode_buffer(buffer, valid);
    }
    std::size_t dropped = 0;
    if (cupti_.dropped_records(context, stream, &dropped) == cupti::kSuccess)
      writer_.dropped_by_cupti += dropped;
  }
  buffers_.give_back(buffer);
}

void Recorder::decode_buffer(std::uint8_t* buffer, std::size_t valid) {
  const bool discard = buffers_.is_scarce();
  auto* rows = discard ? nullptr : static_cast<char*>(std::malloc(kBatch));
  std::size_t used = 0;
  std::uint32_t count = 0;
  std::uint64_t untimed = 0;
  cupti::Activity* record = nullptr;
  cupti::Result result = cupti_.next_record(buffer, valid, &record);
  while (result == cupti::kSuccess) {
    cupti::Activity* const current = record;
    result = cupti_.next_record(buffer, valid, &record);
    const auto* end =
        result == cupti::kSuccess ? reinterpret_cast<std::uint8_t*>(record) : buffer + valid;
    if (rows == nullptr) {
      ++writer_.discarded_records;
      continue;
    }
    const auto size = static_cast<std::size_t>(end - reinterpret_cast<std::uint8_t*>(current));
    const Decoded decoded = decode(*current, size, writer_.texts, rows + used);
    used += decoded.bytes;
    count += decoded.bytes > 0 ? 1 : 0;
    untimed += decoded.is_untimed ? 1 : 0;
    if (decoded.is_unknown) ++writer_.unknown_records;
    std::free(decoded.owned_details);
    if (current->kind == cupti::Kind::runtime) {
      name_call(1, reinterpret_cast<const cupti::Api*>(current)->callback);
    } else if (current->kind == cupti::Kind::driver) {
      name_call(0, reinterpret_cast<const cupti::Api*>(current)->callback);
    }
    if (used + kMaxRowBytes <= kBatch) continue;
    writer_.write_rows(rows, used, count, SpoolWriter::Timeout::recorder);
    used = count = 0;
  }
  if (rows != nullptr) writer_.write_rows(rows, used, count, SpoolWriter::Timeout::recorder);
  if (result != cupti::kMaxLimitReached) note_unreadable();
  writer_.untimed += untimed;
  std::free(rows);
}

/// Notes once that CUPTI's iterator stopped before the end of a buffer. The number of records after
/// that point is unknown.
void Recorder::note_unreadable() {
  if (!reported_unreadable_.exchange(true))
    writer_.write_fact("problem", "CUPTI could not read the rest of some of its own buffers");
}

/// Writes the name of an API call when the call first occurs. `runtime` is 1 for the runtime
/// domain, 0 for the driver domain.
void Recorder::name_call(std::uint32_t runtime, std::uint32_t id) {
  if (id >= 4096) return;
  const std::uint64_t bit = std::uint64_t{1} << (id % 64);
  std::atomic<std::uint64_t>& word = named_calls_[runtime][id / 64];
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  word |= bit;
  const cupti::Domain domain = runtime == 1 ? cupti::Domain::runtime : cupti::Domain::driver;
  const char* name = nullptr;
  if (cupti_.callback_name(domain, id, &name) != cupti::kSuccess || name == nullptr) return;
  spool::CallName row;
  row.domain = static_cast<std::uint16_t>(domain);
  row.callback = id;
  row.name = writer_.texts.number(name);
  writer_.write_row(row);
}

}  // namespace foretrace::collect
