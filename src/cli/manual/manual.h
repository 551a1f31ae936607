#pragma once

#include <iosfwd>
#include <string>

#include "cli/options/command.h"

namespace foretrace {

/// A page for man(1), in roff: of the program (an empty name), of a command, or of all transforms
/// ("transforms", section 7). Throws Error if there is none of this name.
void write_manual(const CLI::App& app, const std::string& name, std::ostream& out);

}  // namespace foretrace
