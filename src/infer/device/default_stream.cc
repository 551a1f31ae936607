// The legacy default stream of a device: its work waits for everything launched before it on the
// blocking streams, and work launched on them later waits for it (CUDA C++ Programming Guide,
// "Default Stream"). Streams created as non-blocking are exempt.
//
//     blocking      |==A==|         |==C==|
//     default             |==B==|
//     non-blocking     |=====D=====|
//
// If the flags of streams are recorded, they decide. Otherwise a stream counts as blocking only if
// its work and that of the default stream never broke the rule, and if the rule is the only
// explanation of many starts: no call ordered the two between their launches, they do not share a
// copy engine, and the device had room. If a trace has no call at all that orders streams, such
// calls may just not have been recorded, so nothing is concluded from it.
//
// Ignored: work of CUDA graphs, and devices with several contexts, each of which has its own
// default stream.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/contains.h"
#include "infer/passes.h"
#include "trace/stream_flags.h"

namespace foretrace::infer_detail {
namespace {

/// Number of starts that only this rule explains before a stream counts as blocking. Chosen.
constexpr std::size_t kEnough = 8;

/// Evidence for the rule about one stream and the default stream of its device.
struct StreamTally {
  std::vector<EventWait> waits;
  std::size_t broken = 0;  ///< Starts that violate the rule.
  std::size_t shown = 0;   ///< Starts that only the rule explains.
};

/// State of a device while launches are visited in order.
struct DeviceState {
  std::uint32_t null_stream = kNone;
  bool is_recorded = false;
  std::uint32_t last_null = kNone;     ///< Last event on the default stream.
  std::vector<std::uint16_t> changed;  ///< Streams with work launched since then.
};

struct StreamState {
  bool takes_part = false;
  std::uint32_t last = kNone;     ///< Last event on the stream.
  std::uint32_t awaited = kNone;  ///< The last default-stream event that it waits for.
  bool changed = false;
};

bool orders_streams(std::string_view call) {
  return contains_any(call, {"WaitEvent", "LaunchHostFunc", "AddCallback", "WaitValue",
                             "GraphLaunch", "BatchMemOp"});
}

class DefaultStreams {
 public:
  DefaultStreams(const Records& records, const TypicalDelays& typical)
      : records_(records), typical_(typical), tallies_(records.trace.streams.size()) {
    choose_streams();
  }

  void find(EventWaits& waits, Notes& notes, Assumptions& assumptions) {
    const bool any = std::any_of(devices_.begin(), devices_.end(), [](const auto& device) {
      return device.second.null_stream != kNone;
    });
    if (!any) return;
    find_ordering_calls();
    for (const std::uint32_t i : records_.by_launch) launch(i);
    for (const auto& [ordinal, device] : devices_) {
      add_waits(ordinal, device, waits, notes, assumptions);
    }
  }

 private:
  void choose_streams() {
    const std::vector<Stream>& all = records_.trace.streams;
    const std::vector<StreamFlag> flags = stream_flags(records_.trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (flags[i] != StreamFlag::unknown) devices_[all[i].device].is_recorded = true;
    }
    std::map<std::int32_t, std::size_t> nulls;
    for (std::size_t i = 0; i < all.size(); ++i) {
      DeviceState& device = devices_[all[i].device];
      if (device.is_recorded ? flags[i] == StreamFlag::null : is_default(all, i)) {
        device.null_stream = ++nulls[all[i].device] == 1 ? static_cast<std::uint32_t>(i) : kNone;
      }
    }
    streams_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const DeviceState& device = devices_[all[i].device];
      streams_[i].takes_part =
          device.null_stream != kNone &&
          (i == device.null_stream || !device.is_recorded || flags[i] == StreamFlag::blocking);
    }
  }

  /// Decides by number if nothing else is known: the default stream of the first context is 7 in
  /// CUPTI and 0 in HIP.
  static bool is_default(const std::vector<Stream>& all, std::size_t stream) {
    if (all[stream].id == 7) return true;
    return all[stream].id == 0 && std::none_of(all.begin(), all.end(), [&](const Stream& other) {
             return other.id == 7 && other.device == all[stream].device;
           });
  }

  void find_ordering_calls() {
    const Trace& trace = records_.trace;
    std::vector<char> orders(trace.names.size(), 0);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      orders[i] = orders_streams(trace.names[static_cast<NameId>(i)]) ? 1 : 0;
    }
    for (const HostRecord& record : trace.hosts) {
      if (!is_call(record.kind)) continue;
      if (orders[static_cast<std::size_t>(record.name)] != 0) ordering_.push_back(record.start_ns);
    }
    std::sort(ordering_.begin(), ordering_.end());
  }

