// How long recording an op takes. An op that only calls another has hardly any work of its own:
//
//     aten::t            |----------------------|
//     aten::transpose       |----------------|
//                        >--<                >--<   two gaps
//
// In the gaps the recorder notes the start of the inner op and its end, so a typical pair of them
// is what one record costs on this host, with these settings of the profiler (shapes, stacks).
// Calls and blocks of memory are recorded at about the same cost.
//
// Compared with 20 trainings on an H100 and an H200 that were timed without a profiler too and are
// bound by the host: records times this cost is 0.7 to 1.3 times the real difference in most. A gap
// also has the dispatch between the two ops, which is work, a few tenths of a microsecond.

#include "graph/recorder_time.h"

#include <algorithm>
#include <fmt/core.h>
#include <string>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/timeline.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// With fewer gaps, a typical one says nothing. Chosen.
constexpr std::size_t kMinGaps = 100;
/// In ns. Longer gaps hold more than the recorder's work: 1.9 to 3.3 us were seen where it is
/// known. Chosen, as twice that.
constexpr std::int64_t kMaxPerRecord = 7'000;

/// A larger share of a step in host work makes its length doubtful where the recorder's part is not
/// known. Chosen, as in trust.cc.
constexpr double kMuchHost = 0.2;

class Gaps {
 public:
  explicit Gaps(const HostTime& host) : host_(host) {}

  /// Reads the segments of one thread. A record begins at its first segment; the one behind it
  /// belongs to the first record inside, if there is any.
  void read(const std::vector<Segment>& segments) {
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
      const Segment& now = segments[i];
      const Segment& next = segments[i + 1];
      if (!is_op(now) || !is_op(next) || now.record == next.record) continue;
      const HostRecord& op = host_.trace.hosts[now.record];
      const HostRecord& next_op = host_.trace.hosts[next.record];
      const bool enters = now.start == op.start_ns && next.start == next_op.start_ns;
      if (enters && next.start < end_of(op)) starts_.push_back(now.finish - now.start);
      const bool leaves = now.finish == end_of(op) && next.finish == end_of(next_op);
      if (leaves && next.start > next_op.start_ns) ends_.push_back(next.finish - next.start);
    }
  }

  Nanoseconds typical_pair() {
    if (std::min(starts_.size(), ends_.size()) < kMinGaps) return Nanoseconds(0);
    const std::int64_t pair = median(starts_) + median(ends_);
    return Nanoseconds(pair <= kMaxPerRecord ? pair : 0);
  }

 private:
  static std::int64_t end_of(const HostRecord& record) {
    return record.start_ns + record.duration_ns;
  }

  static std::int64_t median(std::vector<std::int64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  /// Only PyTorch's own operators are known to call each other at once.
  bool is_op(const Segment& segment) const {
    return segment.record != kNone &&
           host_.name(host_.trace.hosts[segment.record]).starts_with("aten::");
  }

  const HostTime& host_;
  std::vector<std::int64_t> starts_{}, ends_{};
};

}  // namespace

Nanoseconds measure_recorder(const HostTime& host) {
  // Nobody recorded what a program made up.
  if (host.trace.metadata.contains("synthetic")) return Nanoseconds(0);
  Gaps gaps(host);
  for (const std::vector<Segment>& segments : host.segments) gaps.read(segments);
  return gaps.typical_pair();
}

void note_unknown_recorder_time(const Trace& trace, Inference& result) {
  const bool is_from_cupti = trace.format == "collect" || trace.format == "nsys";
  if (!is_from_cupti || result.graph.unexplained().per_record > 0ns) return;
  const StepTimes times = step_times(result.graph, result.recorded);
  const double share = ratio(breakdown(result.graph, result.recorded).host, times.step_time);
  if (share <= kMuchHost) return;
  result.graph.unexplained().shortcomings.push_back(
      {.name = std::string(kRecorderReason),
       .text = fmt::format(
           "{} of the step is host work, which recording its calls made longer by an unknown part "
           "(steps of such trainings, timed without it too, were recorded 11 to 74 % too long)",
           to_share(share)),
       .share = share});
}

}  // namespace foretrace::infer_detail
