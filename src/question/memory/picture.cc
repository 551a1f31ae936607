#include "question/memory/picture.h"

#include <algorithm>
#include <fmt/core.h>
#include <vector>

namespace foretrace {
namespace {

struct PicturedRange {
  Nanoseconds from{0}, to{0};
  std::string step;
};

PicturedRange pictured_range(const MemoryReport& report) {
  PicturedRange range{report.from, report.to, report.step};
  if (!report.step.empty()) return range;
  const Nanoseconds peak = report.peak_moment.time;
  for (std::size_t i = 0; i < report.step_begins.size(); ++i) {
    const auto& step = report.step_begins[i];
    const bool is_last = i + 1 == report.step_begins.size();
    const Nanoseconds end = is_last ? report.to : report.step_begins[i + 1].time;
    if (peak >= step.time && (peak < end || is_last)) return {step.time, end, step.name};
  }
  return range;
}

/// The curve to draw. Its times are those of the recording, or event numbers instead.
struct DrawnCurve {
  Nanoseconds from{0}, to{0};
  std::vector<MemoryCurve::Point> curve;  ///< The first point is at `from` or before.
  std::vector<std::pair<Nanoseconds, Phase>> phases;
};

DrawnCurve curve_over_time(const MemoryReport& report, const PicturedRange& range) {
  DrawnCurve drawn{range.from, range.to, {}, report.phase_begins};
  for (const MemoryCurve::Point& point : report.curve) {
    if (point.time > range.to) break;
    if (point.time <= range.from) drawn.curve.clear();
    drawn.curve.push_back(point);
  }
  return drawn;
}

/// Whether nearly all points fall into a few columns, which happens if the host runs far ahead.
bool is_crowded(const DrawnCurve& drawn, std::size_t columns) {
  constexpr std::size_t kFew = 8;
  if (drawn.curve.size() < kFew || drawn.to <= drawn.from) return false;
  const Nanoseconds width = (drawn.to - drawn.from) / static_cast<std::int64_t>(columns) + 1ns;
  std::size_t used = 0;
  std::int64_t last = -1;
  for (const MemoryCurve::Point& point : drawn.curve) {
    const std::int64_t column = (point.time - drawn.from) / width;
    used += column != last ? 1 : 0, last = column;
  }
  return used * kFew <= columns;
}

DrawnCurve curve_over_events(const DrawnCurve& timed) {
  DrawnCurve drawn{0ns, Nanoseconds(std::ssize(timed.curve)), timed.curve, timed.phases};
  for (std::size_t i = 0; i < drawn.curve.size(); ++i)
    drawn.curve[i].time = Nanoseconds(static_cast<std::int64_t>(i));
  for (auto& [time, phase] : drawn.phases) {
    const auto at = std::lower_bound(
        timed.curve.begin(), timed.curve.end(), time,
        [](const MemoryCurve::Point& point, Nanoseconds value) { return point.time < value; });
    time = Nanoseconds(at - timed.curve.begin());
  }
  return drawn;
}

char letter(Phase phase) {
  constexpr std::string_view kLetters = ".IFBU";  // Indexed by Phase.
  return kLetters[static_cast<std::size_t>(phase)];
}

/// Returns the time at which a column ends.
Nanoseconds column_end(const DrawnCurve& drawn, std::size_t column, std::size_t columns) {
  const double share = static_cast<double>(column + 1) / static_cast<double>(columns);
  return drawn.from + scaled(drawn.to - drawn.from, share);
}

std::vector<Bytes> column_levels(const DrawnCurve& drawn, std::size_t columns) {
  std::vector<Bytes> most(columns);
  std::size_t at = 0;
  const auto& curve = drawn.curve;
  Nanoseconds from = drawn.from;
  for (std::size_t column = 0; column < columns; ++column) {
    const Nanoseconds end = column_end(drawn, column, columns);
    while (at + 1 < curve.size() && curve[at + 1].time <= from) ++at;
    most[column] = curve[at].allocated;
    for (std::size_t i = at + 1; i < curve.size() && curve[i].time < end; ++i)
      most[column] = std::max(most[column], curve[i].allocated), at = i;
    if (column + 1 == columns && at + 1 < curve.size() && curve[at + 1].time <= drawn.to)
      most[column] = std::max(most[column], curve[at + 1].allocated);
    from = end;
  }
  return most;
}

std::string phase_letters(const DrawnCurve& drawn, std::size_t columns) {
  std::string letters;
  Nanoseconds from = drawn.from;
  for (std::size_t column = 0; column < columns; ++column) {
    Phase phase = Phase::none;
    for (const auto& [time, begun] : drawn.phases) {
      if (time <= from) phase = begun;
    }
    letters += letter(phase);
    from = column_end(drawn, column, columns);
  }
  return letters;
}

/// Returns the level at which the scale begins: 0, or the lowest level if that is more than half of
/// the highest.
Bytes scale_begin(const std::vector<Bytes>& levels) {
  const Bytes least = *std::min_element(levels.begin(), levels.end());
  const Bytes most = *std::max_element(levels.begin(), levels.end());
  return least.count * 2 > most.count && least < most ? least : Bytes{};
}

}  // namespace

bool is_crowded(const MemoryReport& report) {
  return is_crowded(curve_over_time(report, pictured_range(report)), kPictureColumns);
}

std::string pictured_range_text(const MemoryReport& report) {
  const PicturedRange range = pictured_range(report);
  return fmt::format("{}, {}{}", range.step.empty() ? "the recording" : range.step,
                     to_text(range.to - range.from),
                     is_crowded(report) ? ", in order of events as the host runs far ahead" : "");
}

std::string level_picture(const MemoryReport& report, std::size_t columns, std::size_t rows) {
  const PicturedRange range = pictured_range(report);
  if (range.to <= range.from || report.curve.empty()) return {};
  DrawnCurve drawn = curve_over_time(report, range);
  if (drawn.curve.empty()) return {};
  if (is_crowded(drawn, columns)) drawn = curve_over_events(drawn);
  const std::vector<Bytes> levels = column_levels(drawn, columns);
  const Bytes most = *std::max_element(levels.begin(), levels.end());
  if (most <= Bytes{}) return {};
  const Bytes least = scale_begin(levels);
  const auto height = [&](Bytes level) {
    // If the axis does not begin at 0, one row is always filled, so that the lowest level is
    // visible.
    const double share =
        static_cast<double>((level - least).count) / static_cast<double>((most - least).count);
    const std::size_t first = least > Bytes{} ? 1 : 0;
    return first + static_cast<std::size_t>(share * static_cast<double>(rows - first) + 0.5);
  };
  const std::string top = to_text(most), bottom = least > Bytes{} ? to_text(least) : "0";
  const std::size_t label = std::max(top.size(), bottom.size());
  std::string picture;
  for (std::size_t row = rows; row > 0; --row) {
    const std::string mark = row == rows ? top : row == 1 && least > Bytes{} ? bottom : "";
    std::string line = fmt::format("{:>{}} |", mark, label);
    for (const Bytes level : levels) line += height(level) >= row ? '#' : ' ';
    line.erase(line.find_last_not_of(' ') + 1);
    picture += line + '\n';
  }
  picture +=
      fmt::format("{:>{}} +{}\n", least > Bytes{} ? "" : "0", label, std::string(columns, '-'));
  const std::string letters = phase_letters(drawn, columns);
  if (letters.find_first_not_of('.') != std::string::npos)
    picture += fmt::format("{:>{}}  {}\n", "", label, letters);
  return picture;
}

}  // namespace foretrace
