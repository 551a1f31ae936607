#include <algorithm>

#include "foretrace/trace.h"

namespace foretrace {

const CapturedNode* captured_node(const Trace& trace, const DeviceRecord& record) {
  if (record.graph_node == 0) return nullptr;
  const auto found = std::lower_bound(
      trace.captured.begin(), trace.captured.end(), record.graph_node,
      [](const CapturedNode& node, std::uint64_t number) { return node.node < number; });
  return found == trace.captured.end() || found->node != record.graph_node ? nullptr : &*found;
}

bool is_snapshot(const Trace& trace) {
  return trace.devices.empty() && (!trace.segments.empty() || trace.format == "torch_memory");
}

bool lacks_history(const Trace& trace) { return is_snapshot(trace) && trace.memory.empty(); }

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

std::string_view to_string(MemoryAction action) {
  switch (action) {
    case MemoryAction::block:
      return "block";
    case MemoryAction::free_requested:
      return "free_requested";
    case MemoryAction::segment_alloc:
      return "segment_alloc";
    case MemoryAction::segment_free:
      return "segment_free";
    case MemoryAction::segment_map:
      return "segment_map";
    case MemoryAction::segment_unmap:
      return "segment_unmap";
    case MemoryAction::out_of_memory:
      return "out_of_memory";
    case MemoryAction::snapshot:
      return "snapshot";
  }
  return "?";
}

std::string_view to_string(BlockState state) {
  switch (state) {
    case BlockState::allocated:
      return "allocated";
    case BlockState::pending_free:
      return "pending_free";
    case BlockState::inactive:
      return "inactive";
  }
  return "?";
}

std::int64_t reserved_change(const MemoryRecord& record) {
  switch (record.action) {
    case MemoryAction::segment_alloc:
    case MemoryAction::segment_free:
    case MemoryAction::segment_map:
    case MemoryAction::segment_unmap:
      return record.bytes;
    default:
      return 0;
  }
}

std::string_view copy_sign(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::in:
      return "HtoD";
    case CopyDirection::out:
      return "DtoH";
    case CopyDirection::on_device:
      return "DtoD";
    case CopyDirection::peer:
      return "PtoP";
    case CopyDirection::on_host:
      return "HtoH";
    case CopyDirection::none:
      return "";
  }
  return "";
}

}  // namespace foretrace
