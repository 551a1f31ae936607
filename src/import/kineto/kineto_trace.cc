#include "import/kineto/kineto_trace.h"

#include "import/common/times.h"

namespace foretrace {

namespace {

struct KinetoOddityNote {
  Severity severity;
  std::string_view text;
};

constexpr KinetoOddityNote kOddityNotes[] = {
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
    {Severity::warning, "strings that are not valid UTF-8"},
    {Severity::info, "calls with the correlation id of another call"},
    {Severity::warning, "exact copies of events, left out"},
    {Severity::info, "elements of the event list that are not events"},
};
static_assert(std::size(kOddityNotes) == static_cast<std::size_t>(KinetoOddity::count));

}  // namespace

void KinetoTrace::count_at(KinetoOddity oddity, std::int64_t offset, std::int64_t times) {
  auto& [count, first] = odd_[static_cast<std::size_t>(oddity)];
  if (count == 0) first = offset;
  count += times;
}

void KinetoTrace::write_notes() const {
  for (std::size_t i = 0; i < odd_.size(); ++i) {
    const auto& [count, offset] = odd_[i];
    if (count == 0) continue;
    const std::string place = offset >= 0 ? "at byte " + std::to_string(offset) : std::string();
    trace.notes.add(kOddityNotes[i].severity, kOddityNotes[i].text, place, count);
  }
}

bool KinetoTrace::read_start(const KinetoEvent& event, std::int64_t& start) {
  if (!event.has(Field::start)) return count(KinetoOddity::no_time), false;
  ExactTime time;
  if (!to_nanoseconds(event[Field::start], kMaxTime, time))
    return count(KinetoOddity::bad_time), false;
  whole_us_ &= time.whole_us;
  start = time.ns;
  return true;
}

std::int64_t KinetoTrace::read_duration(const KinetoEvent& event) {
  if (!event.has(Field::duration)) return count(KinetoOddity::no_duration), 0;
  ExactTime time;
  if (!to_nanoseconds(event[Field::duration], kMaxDuration, time))
    return count(KinetoOddity::bad_duration), 0;
  if (time.ns < 0) return count(KinetoOddity::negative_duration), 0;
  whole_us_ &= time.whole_us;
  return time.ns;
}

NameId KinetoTrace::name(const KinetoEvent& event, Field field) {
  if (!event.has(field)) return {};
  const JsonValue& value = event[field];
  if (value.kind == ValueKind::literal && value.view() == "null") return NameId{};
  const bool decode =
      value.kind == ValueKind::text ? value.escaped || value.non_ascii : value.non_ascii;
  if (!decode) return intern_.intern(value.view());
  std::int64_t invalid = 0;
  const std::string text = decode_text(value, invalid);
  if (invalid > 0) count(KinetoOddity::invalid_text);
  return intern_.intern(text);
}

std::uint16_t KinetoTrace::thread_of(const KinetoEvent& event) {
  return lanes.thread(event.has(Field::pid) ? lanes.identity(event[Field::pid]) : 0,
                      event.has(Field::tid) ? lanes.identity(event[Field::tid]) : 0);
}

std::int64_t KinetoTrace::device_of(const KinetoEvent& event) {
  if (event.has(Field::device) && is_integer(event[Field::device]))
    return to_integer(event[Field::device]);
  return event.has(Field::pid) ? lanes.identity(event[Field::pid]) : 0;
}

std::uint16_t KinetoTrace::stream_of(const KinetoEvent& event) {
  const Field field = event.has(Field::stream) ? Field::stream : Field::tid;
  return lanes.stream(device_of(event), event.has(field) ? lanes.identity(event[field]) : 0);
}

}  // namespace foretrace
