#include <fmt/core.h>
#include <ostream>
#include <sstream>

#include "base/shown.h"
#include "document/document.h"
#include "document/forms/forms.h"

namespace foretrace {
namespace {

class MarkdownWriter {
 public:
  explicit MarkdownWriter(std::ostream& out) : out_(out) {}

  void operator()(const Sentence& sentence) const {
    const std::string text = markdown_text(sentence.text);
    if (!sentence.word.empty())
      out_ << fmt::format("**{}:** {}\n\n", markdown_text(sentence.word), text);
    else
      out_ << (sentence.is_verdict ? fmt::format("**{}**\n\n", text) : text + "\n\n");
  }
  void operator()(const Items& items) const {
    if (!items.summary.empty()) out_ << fmt::format("**{}**\n\n", markdown_text(items.summary));
    for (const std::string& line : items.lines) out_ << "- " << markdown_text(line) << '\n';
    out_ << '\n';
  }
  void operator()(const PlacedTable& placed) const {
    write_markdown_table(placed.table, out_);
    out_ << '\n';
  }
  void operator()(const Picture& picture) const {
    if (picture.letters.empty()) return;
    bool begins = true;
    for (const char letter : shown_lines(picture.letters)) {
      if (begins) out_ << "    ";
      out_ << letter;
      begins = letter == '\n';
    }
    out_ << '\n';
  }

 private:
  std::ostream& out_;
};

}  // namespace

void write_markdown(const Document& document, std::ostream& out) {
  out << "### Foretrace: " << markdown_text(document.heading()) << "\n\n";
  for (const Document::Section& section : document.sections()) {
    std::ostringstream text;
    for (const Document::Block& block : section.blocks) {
      if (!document.is_heading(block)) std::visit(MarkdownWriter(text), block);
    }
    const std::string content = text.str();
    if (content.empty()) continue;
    if (!section.heading.empty())
      out << "#### " << markdown_text(capitalized_title(section.heading)) << "\n\n";
    out << content;
  }
}

}  // namespace foretrace
