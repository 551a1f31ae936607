#pragma once

#include <iosfwd>
#include <string>

#include "cli/options/command.h"

namespace foretrace {

/// Writes a page for man(1), in roff: about the program (`name` is empty), a command, or all
/// transforms ("transforms", section 7). Throws Error if no page has this name.
void write_manual(const CLI::App& app, const std::string& name, std::ostream& out);

/// Writes the help of a transform, named as here or by a common other name such as "bf16". Returns
/// false if there is none.
bool write_transform_help(const std::string& name, std::ostream& out);
void write_allocator_help(std::ostream& out);

}  // namespace foretrace
