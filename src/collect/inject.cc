// The entry points of the recording library. It is called by the CUDA driver, which loads
// CUDA_INJECTION64_PATH in cuInit; by NVTX's headers, which load NVTX_INJECTION64_PATH at their
// first call; and by the preloaded library, for allocator events.

#include <dlfcn.h>

#include "collect/cupti/recorder.h"
#include "collect/nvtx/nvtx.h"
#include "collect/nvtx/nvtx_abi.h"
#include "collect/runtime/keep_errno.h"
#include "collect/runtime/library_bridge.h"

using foretrace::collect::KeepErrno;
using foretrace::collect::Recorder;

#pragma GCC visibility push(default)
extern "C" {
int InitializeInjection();
int InitializeInjectionNvtx2(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtx(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtxExtension(foretrace::nvtx::ModuleInfo* module);
}
#pragma GCC visibility pop

namespace {

void note_block(const foretrace::collect::BlockChange* change) {
  const KeepErrno keep;
  Recorder& recorder = Recorder::instance();
  // Start the recorder first: this may be its first event, and starting reads the settings.
  if (!recorder.start() || !recorder.settings().records(foretrace::collect::kMemory)) return;
  foretrace::collect::ThreadLog* log = recorder.log();
  if (log == nullptr) return;
  foretrace::spool::Block row;
  row.device = change->device;
  row.thread = log->thread();
  row.address = change->address;
  row.bytes = change->bytes;
  row.total_allocated = change->total_allocated;
  row.total_reserved = change->total_reserved;
  row.time = Recorder::now();
  log->add(row);
}

int holds_cupti() { return Recorder::instance().holds_cupti() ? 1 : 0; }

__attribute__((constructor)) void connect_to_preload() {
  void* found = dlsym(RTLD_DEFAULT, foretrace::collect::kLibraryBridge);
  if (found == nullptr) return;
  auto& bridge = *static_cast<foretrace::collect::LibraryBridge*>(found);
  bridge.note_block.store(note_block, std::memory_order_release);
  bridge.holds_cupti.store(holds_cupti, std::memory_order_release);
}

}  // namespace

extern "C" {

int InitializeInjection() {
  const KeepErrno keep;
  Recorder::instance().start_cupti();
  return 1;
}

int InitializeInjectionNvtx2(foretrace::nvtx::GetExportTable get_table) {
  const KeepErrno keep;
  return foretrace::collect::attach_nvtx(get_table);
}

int InitializeInjectionNvtx(foretrace::nvtx::GetExportTable get_table) {
  const KeepErrno keep;
  return foretrace::collect::attach_nvtx(get_table);
}

int InitializeInjectionNvtxExtension(foretrace::nvtx::ModuleInfo* module) {
  const KeepErrno keep;
  return foretrace::collect::attach_nvtx_extension(module);
}

}  // extern "C"
