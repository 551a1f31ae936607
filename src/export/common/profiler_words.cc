#include "export/common/profiler_words.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/contains.h"

namespace foretrace {
namespace {

/// Texts by which profilers name the source and the destination of a copy.
constexpr std::string_view kEndpointWords[] = {
    "HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "HtoA", "AtoH",   "AtoA",     "AtoD",   "DtoA",
    "H2D",  "D2H",  "D2D",  "P2P",  "M2D",  "D2M",  "ToHost", "ToDevice", "ToPeer", " -> ",
};

std::string_view endpoints_of(CopyDirection direction, bool pinned) {
  switch (direction) {
    case CopyDirection::in:
      return pinned ? "Pinned -> Device" : "Pageable -> Device";
    case CopyDirection::out:
      return pinned ? "Device -> Pinned" : "Device -> Pageable";
    case CopyDirection::on_host:
      return pinned ? "Pinned -> Pinned" : "Pageable -> Pageable";
    default:
      return "Device -> Device";
  }
}

}  // namespace

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

std::string copy_name(const Trace& trace, const DeviceRecord& record) {
  const std::string_view name = trace.names[record.name];
  const bool has_endpoints =
      record.direction == CopyDirection::none ||
      std::any_of(std::begin(kEndpointWords), std::end(kEndpointWords),
                  [&](std::string_view sign) { return contains(name, sign); });
  if (has_endpoints && record.pinned_host == contains(name, "Pinned")) return std::string(name);
  return fmt::format("Memcpy {} ({})", copy_sign(record.direction),
                     endpoints_of(record.direction, record.pinned_host));
}

}  // namespace foretrace
