#pragma once

// Chooses the batch and the algorithms of its layers that are fastest within the memory of a GPU.

#include "foretrace/ask/size.h"

namespace foretrace {

/// Reads `layers`, and sets `batches` and `best` of the report. Throws Error if no batch fits.
void size_batches(const SizeQuestion& question, SizingReport& report);

}  // namespace foretrace
