#include "analysis/place/source_line.h"

#include <algorithm>

#include "base/contains.h"
#include "base/wording.h"
#include "trace/source_frame.h"

namespace foretrace {
namespace {

constexpr std::size_t kFrameShown = 100;

/// Whether the frame belongs to the recorder, the allocator or the dispatcher, which are the
/// innermost frames of every stack.
bool is_machinery(std::string_view frame) {
  return contains_any(frame,
                      {"torch::unwind", "CapturedTraceback", "gather_with_cpp", "CachingAllocator",
                       "c10::impl", "at::detail::", "at::_ops::", "RegisterCUDA", "empty_cuda",
                       "empty_strided", "alloc_cpu", "CUDAAllocator", "wrap_kernel_functor"});
}

}  // namespace

std::string_view informative_frame(std::string_view stack) {
  std::string_view python, backward, other;
  for (std::string_view rest = stack; !rest.empty();) {
    const std::size_t end = rest.find(';');
    const std::string_view frame = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (const auto read = source_frame(frame)) {
      if (code_origin(read->file) == CodeOrigin::user) return frame;
      if (python.empty()) python = frame;
    }
    if (backward.empty() && contains(frame, "Backward") && contains(frame, "::apply"))
      backward = frame;
    if (other.empty() && !is_machinery(frame)) other = frame;
  }
  for (const std::string_view found : {python, backward, other}) {
    if (!found.empty()) return found;
  }
  return stack.substr(0, stack.find(';'));
}

std::string shown_frame(std::string_view stack) {
  std::string_view frame = informative_frame(stack);
  constexpr std::string_view kNoFile = "??:0 ";  // Functions of C++ without debug information.
  if (frame.starts_with(kNoFile)) frame.remove_prefix(kNoFile.size());
  if (frame.size() <= kFrameShown) return std::string(frame);
  // Cut the end of a C++ function, which is its signature, but the begin of a path, its folders.
  if (frame.find(".py") == std::string_view::npos) return shortened(frame, kFrameShown);
  std::size_t from = frame.size() - kFrameShown + 3;
  while (from < frame.size() && (static_cast<unsigned char>(frame[from]) & 0xc0U) == 0x80) ++from;
  return "..." + std::string(frame.substr(from));
}

}  // namespace foretrace
