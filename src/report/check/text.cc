#include <ostream>

#include "base/shown.h"
#include "foretrace/answer/check.h"
#include "foretrace/report.h"
#include "report/words/step_facts.h"
#include "report/words/table.h"
#include "report/words/wording.h"

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

void write_check_text(const CheckReport& report, std::ostream& out) {
  out << check_headline(report) << "\n\n";
  if (!report.causes.empty() || report.left) {
    out << "Causes\n";
    for (const CheckCause& cause : report.causes) out << "  - " << cause_sentence(cause) << '\n';
    if (report.left) out << "  - " << left_sentence(report) << '\n';
    out << '\n';
  }
  out << "Scenario      " << shown(report.scenario) << '\n';
  out << "Structure     " << structure_words(report) << '\n';
  if (!report.steps.each.empty()) out << "Steps         " << step_facts(report.steps) << '\n';
  if (report.visible) out << "Would show    " << visible_words(*report.visible) << '\n';
  out << '\n';
  write_aligned(check_table(report), out);
  if (report.notes.empty()) return;
  out << "\nNotes\n";
  for (const Note& note : report.notes.all()) out << "  - " << note_text(note) << '\n';
}

void write_check_markdown(const CheckReport& report, std::ostream& out) {
  out << "### Foretrace: " << markdown_text(check_headline(report)) << "\n\n";
  if (!report.causes.empty() || report.left) {
    Table causes{
        .heading = {"cause", "where", "step time", "work there"}, .rows = {}, .left = {0, 1}};
    for (const CheckCause& cause : report.causes) {
      causes.rows.push_back(
          {cause.what, cause.where,
           cause.effect ? (*cause.effect > 0ns ? "+" : "") + to_text(*cause.effect) : "-",
           cause.local > 0ns ? "+" + to_text(cause.local) : "-"});
    }
    if (report.left) causes.rows.push_back({left_sentence(report), "", "", ""});
    write_markdown_table(causes, out);
    out << '\n';
  }
  write_markdown_table(check_table(report), out);
  out << "\nScenario: " << markdown_text(report.scenario) << "; " << structure_words(report)
      << ".\n";
  if (!report.steps.each.empty()) out << "\nSteps: " << step_facts(report.steps) << ".\n";
  if (report.visible) out << "\nWould show: " << visible_words(*report.visible) << ".\n";
  for (const Note& note : report.notes.all()) out << "\n- " << markdown_text(note_text(note));
  if (!report.notes.empty()) out << '\n';
}

}  // namespace foretrace
