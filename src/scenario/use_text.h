#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/transform.h"

namespace foretrace {

/// Returns a transform in the form that --with accepts: "prefetch:buffers=3,where.name=/x/".
/// Settings with their default values are left out.
std::string use_text(std::string_view name, Transform& transform);

/// Returns the name of the transform in such a text: "prefetch".
std::string_view kind_of(std::string_view use);

/// Returns the names of the transforms that changed something, each once, in order.
std::vector<std::string> kinds_of(const std::vector<AppliedStep>& steps);

}  // namespace foretrace
