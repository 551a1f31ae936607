#pragma once

// How this process uses memory. `free` is what free_memory() found at its start.

#include <optional>

#include "foretrace/units.h"

namespace foretrace {

/// Limits this process to the memory that is available now on the machine, or in its control group.
/// A larger allocation then fails with a message; without the limit, the kernel would later kill
/// this program or another one. Children inherit the limit, so commands that run the user's program
/// must not call this.
void limit_memory(std::optional<Bytes> free);

/// Keeps freed memory for later allocations of this process, and asks for large pages. Graphs are
/// cloned and dropped many times, and the C library would return the memory of each to the kernel,
/// which clears all its pages again. Where page faults are slow (virtual machines), this halves the
/// time of `predict`.
void keep_freed_memory(std::optional<Bytes> free);

}  // namespace foretrace
