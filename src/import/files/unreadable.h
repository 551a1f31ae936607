#pragma once

#include <string>

#include "foretrace/import.h"

namespace foretrace {

/// Describes a file that people mistake for a trace, or that no importer reads: "a SQLite database,
/// as Nsight Systems exports one". Empty if it is none of those.
std::string what_else_it_is(const Sniffed& file);

}  // namespace foretrace
