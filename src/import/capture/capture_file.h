#pragma once

// Recordings of how an engine captured its graphs, as vLLM and SGLang write them. Work that is
// captured does not run, so there are calls and ops, but no kernels:
//
//     capture_8192_PIECEWISE                             a section: one size of batches
//       begin capture |addmm  topk| end capture          a root: one graph
//       begin capture |addmm      | end capture

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// A launch while a graph was captured. Names are those of the recording of the capture.
struct GraphLaunch {
  NameId kernel{};  ///< Empty if the recorder does not name it.
  CapturedNode node{};
};

struct CaptureSection {
  std::int64_t size = 0;  ///< Tokens; 0 if unknown.
  std::vector<std::vector<GraphLaunch>> roots;
};

struct CaptureFile {
  Trace trace;
  std::vector<CaptureSection> sections;
};

/// The name of the list of captures that lies beside them.
inline constexpr const char* kCaptureIndex = "execution_details.json";

/// By the name of a file: the size of its batches, as the list of captures in a folder says; empty
/// if there is no such list. Another tool writes other lists under this name.
std::map<std::string, std::int64_t> read_capture_index(const std::string& folder);

/// Whether graphs are captured in the trace, and none is launched.
bool is_capture(const Trace& trace);

/// Finds what is captured. Throws TraceError if the recording is not whole or contradicts itself.
CaptureFile capture_in(Trace trace, const std::map<std::string, std::int64_t>& sizes);

}  // namespace foretrace
