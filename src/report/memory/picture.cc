#include "report/memory/picture.h"

#include <algorithm>
#include <fmt/core.h>
#include <vector>

namespace foretrace {
namespace {

struct Stretch {
  Nanoseconds from{0}, to{0};
  std::string step;
};

Stretch pictured(const MemoryReport& report) {
  Stretch stretch{report.from, report.to, report.step};
  if (!report.step.empty()) return stretch;
  const Nanoseconds peak = report.peak_moment.time;
  for (std::size_t i = 0; i < report.step_begins.size(); ++i) {
    const auto& step = report.step_begins[i];
    const bool is_last = i + 1 == report.step_begins.size();
    const Nanoseconds end = is_last ? report.to : report.step_begins[i + 1].time;
    if (peak >= step.time && (peak < end || is_last)) return {step.time, end, step.name};
  }
  return stretch;
}

/// The curve to draw. Its times are those of the recording, or event numbers instead.
struct Drawn {
  Nanoseconds from{0}, to{0};
  std::vector<MemoryCurve::Point> curve;  ///< The first point is at `from` or before.
  std::vector<std::pair<Nanoseconds, Phase>> phases;
};

Drawn by_time(const MemoryReport& report, const Stretch& stretch) {
  Drawn drawn{stretch.from, stretch.to, {}, report.phase_begins};
  for (const MemoryCurve::Point& point : report.curve) {
    if (point.time > stretch.to) break;
    if (point.time <= stretch.from) drawn.curve.clear();
    drawn.curve.push_back(point);
  }
  return drawn;
}

/// Whether nearly all points fall into a few columns, which happens if the host runs far ahead.
bool is_crowded(const Drawn& drawn, std::size_t columns) {
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

Drawn by_event(const Drawn& timed) {
  Drawn drawn{0ns, Nanoseconds(std::ssize(timed.curve)), timed.curve, timed.phases};
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
Nanoseconds column_end(const Drawn& stretch, std::size_t column, std::size_t columns) {
  const double share = static_cast<double>(column + 1) / static_cast<double>(columns);
  return stretch.from + scaled(stretch.to - stretch.from, share);
}

std::vector<Bytes> column_levels(const Drawn& stretch, std::size_t columns) {
  std::vector<Bytes> most(columns);
  std::size_t at = 0;
  const auto& curve = stretch.curve;
  Nanoseconds from = stretch.from;
  for (std::size_t column = 0; column < columns; ++column) {
    const Nanoseconds end = column_end(stretch, column, columns);
    while (at + 1 < curve.size() && curve[at + 1].time <= from) ++at;
    most[column] = curve[at].allocated;
    for (std::size_t i = at + 1; i < curve.size() && curve[i].time < end; ++i)
      most[column] = std::max(most[column], curve[i].allocated), at = i;
    if (column + 1 == columns && at + 1 < curve.size() && curve[at + 1].time <= stretch.to)
      most[column] = std::max(most[column], curve[at + 1].allocated);
    from = end;
  }
  return most;
}

std::string phase_letters(const Drawn& stretch, std::size_t columns) {
  std::string letters;
  Nanoseconds from = stretch.from;
  for (std::size_t column = 0; column < columns; ++column) {
    Phase phase = Phase::none;
    for (const auto& [time, begun] : stretch.phases) {
      if (time <= from) phase = begun;
    }
    letters += letter(phase);
    from = column_end(stretch, column, columns);
  }
  return letters;
}

/// Returns the level at which the scale begins: 0, or the lowest level if that is more than half of
/// the highest.
Bytes foot(const std::vector<Bytes>& levels) {
  const Bytes least = *std::min_element(levels.begin(), levels.end());
  const Bytes most = *std::max_element(levels.begin(), levels.end());
  return least.count * 2 > most.count && least < most ? least : Bytes{};
}

}  // namespace

bool is_crowded(const MemoryReport& report) {
  return is_crowded(by_time(report, pictured(report)), kPictureColumns);
}

std::string pictured_stretch(const MemoryReport& report) {
  const Stretch stretch = pictured(report);
  return fmt::format("{}, {}{}", stretch.step.empty() ? "the recording" : stretch.step,
                     to_text(stretch.to - stretch.from),
                     is_crowded(report) ? ", in order of events as the host runs far ahead" : "");
}

std::string level_picture(const MemoryReport& report, std::size_t columns, std::size_t rows) {
  const Stretch stretch = pictured(report);
  if (stretch.to <= stretch.from || report.curve.empty()) return {};
  Drawn drawn = by_time(report, stretch);
  if (drawn.curve.empty()) return {};
  if (is_crowded(drawn, columns)) drawn = by_event(drawn);
  const std::vector<Bytes> levels = column_levels(drawn, columns);
  const Bytes most = *std::max_element(levels.begin(), levels.end());
  if (most <= Bytes{}) return {};
  const Bytes least = foot(levels);
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
