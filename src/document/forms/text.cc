#include <algorithm>
#include <ostream>
#include <sstream>

#include "base/shown.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "document/words/wrapped.h"

namespace foretrace {
namespace {

class TextWriter {
 public:
  TextWriter(const Document& document, std::string_view indent, std::ostream& out)
      : document_(document), indent_(indent), out_(out) {}

  void operator()(const Sentence& sentence) const {
    if (sentence.is_lead) return;
    const bool has_word = !sentence.word.empty();
    const std::size_t column = has_word ? document_.column : 0;
    out_ << indent_ << sentence.word
         << std::string(column - std::min(column, sentence.word.size()), ' ')
         << wrapped(sentence.text, indent_.size() + column, has_word ? document_.width : kLineWidth)
         << '\n';
  }
  void operator()(const Items& items) const {
    if (!items.summary.empty()) out_ << "  " << shown(items.summary) << '\n';
    for (const std::string& line : items.lines) {
      if (items.summary.empty())
        out_ << "  - " << wrapped(line, 4) << '\n';
      else
        out_ << "    " << wrapped(line, 6) << '\n';
    }
  }
  void operator()(const PlacedTable& placed) const {
    write_aligned(placed.table, out_, placed.indent);
  }
  void operator()(const Picture& picture) const {
    if (picture.is_in_text) out_ << shown_lines(picture.letters);
  }

 private:
  const Document& document_;
  std::string_view indent_;
  std::ostream& out_;
};

}  // namespace

void write_text(const Document& document, std::ostream& out) {
  bool is_first = true;
  for (const Document::Section& section : document.sections()) {
    std::ostringstream text;
    for (const Document::Block& block : section.blocks)
      std::visit(TextWriter(document, section.indent, text), block);
    const std::string content = text.str();
    if (content.empty()) continue;
    if (!is_first) out << '\n';
    is_first = false;
    if (section.where != Document::Heading::not_in_text && !section.heading.empty())
      out << shown(section.heading)
          << (section.where == Document::Heading::titled_apart ? "\n\n" : "\n");
    out << content;
  }
}

void write_brief(const Document& document, std::ostream& out) {
  constexpr std::ptrdiff_t kMaxLines = 5;
  std::ptrdiff_t lines = 0;
  const Document::Section head = document.sections().front();
  for (const Document::Block& block : head.blocks) {
    const auto* sentence = std::get_if<Sentence>(&block);
    if (sentence == nullptr) continue;
    std::ostringstream text;
    TextWriter(document, "", text)({sentence->word, sentence->text});
    const std::string entry = text.str();
    const auto more = std::ranges::count(entry, '\n');
    if (lines > 0 && lines + more > kMaxLines) return;
    std::size_t end = 0;
    for (std::ptrdiff_t i = 0; i < std::min(more, kMaxLines); ++i) end = entry.find('\n', end) + 1;
    out << std::string_view(entry).substr(0, end);
    lines += more;
  }
}

}  // namespace foretrace
