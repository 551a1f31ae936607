#include "trace/launch_call.h"

namespace foretrace {

bool launches_kernel(std::string_view call) {
  return call.find("LaunchKernel") != call.npos ||
         call.find("LaunchCooperativeKernel") != call.npos;
}

}  // namespace foretrace
