#pragma once

// The tables and columns of a .ftrace file. Writing and reading share this list.

#include <string>
#include <vector>

#include "foretrace/trace.h"
#include "trace/launch_shape.h"

namespace foretrace::ftrace {

/// Fields that a trace has only once: the single row of the table "trace".
struct TraceRow {
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
  std::int64_t origin_ns = 0;
  std::int64_t tick_ns = 1;
  bool has_times = true;
  std::string format;
};

struct TextRow {
  std::string text;
};

struct MetadataRow {
  std::string key;
  std::string value;
};

/// The parts of a trace that are not tables of their own.
struct LooseRows {
  std::vector<TraceRow> trace;
  std::vector<TextRow> names;
  std::vector<MetadataRow> metadata;
  std::vector<Note> notes;
};

/// Calls `visit.table(name, rows, columns)`, where `columns(column)` calls `column(name, member)`
/// for each column.
template <class Visitor>
void each_table(LooseRows& loose, Visitor& visit) {
  visit.table("trace", loose.trace, [](auto&& column) {
    column("rank", &TraceRow::rank);
    column("world_size", &TraceRow::world_size);
    column("origin_ns", &TraceRow::origin_ns);
    column("tick_ns", &TraceRow::tick_ns);
    column("has_times", &TraceRow::has_times);
    column("format", &TraceRow::format);
  });
  visit.table("names", loose.names, [](auto&& column) { column("text", &TextRow::text); });
  visit.table("metadata", loose.metadata, [](auto&& column) {
    column("key", &MetadataRow::key);
    column("value", &MetadataRow::value);
  });
  visit.table("notes", loose.notes, [](auto&& column) {
    column("severity", &Note::severity);
    column("text", &Note::text);
    column("count", &Note::count);
    column("example", &Note::example);
  });
}

template <class Visitor>
void each_lane_table(Trace& trace, Visitor& visit) {
  visit.table("threads", trace.threads, [](auto&& column) {
    column("process", &Thread::process);
    column("id", &Thread::id);
    column("name", &Thread::name);
  });
  visit.table("streams", trace.streams, [](auto&& column) {
    column("device", &Stream::device);
    column("id", &Stream::id);
  });
  visit.table("properties", trace.properties, [](auto&& column) {
    column("ordinal", &Device::ordinal);
    column("name", &Device::name);
    column("memory_bytes", &Device::memory_bytes);
    column("multiprocessors", &Device::multiprocessors);
    column("major", &Device::major);
    column("minor", &Device::minor);
  });
  visit.table("launches", trace.launches, [](auto&& column) { each_launch_field(column); });
}

template <class Visitor>
void each_record_table(Trace& trace, Visitor& visit) {
  visit.table("hosts", trace.hosts, [](auto&& column) {
    column("start_ns", &HostRecord::start_ns);
    column("duration_ns", &HostRecord::duration_ns);
    column("name", &HostRecord::name);
    column("correlation", &HostRecord::correlation);
    column("external", &HostRecord::external);
    column("details", &HostRecord::details);
    column("thread", &HostRecord::thread);
    column("kind", &HostRecord::kind);
    column("nests", &HostRecord::nests);
  });
  visit.table("devices", trace.devices, [&](auto&& column) {
    column("start_ns", &DeviceRecord::start_ns);
    column("duration_ns", &DeviceRecord::duration_ns);
    column("bytes", &DeviceRecord::bytes);
    column("name", &DeviceRecord::name);
    column("correlation", &DeviceRecord::correlation);
    column("external", &DeviceRecord::external);
    column("details", &DeviceRecord::details);
    column("graph_node", &DeviceRecord::graph_node);
    column("grid", &DeviceRecord::grid);
    column("block", &DeviceRecord::block);
    if (!trace.launches.empty()) column("launch", &DeviceRecord::launch);
    column("stream", &DeviceRecord::stream);
    column("kind", &DeviceRecord::kind);
    column("direction", &DeviceRecord::direction);
    column("pinned_host", &DeviceRecord::pinned_host);
  });
  visit.table("syncs", trace.syncs, [](auto&& column) {
    column("start_ns", &SyncRecord::start_ns);
    column("duration_ns", &SyncRecord::duration_ns);
    column("correlation", &SyncRecord::correlation);
    column("stream", &SyncRecord::stream);
    column("wait_on_stream", &SyncRecord::wait_on_stream);
    column("wait_on_correlation", &SyncRecord::wait_on_correlation);
    column("event", &SyncRecord::event);
    column("kind", &SyncRecord::kind);
  });
  visit.table("memory", trace.memory, [](auto&& column) {
    column("time_ns", &MemoryRecord::time_ns);
    column("address", &MemoryRecord::address);
    column("bytes", &MemoryRecord::bytes);
    column("total_allocated", &MemoryRecord::total_allocated);
    column("total_reserved", &MemoryRecord::total_reserved);
    column("thread", &MemoryRecord::thread);
    column("device", &MemoryRecord::device);
    column("stream", &MemoryRecord::stream);
    column("stack", &MemoryRecord::stack);
    column("action", &MemoryRecord::action);
  });
  visit.table("links", trace.links, [](auto&& column) {
    column("id", &LinkRecord::id);
    column("time_ns", &LinkRecord::time_ns);
    column("thread", &LinkRecord::thread);
    column("is_end", &LinkRecord::is_end);
  });
}

template <class Visitor>
void each_state_table(Trace& trace, Visitor& visit) {
  visit.table("graph_edges", trace.graph_edges, [](auto&& column) {
    column("before", &GraphEdge::before);
    column("after", &GraphEdge::after);
  });
  visit.table("segments", trace.segments, [](auto&& column) {
    column("address", &MemorySegment::address);
    column("bytes", &MemorySegment::bytes);
    column("stream", &MemorySegment::stream);
    column("stack", &MemorySegment::stack);
    column("pool", &MemorySegment::pool);
    column("device", &MemorySegment::device);
    column("is_large", &MemorySegment::is_large);
    column("is_expandable", &MemorySegment::is_expandable);
  });
  visit.table("blocks", trace.blocks, [](auto&& column) {
    column("address", &MemoryBlock::address);
    column("bytes", &MemoryBlock::bytes);
    column("requested_bytes", &MemoryBlock::requested_bytes);
    column("segment", &MemoryBlock::segment);
    column("stack", &MemoryBlock::stack);
    column("state", &MemoryBlock::state);
  });
  visit.table("tensors", trace.tensors, [](auto&& column) {
    column("tensor", &TensorRecord::tensor);
    column("storage", &TensorRecord::storage);
    column("offset_bytes", &TensorRecord::offset_bytes);
    column("bytes", &TensorRecord::bytes);
    column("host", &TensorRecord::host);
    column("type", &TensorRecord::type);
    column("shape", &TensorRecord::shape);
    column("argument", &TensorRecord::argument);
    column("device", &TensorRecord::device);
    column("is_output", &TensorRecord::is_output);
  });
}

template <class Visitor>
void each_detail_table(Trace& trace, Visitor& visit) {
  visit.table("op_details", trace.op_details, [](auto&& column) {
    column("shapes", &OpDetails::shapes);
    column("types", &OpDetails::types);
    column("values", &OpDetails::values);
    column("stack", &OpDetails::stack);
    column("kernel", &OpDetails::kernel);
    column("sequence", &OpDetails::sequence);
    column("forward_thread", &OpDetails::forward_thread);
    column("python_id", &OpDetails::python_id);
    column("python_parent", &OpDetails::python_parent);
    column("record_function", &OpDetails::record_function);
  });
  visit.table("captured", trace.captured, [](auto&& column) {
    column("node", &CapturedNode::node);
    column("op_call", &CapturedNode::op_call);
    column("path", &CapturedNode::path);
    column("op", &CapturedNode::op);
    column("shapes", &CapturedNode::shapes);
    column("types", &CapturedNode::types);
    column("values", &CapturedNode::values);
    column("module", &CapturedNode::module);
    column("stack", &CapturedNode::stack);
  });
  visit.table("collectives", trace.collectives, [](auto&& column) {
    column("collective", &CollectiveDetails::collective);
    column("dtype", &CollectiveDetails::dtype);
    column("group", &CollectiveDetails::group);
    column("ranks", &CollectiveDetails::ranks);
    column("in_elements", &CollectiveDetails::in_elements);
    column("out_elements", &CollectiveDetails::out_elements);
    column("group_size", &CollectiveDetails::group_size);
    column("sequence", &CollectiveDetails::sequence);
  });
}

template <class Visitor>
void each_table(Trace& trace, LooseRows& loose, Visitor& visit) {
  each_table(loose, visit);
  each_lane_table(trace, visit);
  each_record_table(trace, visit);
  each_state_table(trace, visit);
  each_detail_table(trace, visit);
}

}  // namespace foretrace::ftrace
