#pragma once

// Default attributes, which the text notation leaves out.

#include <optional>
#include <span>
#include <string_view>

#include "foretrace/graph.h"

namespace foretrace {

/// A stream if the first task runs on a device or the lane is empty; otherwise a host thread.
LaneKind default_kind(const Graph& graph, LaneId lane);

/// 0 for a stream or copy engine, otherwise -1 (the host).
std::int32_t default_device(LaneKind kind);

std::span<const std::string_view> lane_kind_names();
std::span<const std::string_view> provenance_names();
std::optional<Provenance> provenance_named(std::string_view name);

}  // namespace foretrace
