#include "document/document.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <ostream>
#include <utility>

#include "base/shown.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/pairs.h"
#include "foretrace/answer/trust.h"
#include "foretrace/timeline.h"
#include "question/diff/words.h"
#include "question/words/step_bars.h"
#include "question/words/step_facts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

Notes all_notes(const DiffReport& report, const Diff& diff) {
  Notes notes = report.notes;
  notes.merge(diff.notes);
  return notes;
}

/// Returns the tables that are shown for a rank, without empty ones.
std::vector<Table> diff_tables(const DiffReport& report, const Diff& diff) {
  std::vector<Table> tables{ranks_table(report)};
  const bool shows_times = !diff.identical && diff.has_times;
  if (shows_times) tables.push_back(waterfall_table(diff));
  tables.push_back(kinds_table(diff));
  tables.push_back(content_table(diff));
  if (shows_times) tables.push_back(path_table(diff));
  if (!diff.identical) tables.push_back(peak_table(diff));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::string rank_text(const DiffReport& report, const Diff& diff) {
  if (report.ranks.size() < 2) return "";
  const bool is_slowest = &diff == &slowest_of(report);
  return fmt::format("rank {}{}", diff.rank,
                     is_slowest ? ", the slowest: " : ", which the others wait for: ");
}

/// Draws the parts of a step as a bar, with a letter for each part, on a scale that both sides
/// share.
std::string picture_of(const Breakdown& step, double letters_per_ns) {
  constexpr std::pair<char, Nanoseconds Breakdown::*> kParts[] = {
      {'#', &Breakdown::compute}, {'~', &Breakdown::communication}, {'c', &Breakdown::copy},
      {'i', &Breakdown::input},   {'h', &Breakdown::host},          {'.', &Breakdown::idle}};
  std::string picture;
  Nanoseconds at{0};
  for (const auto& [letter, part] : kParts) {
    at += step.*part;
    picture.resize(
        static_cast<std::size_t>(std::lround(static_cast<double>(at.count()) * letters_per_ns)),
        letter);
  }
  return picture;
}

/// Draws both steps as bars of letters, so that a comment needs no uploaded picture.
std::string picture_of(const Diff& diff) {
  constexpr double kWidest = 80;
  const Nanoseconds longest = std::max({diff.before.compared, diff.after.compared, Nanoseconds{1}});
  const auto row = [&](char name, const DiffSideReport& side) {
    return fmt::format("{}  {}  {}\n", name,
                       picture_of(side.breakdown, kWidest / static_cast<double>(longest.count())),
                       to_text(side.compared));
  };
  return row('A', diff.before) + row('B', diff.after) +
         "   # compute  ~ communication  c copies  i input  h host  . idle\n";
}

}  // namespace

void write_csv(const DiffReport& report, std::ostream& out) {
  out << "name,control_counts,control_total_duration,test_counts,test_total_duration,diff_counts,"
         "diff_duration,counts_change_categories,rank\n";
  for (const Diff& diff : report.ranks) {
    for (const NameChange& change : diff.names) {
      const std::int64_t more = change.count_after - change.count_before;
      out << csv_text(change.name) << ',' << change.count_before << ','
          << microseconds_cell(change.time_before) << ',' << change.count_after << ','
          << microseconds_cell(change.time_after) << ',' << more << ','
          << microseconds_cell(change.time_after - change.time_before) << ','
          << (more > 0   ? '+'
              : more < 0 ? '-'
                         : '=')
          << ',' << diff.rank << '\n';
    }
  }
}

Document document_of(const DiffReport& report) {
  using enum Document::Heading;
  const Diff& diff = decisive_rank(report);
  const std::string rank = rank_text(report, diff), what = diff_verdict(diff);
  Document document("Difference", rank + what.substr(0, what.find(": ")));
  document.column = 10;
  document.verdict("Trust", trust_warning(diff.trust));
  document.verdict("What", rank + what);
  if (diff.has_times) {
    document.say("Step", step_change(diff));
    document.say("A", step_facts(diff.before.times)).say("B", step_facts(diff.after.times));
  }
  document.say("Compared", compared_text(diff));
  document.section("A step", not_in_text);
  if (diff.has_times) {
    document.draw({.make =
                       [&] {
                         return Picture::Made{
                             .html = step_bars("Where the time of a step goes in A and in B", "A",
                                               "B", diff.before.breakdown, diff.after.breakdown),
                             .styles = {"page/prediction.css"}};
                       },
                   .letters = picture_of(diff),
                   .is_in_text = false});
  }
  for (const Table& table : diff_tables(report, diff)) document.section("").table(table, "", "  ");
  return document.notes(all_notes(report, diff));
}

}  // namespace foretrace
