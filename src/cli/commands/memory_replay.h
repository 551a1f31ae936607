#pragma once

// "foretrace memory replay FILE": what the caching allocator does under a program of a few lines.

#include "cli/options/command.h"

namespace foretrace {

void add_memory_replay(CLI::App& command, Session& session);

}  // namespace foretrace
