#include <algorithm>
#include <ostream>

#include "report/registered.h"
#include "report/tables.h"
#include "report/wording.h"

namespace foretrace {
namespace {

constexpr std::size_t kHeadingWidth = 14;

void write_line(std::ostream& out, std::string_view heading, std::string_view text) {
  out << heading << std::string(kHeadingWidth - std::min(kHeadingWidth, heading.size()), ' ')
      << text << '\n';
}

void write_list(std::ostream& out, std::string_view heading,
                const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out << '\n' << heading << '\n';
  for (const std::string& line : lines) out << "  - " << line << '\n';
}

void write_titled(std::ostream& out, std::string_view title, const Table& table) {
  if (table.rows.empty()) return;
  out << '\n' << title << '\n';
  write_aligned(table, out, "  ");
}

}  // namespace

void write_text(const Prediction& prediction, std::ostream& out) {
  const VerdictLines lines = verdict(prediction);
  write_line(out, is_what_if(prediction) ? "What if" : "What", lines.what);
  write_line(out, "How much", lines.how_much);
  write_line(out, "How sure", lines.how_sure);
  if (!lines.fits.empty()) write_line(out, "Does it fit", lines.fits);

  if (prediction.has_times) {
    out << '\n';
    write_aligned(time_table(prediction), out);
  }
  const Table memory = memory_table(prediction);
  if (!memory.rows.empty()) {
    out << '\n';
    write_aligned(memory, out);
  }

  write_list(out, "Changed", changes(prediction));
  write_list(out, "Figures", figures(prediction));

  out << "\nRests on\n";
  for (const Ground& ground : grounds(prediction)) {
    write_line(out, "  " + std::string(ground.heading), "  " + ground.sentence);
  }
  write_list(out, "Assumes", prediction.assumptions);
  write_titled(out, "On the critical path, what waited longest", wait_table(prediction));
  write_titled(out, "On the critical path, what worked longest", work_table(prediction));
  write_list(out, "Notes", note_texts(prediction));
}

}  // namespace foretrace
