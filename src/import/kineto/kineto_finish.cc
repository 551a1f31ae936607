// Everything that needs all events: the origin of time, names of lanes, sizes found at calls,
// notes.

#include <algorithm>
#include <limits>

#include "import/common/times.h"
#include "import/kineto/kineto_records.h"

namespace foretrace {

namespace {

struct OddText {
  Severity severity;
  std::string_view text;
};

constexpr OddText kOddTexts[] = {
    {Severity::warning, "events without a time, left out"},
    {Severity::warning, "events whose time is not a number, left out"},
    {Severity::warning, "events without a duration, read as 0"},
    {Severity::warning, "events whose duration is not a number, read as 0"},
    {Severity::warning, "events with a negative duration, read as 0"},
    {Severity::warning, "events at time 0, which were never timed, left out"},
    {Severity::info, "events of kinds that a trace has no place for"},
    {Severity::info, "events of an unknown category, left out"},
    {Severity::warning, "range ends without a begin, left out"},
    {Severity::warning, "range begins without an end, left out"},
    {Severity::warning, "texts that are not valid UTF-8"},
    {Severity::info, "calls with the correlation id of another call"},
    {Severity::info, "elements of the event list that are not events"},
};
static_assert(std::size(kOddTexts) == static_cast<std::size_t>(Odd::count));

}  // namespace

void KinetoRecords::finish(std::int64_t base_ns) {
  close_ranges();
  drop_unrecorded_times();
  make_times_relative(trace_, base_ns);
  fill_copy_sizes();
  count_shared_correlations();
  lanes_.finish();
  trace_.tick_ns = whole_us_ && useful_ > 0 ? 1000 : 1;
  write_notes();
}

void KinetoRecords::close_ranges() {
  for (const auto& ranges : open_) {
    for (std::size_t i = 0; i < ranges.size(); ++i) count(Odd::unclosed_begin, offset_);
  }
  open_.clear();
}

void KinetoRecords::drop_unrecorded_times() {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = kNever;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t zeros = 0;
  each_time(trace_, [&](std::int64_t time) {
    if (time == 0) {
      ++zeros;
      return;
    }
    first = std::min(first, time);
    last = std::max(last, time);
  });
  // Time 0 is valid, unless all other times are a minute and ten times their span away from it.
  constexpr std::int64_t kFar = 60'000'000'000;
  if (zeros == 0 || first == kNever || first < kFar || first / 10 <= last - first) return;
  const auto drop = [](auto& records) {
    std::erase_if(records, [](const auto& record) { return record.start_ns == 0; });
  };
  drop(trace_.hosts);
  drop(trace_.devices);
  drop(trace_.syncs);
  std::erase_if(trace_.memory, [](const MemoryRecord& record) { return record.time_ns == 0; });
  std::erase_if(trace_.links, [](const LinkRecord& record) { return record.time_ns == 0; });
  odd_[static_cast<std::size_t>(Odd::zero_time)] = {zeros, -1};
}

void KinetoRecords::fill_copy_sizes() {
  if (call_bytes_.empty()) return;
  const auto before = [](const CallBytes& a, const CallBytes& b) {
    return a.correlation < b.correlation;
  };
  std::stable_sort(call_bytes_.begin(), call_bytes_.end(), before);
  for (DeviceRecord& record : trace_.devices) {
    const bool moves = record.kind == DeviceKind::copy || record.kind == DeviceKind::fill;
    if (!moves || record.bytes != 0 || record.correlation == 0) continue;
    const CallBytes wanted{record.correlation, 0};
    const auto call = std::lower_bound(call_bytes_.begin(), call_bytes_.end(), wanted, before);
    if (call != call_bytes_.end() && call->correlation == record.correlation) {
      record.bytes = std::max<std::int64_t>(0, call->bytes);
    }
  }
}

void KinetoRecords::count_shared_correlations() {
  std::vector<std::uint32_t> ids;
  for (const HostRecord& record : trace_.hosts) {
    if (record.correlation != 0) ids.push_back(record.correlation);
  }
  if (ids.empty()) return;
  // Profilers count upwards, so one bit for each id up to the last takes less memory than the ids.
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  const std::size_t range = std::size_t{*most} - *least + 1;
  std::int64_t shared = 0;
  if (range / 64 <= ids.size()) {
    std::vector<bool> seen(range);
    const std::uint32_t first = *least;
    for (const std::uint32_t id : ids) {
      shared += seen[id - first] ? 1 : 0;
      seen[id - first] = true;
    }
  } else {
    std::sort(ids.begin(), ids.end());
    shared = ids.end() - std::unique(ids.begin(), ids.end());
  }
  odd_[static_cast<std::size_t>(Odd::shared_correlation)] = {shared, -1};
}

void KinetoRecords::write_notes() {
  for (std::size_t i = 0; i < odd_.size(); ++i) {
    const auto& [count, offset] = odd_[i];
    if (count == 0) continue;
    const std::string place = offset >= 0 ? "at byte " + std::to_string(offset) : std::string();
    trace_.notes.add(kOddTexts[i].severity, kOddTexts[i].text, place, count);
  }
}

}  // namespace foretrace
