#pragma once

// Picks the frame of a stack that is most useful to a reader.

#include <string>
#include <string_view>

namespace foretrace {

/// The innermost frame of the user's own Python code, as far as it can be recognized; else of
/// Python; else, as on the threads of autograd, the function of the backward pass; else the frame
/// after the machinery of the allocator. `stack` has frames innermost first, joined by ';'.
std::string_view telling_frame(std::string_view stack);

/// telling_frame(), cut to fit a line.
std::string shown_frame(std::string_view stack);

}  // namespace foretrace