  void launch(std::uint32_t i) {
    const DeviceEvent& event = records_.events[i];
    StreamState& stream = streams_[event.stream];
    if (!stream.takes_part || records_.trace.devices[event.record].graph_node != 0) return;
    DeviceState& device = devices_[records_.trace.streams[event.stream].device];
    if (event.stream == device.null_stream) {
      for (const std::uint16_t other : device.changed) {
        note(device, other, i, streams_[other].last);
        streams_[other].changed = false;
      }
      device.changed.clear();
      device.last_null = i;
      return;
    }
    if (device.last_null != kNone && stream.awaited != device.last_null) {
      note(device, event.stream, i, device.last_null);
    }
    stream.awaited = device.last_null;
    stream.last = i;
    if (!stream.changed) device.changed.push_back(event.stream);
    stream.changed = true;
  }

  /// Records that `after` waits for `before` if `stream` is blocking.
  void note(const DeviceState& device, std::uint16_t stream, std::uint32_t after,
            std::uint32_t before) {
    const Call& first = *records_.call_of(records_.events[before]);
    const Call& second = *records_.call_of(records_.events[after]);
    // The order of launches from two threads is unknown while both were in their calls.
    if (first.thread != second.thread && first.finish > second.start) return;
    StreamTally& tally = tallies_[stream];
    if (records_.events[before].finish > records_.events[after].start + records_.tolerance) {
      ++tally.broken;
      return;
    }
    if (!device.is_recorded && only_rule_explains(after, before)) ++tally.shown;
    tally.waits.push_back({after, before,
                           device.is_recorded ? Provenance::structural : Provenance::inferred,
                           Rule::default_stream});
  }

  bool only_rule_explains(std::uint32_t after, std::uint32_t before) const {
    const DeviceEvent& first = records_.events[before];
    const DeviceEvent& second = records_.events[after];
    const std::int64_t launched = records_.call_of(second)->finish;
    if (launched + typical_.launch_fence > first.finish) return false;
    if (second.start - first.finish > kRightBehind + records_.tolerance) return false;
    const bool has_line = after > records_.streams[second.stream].first;
    if (has_line && records_.events[after - 1].finish + typical_.gap_fence > first.finish) {
      return false;
    }
    const auto call =
        std::lower_bound(ordering_.begin(), ordering_.end(), records_.call_of(first)->start);
    if (call != ordering_.end() && *call <= launched) return false;
    const bool kernels = first.kind == TaskKind::kernel && second.kind == TaskKind::kernel;
    if (kernels) return leaves_room(records_, first);
    return first.kind == TaskKind::kernel || second.kind == TaskKind::kernel;
  }

  void add_waits(std::int32_t ordinal, const DeviceState& device, EventWaits& waits, Notes& notes,
                 Assumptions& assumptions) const {
    std::size_t streams = 0, broken = 0, shown = 0;
    std::string stream_ids;
    for (std::size_t i = 0; i < tallies_.size(); ++i) {
      const StreamTally& tally = tallies_[i];
      if (tally.waits.empty() || records_.trace.streams[i].device != ordinal) continue;
      const bool is_blocking = !ordering_.empty() && tally.broken == 0 && tally.shown >= kEnough;
      if (!device.is_recorded && !is_blocking) continue;
      ++streams, broken += tally.broken, shown += tally.shown;
      stream_ids += (stream_ids.empty() ? "" : ", ") + std::to_string(records_.trace.streams[i].id);
      waits.insert(waits.end(), tally.waits.begin(), tally.waits.end());
    }
    if (streams == 0) return;
    if (broken > 0) {
      notes.add(Severity::info,
                "starts that did not wait for the default stream, or that it did not wait "
                "for, although the stream flags require it",
                {}, static_cast<std::int64_t>(broken));
    }
    assumptions.push_back(device.is_recorded ? recorded_text(ordinal, stream_ids)
                                             : inferred_text(ordinal, stream_ids, shown));
  }

  static std::string recorded_text(std::int32_t ordinal, const std::string& stream_ids) {
    return fmt::format(
        "The default stream of device {} and its blocking streams wait for each other, in order of "
        "launch (stream {}); the recording shows how the streams were created.",
        ordinal, stream_ids);
  }

  static std::string inferred_text(std::int32_t ordinal, const std::string& stream_ids,
                                   std::size_t shown) {
    return fmt::format(
        "The default stream of device {} and blocking streams are assumed to wait for each other "
        "(stream {}): their work never overlapped, and nothing else explains {} starts. The "
        "recording does not show how the streams were created; if they are non-blocking, what-ifs "
        "overlap too little.",
        ordinal, stream_ids, shown);
  }

  const Records& records_;
  const TypicalDelays& typical_;
  std::map<std::int32_t, DeviceState> devices_;  ///< By ordinal.
  std::vector<StreamState> streams_;
  std::vector<StreamTally> tallies_;    ///< By stream.
  std::vector<std::int64_t> ordering_;  ///< Start times of calls that order streams.
};

}  // namespace

void find_default_stream_waits(const Records& records, const TypicalDelays& typical,
                               EventWaits& waits, Notes& notes, Assumptions& assumptions) {
  DefaultStreams(records, typical).find(waits, notes, assumptions);
}

}  // namespace foretrace::infer_detail
