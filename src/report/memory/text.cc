#include <ostream>

#include "base/shown.h"
#include "foretrace/answer/memory.h"
#include "foretrace/report.h"
#include "report/memory/picture.h"
#include "report/memory/words.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

void write_indented(const std::string& text, std::ostream& out) {
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    out << "    " << text.substr(from, end - from) << '\n';
    from = end == std::string::npos ? text.size() : end + 1;
  }
}

void write_section(const MemorySection& section, std::ostream& out) {
  out << '\n' << shown(section.heading) << '\n';
  for (const std::string& line : section.before) out << "  " << shown(line) << '\n';
  if (!section.table.rows.empty()) write_aligned(section.table, out, "    ");
  for (const std::string& line : section.after) out << "  " << shown(line) << '\n';
}

}  // namespace

void write_memory_text(const MemoryReport& report, std::ostream& out) {
  for (const std::string& line : verdict_lines(report)) out << shown(line) << '\n';
  const std::string picture = level_picture(report);
  if (!picture.empty()) {
    out << "\nLevel over " << shown(pictured_range_text(report))
        << (picture.find('F') == std::string::npos && picture.find('U') == std::string::npos
                ? "\n"
                : " (I input, F forward, B backward, U update)\n");
    write_indented(picture, out);
  }
  for (const MemorySection& section : memory_sections(report)) write_section(section, out);
  if (!report.assumptions.empty()) {
    out << "\nAssumes\n";
    for (const std::string& text : report.assumptions) out << "  - " << shown(text) << '\n';
  }
  if (!report.notes.empty()) {
    out << "\nNotes\n";
    for (const Note& note : report.notes.all()) out << "  - " << note_text(note) << '\n';
  }
}

}  // namespace foretrace
