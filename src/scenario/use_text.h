#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/transform.h"

namespace foretrace {

/// A transform as it could be given to --with: "prefetch:buffers=3,where.name=/x/"; settings that
/// have their defaults are left out.
std::string use_text(std::string_view name, Transform& transform);

/// The name of the transform in such a text: "prefetch".
std::string_view kind_of(std::string_view use);

/// The names of the transforms that changed something, each once, in order.
std::vector<std::string> kinds_of(const std::vector<AppliedStep>& steps);

}  // namespace foretrace
