#pragma once

// Batches and the algorithms of their layers, under the memory of a GPU.

#include "foretrace/ask/size.h"

namespace foretrace {

/// Reads `layers` and sets `batches` and `best`. Throws Error where no batch fits.
void size_batches(const SizeQuestion& question, SizingReport& report);

}  // namespace foretrace
