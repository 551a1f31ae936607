// Writes the notes about odd parts of a snapshot and about gaps in its history.

#include <fmt/core.h>

#include "import/torch_memory/torch_memory.h"

namespace foretrace {

namespace {

std::string on_device(std::int32_t device, std::int64_t bytes) {
  return fmt::format("device {}: {}", device, to_text(Bytes{bytes}));
}

}  // namespace

void SnapshotReader::fill_all_levels() {
  Notes& notes = trace_.notes;
  for (const DeviceHistory& history : histories_) {
    const HistoryFit fit = fill_levels(history, rules_, trace_);
    if (history.first == history.last) continue;
    const std::string start = on_device(history.device, fit.start_allocated);
    if (fit.start_allocated > 0 || fit.start_reserved > 0) {
      notes.add(
          Severity::info,
          "the history begins when memory was already in use: it was switched on late, or "
          "kept only the last entries (max_entries)",
          fmt::format("{} allocated, {} reserved", start, to_text(Bytes{fit.start_reserved})));
    }
    if (fit.mismatched_bytes != 0) {
      notes.add(Severity::warning,
                "entries are missing: the history does not lead to the state of the snapshot",
                on_device(history.device, fit.mismatched_bytes) + " off");
    }
    if (fit.entries_missing > 0) {
      notes.add(Severity::warning, "events that contradict those before them",
                "device " + std::to_string(history.device), fit.entries_missing);
    }
    if (fit.other_sizes > 0) {
      notes.add(Severity::info,
                "blocks whose size differs from the allocator's rules; levels during the history "
                "are approximate",
                "device " + std::to_string(history.device), fit.other_sizes);
    }
  }
}

void SnapshotReader::write_notes() {
  const auto note = [&](Oddity oddity, std::string_view text,
                        Severity severity = Severity::warning) {
    const auto& [times, first] = odd_[static_cast<std::size_t>(oddity)];
    if (times > 0) trace_.notes.add(severity, text, first, times);
  };
  note(Oddity::no_dict, "elements that are not dicts, left out");
  note(Oddity::no_address, "elements without an address, left out");
  note(Oddity::bad_size, "elements of an impossible size, left out");
  note(Oddity::bad_device, "elements of an impossible device, left out");
  note(Oddity::unknown_action, "events of an unknown action, left out");
  note(Oddity::unknown_state, "blocks in an unknown state, left out");
  note(Oddity::no_time, "elements without a time");
  note(Oddity::bad_time, "elements with an impossible time");
  note(Oddity::uncovered, "segments whose blocks do not add up to their size");
  note(Oddity::shared, "lists that occur twice, read once");
  note(Oddity::repeated, "lists that repeat elements too often, cut off");
  note(Oddity::unpaired, "annotations without a beginning or an end, left out");
  if (stacks_.left_out() > 0)
    trace_.notes.add(Severity::warning, "stacks that are longer than the file allows, left out", {},
                     stacks_.left_out());
  if (lacks_history(trace_)) trace_.notes.add(Severity::info, kNoHistory);
  if (!trace_.has_times && !trace_.memory.empty()) {
    trace_.notes.add(Severity::info, "the events have no times; their order is known", {},
                     std::ssize(trace_.memory));
  } else if (timed_ > 0 && untimed_ > 0) {
    trace_.notes.add(Severity::warning, "events without a time, given the time of the event before",
                     {}, untimed_);
  }
}

}  // namespace foretrace
