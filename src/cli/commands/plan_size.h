#pragma once

// "foretrace plan size [TRACE]".

#include "cli/options/command.h"

namespace foretrace {

void add_plan_size(CLI::App& command, Session& session);

}  // namespace foretrace
