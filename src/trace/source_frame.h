#pragma once

// Frames of Python as profilers write them, and whose code they are in.
//
//     "train.py(88): main"                                   a profiler's frames
//     "/opt/env/lib/python3.11/site-packages/x/y.py:7 f"     those of a memory snapshot
//
// PyTorch's profiler cuts the search path off in front of file names, so that "typing.py" may stand
// where a script "train.py" does; what is not by its name part of Python or of a well-known package
// counts as the user's own.

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

/// In the order in which they tell a user less and less about where he is.
enum class CodeOrigin : std::uint8_t { own, package, framework, standard };

/// framework: PyTorch itself. standard: what comes with Python.
CodeOrigin code_origin(std::string_view file);

/// Without what is in front of the package in the path of an installed file, and one name for all
/// cells of notebooks. Own files stay as they are.
std::string portable_file(std::string_view file);

}  // namespace foretrace
