#pragma once

// Declares make_<name>() for every line of families.def.

#include <memory>

#include "workload/workload.h"

namespace foretrace {

#define FAMILY(name, summary) std::unique_ptr<Workload> make_##name();
#include "workload/families.def"
#undef FAMILY

}  // namespace foretrace
