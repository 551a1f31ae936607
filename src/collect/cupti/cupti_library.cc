#include "collect/cupti/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace foretrace::collect {

namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"};

int note_cudart(dl_phdr_info* loaded, std::size_t, void* found) {
  const char* name = loaded->dlpi_name == nullptr ? nullptr : std::strrchr(loaded->dlpi_name, '/');
  if (name == nullptr || std::strncmp(name, "/libcudart.so.", 14) != 0) return 0;
  *static_cast<int*>(found) = std::atoi(name + 14);
  return 1;
}

/// Returns the major version of the program's CUDA, or 0 if it is unknown. The CUPTI to load must
/// match it: a CUPTI that is newer than the driver does not work.
int cuda_major() {
  int major = 0;
  dl_iterate_phdr(note_cudart, &major);
  if (major != 0) return major;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  const auto version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  if (version != nullptr && version(&number) == 0) major = number / 1000;
  return major;
}

enum class Major : std::uint8_t { equal, older, newer };

/// Opens the libcupti that the loader finds by its name, of a major version that compares so with
/// the one wanted (0: any counts as equal).
void* open_by_name(int wanted, Major which, int mode = RTLD_NOW) {
  for (const char* name : kNames) {
    const int major = std::atoi(name + std::strlen("libcupti.so."));
    const Major found = wanted == 0 || major == wanted ? Major::equal
                        : major < wanted               ? Major::older
                                                       : Major::newer;
    if (found != which) continue;
    if (void* library = dlopen(name, mode)) return library;
  }
  return nullptr;
}

/// Looks for libcupti near the loaded libcudart, where Python wheels install it.
int open_beside_cudart(dl_phdr_info* loaded, std::size_t, void* found) {
  const char* file = loaded->dlpi_name == nullptr ? nullptr : std::strrchr(loaded->dlpi_name, '/');
  if (file == nullptr || std::strncmp(file, "/libcudart", 10) != 0) return 0;
  const auto folder = static_cast<int>(file - loaded->dlpi_name);
  for (const char* place : {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"}) {
    for (const char* name : kNames) {
      char path[PATH_MAX];
      std::snprintf(path, sizeof path, "%.*s%s/%s", folder, loaded->dlpi_name, place, name);
      void* library = dlopen(path, RTLD_NOW);
      if (library == nullptr) continue;
      *static_cast<void**>(found) = library;
      return 1;
    }
  }
  return 0;
}

/// A CUPTI that is loaded already is used; otherwise one of the program's CUDA, wherever it is,
/// goes before another version. An older one works with a newer driver, the reverse hardly ever.
void* find_library(const char* path) {
  if (path != nullptr) {
    if (void* library = dlopen(path, RTLD_NOW)) return library;
  } else if (void* library = open_by_name(0, Major::equal, RTLD_NOW | RTLD_NOLOAD)) {
    return library;
  }
  const int wanted = cuda_major();
  void* library = path == nullptr ? open_by_name(wanted, Major::equal) : nullptr;
  if (library == nullptr) dl_iterate_phdr(open_beside_cudart, &library);
  if (path != nullptr) return library;
  if (library == nullptr) library = open_by_name(wanted, Major::older);
  return library != nullptr ? library : open_by_name(wanted, Major::newer);
}

template <class Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const char* CuptiLibrary::load(const char* path) {
  void* library = find_library(path);
  if (library == nullptr) {
    return "libcupti.so.13, .12 or .11.8 is not found; install the package cuda-cupti of your CUDA "
           "version, or add its folder to LD_LIBRARY_PATH";
  }
  const bool has_all = bind(library, "cuptiGetVersion", get_version) &&
                       bind(library, "cuptiSubscribe", subscribe) &&
                       bind(library, "cuptiEnableCallback", enable_callback) &&
                       bind(library, "cuptiActivityEnable", enable) &&
                       bind(library, "cuptiActivityDisable", disable) &&
                       bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) &&
                       bind(library, "cuptiActivityGetNextRecord", next_record) &&
                       bind(library, "cuptiActivityGetNumDroppedRecords", dropped_records) &&
                       bind(library, "cuptiActivityFlushAll", flush_all) &&
                       bind(library, "cuptiGetCallbackName", callback_name) &&
                       bind(library, "cuptiSetThreadIdType", set_thread_id_type);
  if (!has_all) return "the libcupti found lacks functions that every version since CUDA 11.8 has";
  bind(library, "cuptiSubscribe_v2", subscribe_v2);
  bind(library, "cuptiActivityRegisterTimestampCallback", register_timestamps);
  bind(library, "cuptiActivityEnableRuntimeApi", enable_runtime_api);
  bind(library, "cuptiActivityEnableDriverApi", enable_driver_api);
  bind(library, "cuptiActivityEnableAllSyncRecords", enable_all_sync_records);
  bind(library, "cuptiGetGraphNodeId", graph_node_id);
  bind(library, "cuptiGetGraphId", graph_id);
  bind(library, "cuptiGetResultString", result_text);
  return nullptr;
}

const char* CuptiLibrary::text(Result result) const {
  const char* text = nullptr;
  if (result_text != nullptr && result_text(result, &text) == cupti::kSuccess && text != nullptr)
    return text;
  return "unknown";
}

}  // namespace foretrace::collect
