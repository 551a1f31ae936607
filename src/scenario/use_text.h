#pragma once

#include <string>
#include <string_view>

#include "foretrace/transform.h"

namespace foretrace {

/// A transform as it could be given to --with: "prefetch:buffers=3,where.name=/x/"; settings that
/// have their defaults are left out.
std::string use_text(std::string_view name, Transform& transform);

}  // namespace foretrace
