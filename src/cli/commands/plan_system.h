#pragma once

// "foretrace plan system FILE".

#include "cli/options/command.h"

namespace foretrace {

void add_plan_system(CLI::App& command, Session& session);

}  // namespace foretrace
