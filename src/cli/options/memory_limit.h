#pragma once

namespace foretrace {

/// Limits this process to the memory that is available now on the machine, or in its control group.
/// A larger allocation then fails with a message, rather than later by a signal of the kernel that
/// may also hit another program. Children inherit the limit: not for commands that run the user's
/// program.
void limit_memory();

/// Keeps freed memory for later allocations of this process. Graphs are cloned and dropped many
/// times, and the C library would return each to the kernel, which clears all of its pages again.
/// Asks for large pages as well. Together half of the time of `predict`, where page faults are slow
/// (virtual machines).
void keep_freed_memory();

}  // namespace foretrace
