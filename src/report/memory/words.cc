#include "report/memory/words.h"

#include <optional>

#include "base/numbers/scaling.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

std::string device_text(const MemoryReport& report) {
  if (report.device < 0) return "host memory";
  return "device " + std::to_string(report.device) +
         (report.device_name.empty() ? "" : " (" + report.device_name + ")");
}

/// Returns a text such as "in ProfilerStep#7, 12.1 ms after its start, forward".
std::string when_text(const MemoryReport& report, const MemoryMoment& moment) {
  std::string text;
  if (!report.has_times) {
    text = "at event time " + grouped(moment.time.count());
  } else if (moment.step.empty()) {
    text = "at " + to_text(moment.time);
  } else {
    text = "in " + moment.step + ", " + to_text(moment.in_step) + " after its start";
  }
  if (moment.phase != Phase::none) text += ", " + std::string(to_string(moment.phase));
  return text;
}

std::string refusal_text(const MemoryReport& report, const ReplayedAllocator::Refused& refused) {
  // Only memory from before the recording is ever placed beyond the limit.
  if (refused.reserved > report.limit) {
    return who_text(refused.moment.op, refused.moment.line) + " takes " +
           to_text(refused.reserved) + " by itself";
  }
  return when_text(report, refused.moment) + ", " +
         who_text(refused.moment.op, refused.moment.line) + " asks for " +
         to_text(refused.moment.bytes) + " and is refused: " + to_text(refused.allocated) +
         " are allocated, " + to_text(refused.reserved) + " reserved, the largest free block has " +
         to_text(refused.largest_free);
}

/// Describes the reserved memory and sets `most` to it: the recorded one without a limit; with a
/// limit the replayed one, because a replay that starts with an empty cache decides whether the job
/// fits.
std::string reserved_text(const MemoryReport& report, Bytes& most) {
  constexpr double kClearly = 1.05;
  const std::optional<Bytes>& recorded = report.allocator->recorded_reserved;
  const Bytes replayed = report.allocator->reserved;
  most = report.limit > Bytes{} ? replayed : recorded.value_or(replayed);
  const std::string text = ", " + to_text(most) + " reserved";
  if (!recorded) return text + " (replayed)";
  const bool differs =
      static_cast<double>(recorded->count) > kClearly * static_cast<double>(replayed.count);
  if (!differs) return text;
  if (most == replayed) {
    return text + " by a replay that starts with an empty cache (" + to_text(*recorded) +
           " were reserved in the recording, which explains no more)";
  }
  return text + " (" + to_text(replayed) + " by a replay that starts with an empty cache)";
}

std::string fullness(const MemoryReport& report) {
  std::string text = "peak " + to_text(report.peak) + " allocated";
  Bytes most = report.peak;
  if (report.allocator) text += reserved_text(report, most);
  if (report.capacity > Bytes{}) {
    text += "; the device has " + to_text(report.capacity) + " (" +
            share_text(most, report.capacity) + ")";
  }
  return text;
}

std::string verdict_word(const MemoryReport& report) {
  if (report.limit <= Bytes{}) return {};
  return (fits(report) ? "fits in " : "DOES NOT FIT in ") + to_text(report.limit) + ": ";
}

}  // namespace

bool fits(const MemoryReport& report) {
  if (report.allocator) return !report.allocator->refused;
  return report.limit <= Bytes{} || report.peak <= report.limit;
}

std::string share_text(Bytes part, Bytes whole) {
  return whole <= Bytes{} ? "-" : to_share(ratio(part, whole));
}

std::string who_text(std::string_view op, std::string_view line) {
  return std::string(op) + (line.empty() ? "" : " (" + std::string(line) + ")");
}

std::string_view plural(MemoryUse use) {
  switch (use) {
    case MemoryUse::unknown:
      return "blocks of unknown use";
    case MemoryUse::parameter:
      return "parameters";
    case MemoryUse::gradient:
      return "gradients";
    case MemoryUse::optimizer_state:
      return "optimizer state";
    case MemoryUse::activation:
      return "activations";
    case MemoryUse::temporary:
      return "temporaries";
    case MemoryUse::workspace:
      return "workspaces";
    case MemoryUse::input:
      return "inputs";
  }
  return "";
}

std::vector<std::string> verdict_lines(const MemoryReport& report) {
  std::vector<std::string> lines;
  lines.push_back(report.trace +
                  (report.ranks.empty() ? "" : ", rank " + std::to_string(report.rank)) + ", " +
                  device_text(report) + (report.step.empty() ? "" : ", " + report.step));
  lines.push_back(verdict_word(report) + fullness(report));
  if (report.allocator && report.allocator->refused)
    lines.push_back(refusal_text(report, *report.allocator->refused));
  const MemoryMoment& moment = report.peak_moment;
  lines.push_back(moment.op.empty()
                      ? "the peak is the level at which the window begins"
                      : "the peak occurs " + when_text(report, moment) + ", when " +
                            who_text(moment.op, moment.line) + " gets " + to_text(moment.bytes));
  if (!report.uses.empty() && report.peak > Bytes{}) {
    const UseRow& most = report.uses.front();
    lines.push_back(share_text(most.at_peak, report.peak) + " of it are " +
                    std::string(plural(most.use)) + "; on average " + to_text(report.average) +
                    " are in use");
  }
  return lines;
}

}  // namespace foretrace
