#include "document/document.h"

#include <ostream>

#include "base/shown.h"
#include "document/words/table.h"
#include "foretrace/answer/check.h"
#include "question/words/step_facts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string shown_value(const CheckedFigure& figure, const std::optional<std::int64_t>& value) {
  return value ? figure_text(figure.unit, *value) : "-";
}

std::string standing_words(const CheckedFigure& figure) {
  std::string text = figure.standing == CheckOutcome::left_out
                         ? "left out"
                         : std::string(to_string(figure.standing));
  if (!figure.why.empty()) text += ": " + figure.why;
  return text;
}

Table check_table(const CheckReport& report) {
  Table table{.heading = {"", "baseline", "now", "change", "limit", "warns", ""},
              .rows = {},
              .left = {0, 6}};
  for (const CheckedFigure& figure : report.figures) {
    table.rows.push_back(
        {figure.name, shown_value(figure, figure.before), shown_value(figure, figure.after),
         figure_change(figure), figure.limit.empty() ? "-" : figure.limit,
         figure.warn_limit.empty() ? "-" : figure.warn_limit, standing_words(figure)});
  }
  return table;
}

std::string structure_words(const CheckReport& report) {
  std::string text = report.same_structure ? "the same work at the same places as in the baseline"
                                           : "not the same work as in the baseline";
  if (report.structure_only) text += "; times were not compared";
  return text;
}

}  // namespace

Document document_of(const CheckReport& report) {
  using enum Document::Heading;
  Document document("Check");
  document.say(check_headline(report));
  std::vector<std::string> causes;
  for (const CheckCause& cause : report.causes) causes.push_back(cause_sentence(cause));
  if (report.left) causes.push_back(left_sentence(report));
  document.list("Causes", causes);
  document.section("What was compared", not_in_text)
      .say("Scenario", report.scenario)
      .say("Structure", structure_words(report));
  if (!report.steps.each.empty()) document.say("Steps", step_facts(report.steps));
  if (report.visible) document.say("Would show", visible_words(*report.visible));
  document.section("Metrics", not_in_text).table(check_table(report));
  return document.notes(report.notes);
}

}  // namespace foretrace
