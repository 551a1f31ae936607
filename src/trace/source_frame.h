#pragma once

// Frames of Python stacks as profilers write them, and the origin of their code.
//
//     "train.py(88): main"                                   in a profiler's trace
//     "/opt/env/lib/python3.11/site-packages/x/y.py:7 f"     in a memory snapshot
//
// PyTorch's profiler removes the search path from file names, so a library's "typing.py" looks like
// a script "train.py"; a file whose name does not belong to Python or a well-known package counts
// as the user's own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretrace {

struct SourceFrame {
  std::string_view file;
  std::string_view function;  ///< May be empty.
  int line = 0;
};

/// Parses one frame. Returns nullopt for a frame outside Python files, such as "<built-in method
/// to>" or a C++ frame.
std::optional<SourceFrame> source_frame(std::string_view text);

/// Sorted by how well a frame shows users where they are in their program, best first.
enum class CodeOrigin : std::uint8_t { user, package, framework, standard };

/// user: not installed, so probably part of the program. framework: PyTorch itself. standard: part
/// of Python.
CodeOrigin code_origin(std::string_view file);

/// The path of a file in a form that does not depend on the machine: for an installed file, the
/// part from its package on; for a notebook cell, one name for all cells. Files of the user keep
/// their path.
std::string portable_file(std::string_view file);

}  // namespace foretrace
