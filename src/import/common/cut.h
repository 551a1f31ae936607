#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foretrace/notes.h"

namespace foretrace {

/// Notes that a trace ends early. `where` says in which part ("in the list of events") and may be
/// empty, like `damage`, which says why the file could not be unpacked further.
void note_cut(Notes& notes, std::string_view where, const std::string& damage, std::int64_t at);

}  // namespace foretrace
