#include "question/memory/words.h"

#include <fmt/core.h>
#include <optional>

#include "base/numbers/scaling.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string device_heading(const MemoryReport& report) {
  if (report.device < 0) return "host memory";
  return fmt::format("device {}{}", report.device,
                     report.device_name.empty() ? "" : " (" + report.device_name + ")");
}

/// Returns a text such as "in ProfilerStep#7, 12.1 ms after its start, forward".
std::string when_text(const MemoryReport& report, const MemoryMoment& moment) {
  std::string text;
  if (!report.has_times) {
    text = "at event time " + grouped(moment.time.count());
  } else if (moment.step.empty()) {
    text = "at " + to_text(moment.time);
  } else {
    text = fmt::format("in {}, {} after its start", moment.step, to_text(moment.in_step));
  }
  if (moment.phase != Phase::none) text += fmt::format(", {}", to_string(moment.phase));
  return text;
}

std::string refusal_text(const MemoryReport& report, const ReplayedAllocator::Refused& refused) {
  // Only memory from before the recording is ever placed beyond the limit.
  if (refused.reserved > report.limit) {
    return fmt::format("{} takes {} by itself", op_and_line(refused.moment.op, refused.moment.line),
                       to_text(refused.reserved));
  }
  return fmt::format(
      "{}, {} asks for {} and is refused: {} are allocated, {} reserved, "
      "the largest free block has {}",
      when_text(report, refused.moment), op_and_line(refused.moment.op, refused.moment.line),
      to_text(refused.moment.bytes), to_text(refused.allocated), to_text(refused.reserved),
      to_text(refused.largest_free));
}

/// Describes the reserved memory and sets `most` to it: the recorded one without a limit; with a
/// limit the replayed one, because a replay that starts with an empty cache decides whether the job
/// fits.
std::string reserved_text(const MemoryReport& report, Bytes& most) {
  constexpr double kClearly = 1.05;
  const std::optional<Bytes>& recorded = report.allocator->recorded_reserved;
  const Bytes replayed = report.allocator->reserved;
  most = report.limit > Bytes{} ? replayed : recorded.value_or(replayed);
  const std::string text = fmt::format(", {} reserved", to_text(most));
  if (!recorded) return text + " (replayed)";
  const bool differs =
      static_cast<double>(recorded->count) > kClearly * static_cast<double>(replayed.count);
  if (!differs) return text;
  if (most == replayed) {
    return fmt::format(
        "{} by a replay that starts with an empty cache ({} were reserved in the recording, "
        "which explains no more)",
        text, to_text(*recorded));
  }
  return fmt::format("{} ({} by a replay that starts with an empty cache)", text,
                     to_text(replayed));
}

std::string peak_sentence(const MemoryReport& report) {
  std::string text = fmt::format("peak {} allocated", to_text(report.peak));
  Bytes most = report.peak;
  if (report.allocator) text += reserved_text(report, most);
  if (report.capacity > Bytes{}) {
    text += fmt::format("; the device has {} ({})", to_text(report.capacity),
                        share_text(most, report.capacity));
  }
  return text;
}

std::string verdict_prefix(const MemoryReport& report) {
  if (report.limit <= Bytes{}) return {};
  return fmt::format("{} in {}: ", fits(report) ? "fits" : "DOES NOT FIT", to_text(report.limit));
}

}  // namespace

bool fits(const MemoryReport& report) {
  if (report.allocator) return !report.allocator->refused;
  return report.limit <= Bytes{} || report.peak <= report.limit;
}

std::string share_text(Bytes part, Bytes whole) {
  return whole <= Bytes{} ? "-" : to_share(ratio(part, whole));
}

std::string op_and_line(std::string_view op, std::string_view line) {
  return line.empty() ? std::string(op) : fmt::format("{} ({})", op, line);
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
  lines.push_back(fmt::format("{}{}, {}{}", report.trace,
                              report.ranks.empty() ? "" : ", rank " + std::to_string(report.rank),
                              device_heading(report),
                              report.step.empty() ? "" : ", " + report.step));
  lines.push_back(verdict_prefix(report) + peak_sentence(report));
  if (report.allocator && report.allocator->refused)
    lines.push_back(refusal_text(report, *report.allocator->refused));
  const MemoryMoment& moment = report.peak_moment;
  lines.push_back(moment.op.empty()
                      ? "the peak is the level at which the window begins"
                      : fmt::format("the peak occurs {}, when {} gets {}",
                                    when_text(report, moment), op_and_line(moment.op, moment.line),
                                    to_text(moment.bytes)));
  if (!report.uses.empty() && report.peak > Bytes{}) {
    const UseRow& most = report.uses.front();
    lines.push_back(fmt::format("{} of it are {}; on average {} are in use",
                                share_text(most.at_peak, report.peak), plural(most.use),
                                to_text(report.average)));
  }
  return lines;
}

}  // namespace foretrace
