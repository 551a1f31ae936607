#pragma once

// Frames of Python as profilers write them, and the origin of their code.
//
//     "train.py(88): main"                                   a profiler's frames
//     "/opt/env/lib/python3.11/site-packages/x/y.py:7 f"     those of a memory snapshot
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

/// Nothing for frames that are not of a Python file: "<built-in method to>", frames of C++.
std::optional<SourceFrame> source_frame(std::string_view text);

/// Sorted by how much they show users about their place in the program, most first.
enum class CodeOrigin : std::uint8_t { own, package, framework, standard };

/// framework: PyTorch itself. standard: part of Python.
CodeOrigin code_origin(std::string_view file);

/// The path without the part before the package of an installed file, and one name for all cells of
/// notebooks. Own files stay as they are.
std::string portable_file(std::string_view file);

}  // namespace foretrace
