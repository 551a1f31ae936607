#pragma once

// The history and the state of an allocator, for `info`: levels, blocks, and the stacks that
// requested most.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "document/words/table.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Returns one object for each device that has memory events or segments. Host memory is device -1.
nlohmann::json allocators_json(const Trace& trace);

/// Returns the stacks that requested most bytes over the whole recording, the largest first.
nlohmann::json allocating_stacks_json(const Trace& trace);

/// Adds a row "memory", and up to three rows for each device.
void add_allocator_rows(const Trace& trace, std::vector<std::vector<std::string>>& rows);

/// Returns a table of these stacks.
Table allocating_stacks_table(const Trace& trace);

}  // namespace foretrace
