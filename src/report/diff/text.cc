#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <ostream>
#include <utility>

#include "base/shown.h"
#include "foretrace/answer/diff.h"
#include "foretrace/report.h"
#include "report/diff/words.h"
#include "report/words/csv_text.h"
#include "report/words/step_facts.h"
#include "report/words/wording.h"
#include "report/words/wrapped.h"

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

/// Writes both steps as bars of text, so that a comment needs no uploaded picture. The lines are
/// indented, which makes them a code block without any markup.
void write_pictures(const Diff& diff, std::ostream& out) {
  constexpr double kWidest = 80;
  const Nanoseconds longest = std::max({diff.before.compared, diff.after.compared, Nanoseconds{1}});
  const auto row = [&](char name, const DiffSideReport& side) {
    out << name << "  "
        << picture_of(side.breakdown, kWidest / static_cast<double>(longest.count())) << "  "
        << to_text(side.compared) << '\n';
  };
  out << '\n';
  row('A', diff.before);
  row('B', diff.after);
  out << "       # compute  ~ communication  c copies  i input  h host  . idle\n";
}

}  // namespace

void write_diff_text(const DiffReport& report, std::ostream& out) {
  const Diff& diff = decisive_rank(report);
  if (const std::string warning = trust_warning(diff.trust); !warning.empty())
    out << "Trust     " << wrapped(warning, 10) << '\n';
  out << "What      " << wrapped(rank_text(report, diff) + diff_verdict(diff), 10) << '\n';
  if (diff.has_times) out << "Step      " << step_change(diff) << '\n';
  if (diff.has_times) {
    out << "A         " << wrapped(step_facts(diff.before.times), 10) << '\n';
    out << "B         " << wrapped(step_facts(diff.after.times), 10) << '\n';
  }
  out << "Compared  " << wrapped(compared_text(diff), 10) << '\n';
  for (const Table& table : diff_tables(report, diff)) {
    out << '\n';
    write_aligned(table, out, "  ");
  }
  const Notes notes = all_notes(report, diff);
  if (!notes.empty()) out << "\nNotes\n";
  for (const Note& note : notes.all()) out << "  - " << wrapped(note_text(note), 4) << '\n';
}

void write_diff_markdown(const DiffReport& report, std::ostream& out) {
  const Diff& diff = decisive_rank(report);
  out << markdown_trust(trust_warning(diff.trust));
  out << "**" << markdown_text(rank_text(report, diff) + diff_verdict(diff)) << "**\n\n";
  if (diff.has_times) out << "Step time " << step_change(diff) << ". ";
  if (diff.has_times)
    out << "A: " << step_facts(diff.before.times) << ". B: " << step_facts(diff.after.times)
        << ". ";
  out << "Compared: " << markdown_text(compared_text(diff)) << ".\n";
  if (diff.has_times) write_pictures(diff, out);
  for (const Table& table : diff_tables(report, diff)) {
    out << '\n';
    write_markdown_table(table, out);
  }
  const Notes notes = all_notes(report, diff);
  if (!notes.empty()) out << '\n';
  for (const Note& note : notes.all()) out << "- " << markdown_text(note_text(note)) << '\n';
}

void write_diff_csv(const DiffReport& report, std::ostream& out) {
  out << "rank,kind,label,place,added,removed,moved,changed,bytes,local_ns,effect_ns\n";
  for (const Diff& diff : report.ranks) {
    for (const DiffCause& cause : diff.causes) {
      out << diff.rank << ',' << to_string(cause.kind) << ',' << csv_text(cause.label) << ','
          << csv_text(cause.place) << ',' << cause.added << ',' << cause.removed << ','
          << cause.moved << ',' << cause.changed << ',' << cause.bytes.count << ','
          << cause.local.count() << ',' << cause.effect.count() << '\n';
    }
  }
}

}  // namespace foretrace
