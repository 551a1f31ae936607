#pragma once

// The history and state of an allocator, for `info`: levels, blocks, and who requested the most.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// One object per device that memory events or segments are of; host memory is device -1.
nlohmann::json allocators_json(const Trace& trace);

/// The stacks that asked for most bytes over the whole recording, the greatest first.
nlohmann::json allocating_stacks_json(const Trace& trace);

/// Rows "memory", one or two per device.
void add_allocator_rows(const Trace& trace, std::vector<std::vector<std::string>>& rows);

/// A table of the stacks, if there are any.
void write_allocating_stacks(const Trace& trace, std::ostream& out);

}  // namespace foretrace
