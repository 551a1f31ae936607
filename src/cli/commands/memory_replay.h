#pragma once

// "foretrace memory replay FILE": runs a program of a few lines on the caching allocator.

#include "cli/options/command.h"

namespace foretrace {

void add_memory_replay(CLI::App& command, Session& session);

}  // namespace foretrace
