#pragma once

// Which frame of a stack tells a reader where he is.

#include <string>
#include <string_view>

namespace foretrace {

/// The innermost frame of the user's own Python code, as far as that can be told; else of Python;
/// else, as on the threads of autograd, the function of the backward pass; else what is behind the
/// machinery of the allocator. `stack` has frames innermost first, joined by ';'.
std::string_view telling_frame(std::string_view stack);

/// telling_frame(), cut to what fits a line.
std::string shown_frame(std::string_view stack);

}  // namespace foretrace
