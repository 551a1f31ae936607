#pragma once

// "foretrace sweep merge FILES": answers of shards become the file of one process.

#include "cli/options/command.h"

namespace foretrace {

void add_sweep_merge(CLI::App& command, Session& session);

}  // namespace foretrace
