#include "document/document.h"

#include <algorithm>

#include "base/shown.h"
#include "foretrace/answer/memory.h"
#include "question/memory/picture.h"
#include "question/memory/words.h"
#include "question/words/wording.h"

namespace foretrace {
Document document_of(const MemoryReport& report) {
  Document document("Memory");
  for (const std::string& line : verdict_lines(report)) document.say(line);
  if (const std::string picture = level_picture(report); !picture.empty()) {
    const bool has_phases = picture.find_first_of("FU") != std::string::npos;
    document.section("Level over " + pictured_range_text(report) +
                     (has_phases ? " (I input, F forward, B backward, U update)" : ""));
    std::string letters;
    for (std::size_t from = 0; from < picture.size();) {
      const std::size_t end = std::min(picture.find('\n', from), picture.size());
      letters += "    " + picture.substr(from, end - from) + '\n';
      from = end + 1;
    }
    document.draw({.letters = std::move(letters)});
  }
  for (const MemorySection& section : memory_sections(report)) {
    document.section(section.heading).indent("  ");
    for (const std::string& line : section.before) document.say(line);
    document.table(section.table, "", "    ");
    for (const std::string& line : section.after) document.say(line);
  }
  return document.list("Assumes", report.assumptions).notes(report.notes);
}

}  // namespace foretrace
