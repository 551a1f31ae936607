#pragma once

// Declares <name>_program() for every line of programs.def.

#include "launch/launch.h"

namespace foretrace {

#define PROGRAM(name) LaunchProgram name##_program();
#include "launch/programs.def"
#undef PROGRAM

}  // namespace foretrace
