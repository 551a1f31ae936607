// The clocks of host and device. A profiler converts device times to the host's clock, and is off
// by up to some tens of microseconds: kernels then start before the call that launched them. Found
// from the launches themselves: the shift is the smallest that makes all but a few of them start
// after their call began.

#include <algorithm>

#include "infer/draft.h"

namespace foretrace::infer_detail {
namespace {

constexpr std::int64_t kGreatestShift = 200'000;
/// One in this many launches may still start too early: those are odd records, not the clock.
constexpr std::size_t kStragglers = 200;

}  // namespace

void align_clocks(Draft& draft) {
  std::vector<std::int64_t> delays;
  delays.reserve(draft.by_launch.size());
  for (const std::uint32_t i : draft.by_launch) {
    delays.push_back(draft.events[i].start - draft.call_of(draft.events[i])->start);
  }
  if (delays.empty()) return;
  const auto straggler = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / kStragglers);
  std::nth_element(delays.begin(), straggler, delays.end());
  if (*straggler >= 0) return;
  draft.shift = std::min(-*straggler, kGreatestShift);
  for (DeviceEvent& event : draft.events) event.start += draft.shift, event.finish += draft.shift;
  draft.notes.add(Severity::info, "device times shifted to the host's clock by their launches",
                  to_text(Nanoseconds(draft.shift)));
}

}  // namespace foretrace::infer_detail
