#pragma once

// Attributes that the text notation leaves out because they follow from the rest.

#include <optional>
#include <span>
#include <string_view>

#include "foretrace/graph.h"

namespace foretrace {

/// A stream where the first task runs on a device, or where there is none; otherwise a host thread.
LaneKind default_kind(const Graph& graph, LaneId lane);

/// 0 for a stream or copy engine, otherwise the host.
std::int32_t default_device(LaneKind kind);

std::span<const std::string_view> lane_kind_names();
std::span<const std::string_view> provenance_names();
std::optional<Provenance> provenance_named(std::string_view name);

}  // namespace foretrace
