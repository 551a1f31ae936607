#pragma once

#include <string>

namespace foretrace {

/// mkstemp() makes files for nobody but their owner. Gives one the rights that a new file has.
void give_usual_rights(const std::string& path);

}  // namespace foretrace
