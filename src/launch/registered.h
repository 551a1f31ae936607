#pragma once

// Declares <name>_program() for every line of programs.def.

#include "launch/launch.h"

namespace foretrace {

#define PROGRAM(name) LaunchProgram name##_program();
#include "launch/programs.def"
#undef PROGRAM

/// Notes which of these are in the file, because they change the step or its memory; "false",
/// "none" and a usual value, as in "key=1", do not.
void note_not_priced(ConfigReader& config, std::initializer_list<std::string_view> keys,
                     LaunchSettings& said);

}  // namespace foretrace
