#pragma once

// Declares make_<name>() and assumes_<name>() for every line of transforms.def.
// -Wmissing-declarations then rejects a transform without a line, and the linker a line without a
// transform.

#include "foretrace/transform.h"

namespace foretrace {

#define TRANSFORM(name, summary)            \
  std::unique_ptr<Transform> make_##name(); \
  std::string_view assumes_##name();
#include "transform/transforms.def"
#undef TRANSFORM

}  // namespace foretrace
