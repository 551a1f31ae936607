// The sentences that all formats of the answer share.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/shown.h"
#include "foretrace/answer/check.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string signed_text(FigureUnit unit, std::int64_t value) {
  return (value > 0 ? "+" : "") + figure_text(unit, value);
}

}  // namespace

std::string_view to_string(CheckOutcome standing) {
  switch (standing) {
    case CheckOutcome::left_out:
      return "left_out";
    case CheckOutcome::passed:
      return "passed";
    case CheckOutcome::warned:
      return "warned";
    case CheckOutcome::undecided:
      return "undecided";
    case CheckOutcome::failed:
      return "failed";
  }
  return "";
}

CheckOutcome CheckReport::standing() const {
  CheckOutcome worst = CheckOutcome::left_out;
  for (const CheckedFigure& figure : figures) worst = std::max(worst, figure.standing);
  return worst;
}

std::int64_t CheckReport::count(CheckOutcome standing) const {
  return std::count_if(figures.begin(), figures.end(),
                       [&](const CheckedFigure& figure) { return figure.standing == standing; });
}

std::string figure_text(FigureUnit unit, std::int64_t value) {
  switch (unit) {
    case FigureUnit::time:
      return to_text(Nanoseconds(value));
    case FigureUnit::bytes:
      return to_text(Bytes{value});
    case FigureUnit::count:
      return grouped(value);
    case FigureUnit::share:
      return to_fixed(static_cast<double>(value) / 10'000, 1) + " %";
  }
  return {};
}

std::string figure_change(const CheckedFigure& figure) {
  if (!figure.before || !figure.after) return "-";
  const std::int64_t change = *figure.after - *figure.before;
  if (change == 0) return "0";
  if (figure.unit == FigureUnit::share)
    return fmt::format("{}{} points", change > 0 ? "+" : "",
                       to_fixed(static_cast<double>(change) / 10'000, 1));
  const std::string difference = signed_text(figure.unit, change);
  if (*figure.before == 0) return difference;
  const double relative =
      static_cast<double>(change) / std::abs(static_cast<double>(*figure.before));
  return figure.unit == FigureUnit::count ? difference : to_percent(relative);
}

std::string figure_sentence(const CheckedFigure& figure) {
  std::string text = figure.name;
  if (figure.before) text += " " + figure_text(figure.unit, *figure.before);
  if (figure.after)
    text += (figure.before ? " -> " : " ") + figure_text(figure.unit, *figure.after);
  if (figure.before && figure.after) {
    const std::string interval =
        figure.standing == CheckOutcome::undecided
            ? fmt::format(", between {} and {}", signed_text(figure.unit, figure.lower),
                          signed_text(figure.unit, figure.upper))
            : "";
    text += fmt::format(" ({}{})", figure_change(figure), interval);
  }
  const bool is_warning = figure.standing == CheckOutcome::warned;
  const std::string& limit = is_warning ? figure.warn_limit : figure.limit;
  if (!limit.empty()) text += (is_warning ? ", warns from " : ", limit ") + limit;
  if (!figure.why.empty()) text += "; " + figure.why;
  return shown(text);
}

std::string cause_sentence(const CheckCause& cause) {
  std::string text;
  if (cause.effect && *cause.effect > 0ns) {
    text = fmt::format("+{}: ", to_text(*cause.effect));
  } else if (cause.local > 0ns) {
    text = fmt::format("+{} of work: ", to_text(cause.local));
  }
  text += cause.what;
  if (!cause.where.empty()) text += " from " + cause.where;
  return shown(text);
}

std::string visible_words(const VisibleChange& visible) {
  const std::string wanted = to_share(VisibleChange::kWanted);
  std::string text = fmt::format("steps {} longer or more, by {}", to_share(visible.share),
                                 counted(visible.recordings, "recording"));
  if (visible.recordings < 2) return text + "; --bless --add more to know how they differ";
  if (visible.share <= VisibleChange::kWanted) return text;
  return text + (visible.for_wanted
                     ? fmt::format("; {} would show {}", grouped(*visible.for_wanted), wanted)
                     : fmt::format("; no number of recordings like these shows {}", wanted));
}

std::string left_sentence(const CheckReport& report) {
  if (!report.left) return {};
  return fmt::format(
      "{}{}: left, {}", *report.left > 0ns ? "+" : "", to_text(*report.left),
      *report.left > 0ns ? "which no cause accounts for" : "work elsewhere that takes less");
}

std::string check_headline(const CheckReport& report) {
  const auto worst = std::find_if(
      report.figures.begin(), report.figures.end(),
      [&](const CheckedFigure& figure) { return figure.standing == report.standing(); });
  const auto compared = std::ssize(report.figures) - report.count(CheckOutcome::left_out);
  const std::string metrics = counted(compared, "metric");
  switch (report.standing()) {
    case CheckOutcome::failed:
      return fmt::format("REGRESSION: {}; {} of {} beyond the limit", figure_sentence(*worst),
                         report.count(CheckOutcome::failed), metrics);
    case CheckOutcome::undecided:
      return fmt::format("UNDECIDED: {}; {} of {} may be on either side of the limit",
                         figure_sentence(*worst), report.count(CheckOutcome::undecided), metrics);
    case CheckOutcome::warned:
      return fmt::format("PASSED with warnings: {}; {} of {}", figure_sentence(*worst),
                         report.count(CheckOutcome::warned), metrics);
    case CheckOutcome::passed:
      return fmt::format("PASSED: {} within the limits", metrics);
    case CheckOutcome::left_out:
      return "NOTHING COMPARED: no metric is in both the baseline and the trace";
  }
  return {};
}

}  // namespace foretrace
