#include <fmt/core.h>
#include <ostream>

#include "base/shown.h"
#include "foretrace/report.h"
#include "report/prediction/registered.h"
#include "report/words/tables.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

void write_marked_list(std::ostream& out, std::string_view heading,
                       const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out << "\n**" << heading << "**\n\n";
  for (const std::string& line : lines) out << "- " << markdown_text(line) << '\n';
}

void write_table(std::ostream& out, const Table& table) {
  out << '\n';
  write_markdown_table(table, out);
}

void write_marked_table(std::ostream& out, std::string_view title, const Table& table) {
  if (table.rows.empty()) return;
  out << "\n**" << title << "**\n";
  write_table(out, table);
}

}  // namespace

void write_markdown(const Prediction& prediction, std::ostream& out) {
  const VerdictLines lines = verdict(prediction);
  out << markdown_trust(lines.trust);
  out << "### " << markdown_text(lines.what) << "\n\n";
  out << "**" << markdown_text(lines.how_much) << "**, " << markdown_text(lines.how_sure) << "\n";
  if (!lines.steps.empty()) out << "\n**Steps:** " << markdown_text(lines.steps) << "\n";
  if (!lines.unprofiled.empty())
    out << "\n**Unprofiled:** " << markdown_text(lines.unprofiled) << "\n";
  if (!lines.fits.empty()) out << "\n**Does it fit?** " << markdown_text(lines.fits) << "\n";
  if (prediction.has_times) write_table(out, time_table(prediction));
  if (const Table memory = memory_table(prediction); !memory.rows.empty()) write_table(out, memory);

  if (const Table rates = rate_table(prediction); !rates.rows.empty()) write_table(out, rates);
  if (const Table ranks = rank_table(prediction); !ranks.rows.empty()) write_table(out, ranks);

  write_marked_list(out, "Changed in the whole recording", changes(prediction));
  write_marked_list(out, "Figures", figures(prediction));
  std::vector<std::string> rests;
  for (const EvidenceLine& evidence : evidence_lines(prediction)) {
    rests.push_back(fmt::format("{}: {}", evidence.heading, evidence.sentence));
  }
  write_marked_list(out, "Based on", rests);
  write_marked_list(out, "Assumes", prediction.assumptions);
  write_marked_table(out, "Longest waits on the critical path", wait_table(prediction));
  write_marked_table(out, "Longest work on the critical path", work_table(prediction));
  write_marked_list(out, "Notes", note_texts(prediction.notes));
}

}  // namespace foretrace
