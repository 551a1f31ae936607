#pragma once

// Declares <name>_entry() for every line of transforms.def. -Wmissing-declarations then rejects a
// transform without a line, and the linker a line without a transform.

#include "foretrace/transform.h"

namespace foretrace {

#define TRANSFORM(name, summary) TransformEntry name##_entry();
#include "transform/transforms.def"
#undef TRANSFORM

/// For TransformEntry::make.
template <class Kind>
std::unique_ptr<Transform> create() {
  return std::make_unique<Kind>();
}

}  // namespace foretrace
