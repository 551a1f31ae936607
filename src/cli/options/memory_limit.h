#pragma once

namespace foretrace {

/// Lets this process take no more memory than the machine, or the group of processes that it is
/// confined to, has available now. What needs more then fails where it asks for it, with a
/// sentence, rather than later by a signal of the kernel that may as well hit another program.
/// Children inherit the limit: not for commands that run the user's program.
void limit_memory();

/// Keeps memory that was freed for what this process asks for next. Graphs are cloned and dropped
/// many times over, and the C library would give each back to the kernel, which clears all of its
/// pages anew: a quarter of what `advise` takes.
void keep_freed_memory();

}  // namespace foretrace
