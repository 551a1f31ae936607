#pragma once

#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"
#include "foretrace/trace.h"

namespace foretrace {

/// The files that an answer was made from: `path` itself, or all files of a folder, in order of
/// their paths.
std::vector<InputFile> input_files(const std::string& path, const std::vector<Trace>& traces);

/// The graph of each trace of `path`, which stands in front of what is wrong with one.
std::vector<Inference> infer_all(const std::vector<Trace>& traces, const std::string& path);

}  // namespace foretrace
