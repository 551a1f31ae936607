#include "export/common/profiler_words.h"

namespace foretrace {

std::string_view category_of(HostKind kind) {
  switch (kind) {
    case HostKind::op:
      return "cpu_op";
    case HostKind::annotation:
      return "user_annotation";
    case HostKind::python:
      return "python_function";
    case HostKind::runtime:
      return "cuda_runtime";
    case HostKind::driver:
      return "cuda_driver";
    case HostKind::overhead:
      return "overhead";
  }
  return "";
}

std::string_view category_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kernel:
      return "kernel";
    case DeviceKind::copy:
      return "gpu_memcpy";
    case DeviceKind::fill:
      return "gpu_memset";
    case DeviceKind::annotation:
      return "gpu_user_annotation";
  }
  return "";
}

}  // namespace foretrace
