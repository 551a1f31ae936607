#pragma once

// Picks the frame of a stack that is most useful to a reader.

#include <string>
#include <string_view>

namespace foretrace {

/// Returns the innermost frame of the user's own Python code, if it is recognized; else the
/// innermost Python frame; else the function of the backward pass, as on the threads of autograd;
/// else the first frame outside the allocator's machinery. `stack` has its frames innermost first,
/// joined by ';'.
std::string_view informative_frame(std::string_view stack);

/// Returns informative_frame(), cut to fit a line.
std::string shown_frame(std::string_view stack);

}  // namespace foretrace
