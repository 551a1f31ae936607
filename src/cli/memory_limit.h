#pragma once

namespace foretrace {

/// Lets this process take no more memory than the machine, or the group of processes that it is
/// confined to, has available now. What needs more then fails where it asks for it, with a
/// sentence, rather than later by a signal of the kernel that may as well hit another program.
/// Children inherit the limit: not for commands that run the user's program.
void limit_memory();

}  // namespace foretrace
