#include "foretrace/trace.h"

namespace foretrace {

std::string_view to_string(HostKind kind) {
  switch (kind) {
    case HostKind::op:
      return "op";
    case HostKind::annotation:
      return "annotation";
    case HostKind::python:
      return "python";
    case HostKind::runtime:
      return "runtime";
    case HostKind::driver:
      return "driver";
    case HostKind::overhead:
      return "overhead";
  }
  return "?";
}

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kernel:
      return "kernel";
    case DeviceKind::copy:
      return "copy";
    case DeviceKind::fill:
      return "fill";
    case DeviceKind::annotation:
      return "annotation";
  }
  return "?";
}

std::string_view to_string(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::none:
      return "none";
    case CopyDirection::in:
      return "in";
    case CopyDirection::out:
      return "out";
    case CopyDirection::on_device:
      return "on_device";
    case CopyDirection::peer:
      return "peer";
    case CopyDirection::on_host:
      return "on_host";
  }
  return "?";
}

std::string_view to_string(SyncKind kind) {
  switch (kind) {
    case SyncKind::stream:
      return "stream";
    case SyncKind::event:
      return "event";
    case SyncKind::context:
      return "context";
    case SyncKind::stream_wait_event:
      return "stream_wait_event";
    case SyncKind::unknown:
      return "unknown";
  }
  return "?";
}

}  // namespace foretrace
