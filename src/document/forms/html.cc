#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "document/page/page_shell.h"

namespace foretrace {
namespace {

/// Turns blocks into HTML, and collects the styles, scripts and data that drawings need.
class PageWriter {
 public:
  PageWriter(Page& page, std::string heading) : page_(page), heading_(std::move(heading)) {}

  std::string operator()(const Sentence& sentence) const {
    const std::string word =
        sentence.word.empty() ? "" : fmt::format("<b>{}</b> ", html_text(sentence.word));
    return fmt::format("<p{}>{}{}</p>\n", sentence.is_verdict ? " class=\"verdict\"" : "", word,
                       html_text(sentence.text));
  }
  std::string operator()(const Items& items) const {
    const std::string html = html_items(items.lines);
    return items.summary.empty() ? html : html_folded(items.summary, html);
  }
  std::string operator()(const PlacedTable& placed) const {
    return html_table(placed.caption.empty() ? heading_ : placed.caption, placed.table);
  }
  std::string operator()(const Picture& picture) const {
    if (!picture.make)
      return fmt::format("<pre tabindex=\"0\">{}</pre>\n", html_text(picture.letters));
    Picture::Made made = picture.make();
    const auto add = [](auto& all, auto& more) {
      for (auto& one : more) all.push_back(std::move(one));
    };
    add(page_.data, made.data);
    for (const auto& [all, more] :
         {std::pair(&page_.styles, &made.styles), std::pair(&page_.scripts, &made.scripts)}) {
      for (const std::string_view name : *more) {
        if (std::ranges::find(*all, name) == all->end()) all->push_back(name);
      }
    }
    page_.has_charts = page_.has_charts || made.has_charts;
    return std::move(made.html);
  }

 private:
  Page& page_;
  std::string heading_;
};

std::string id_of(const Page& page, std::string_view heading) {
  std::string id;
  for (const char letter : heading) {
    const bool is_word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                         (letter >= '0' && letter <= '9');
    if (is_word)
      id += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    else if (!id.empty() && id.back() != '-')
      id += '-';
  }
  if (id.ends_with('-')) id.pop_back();
  const auto is_taken = [&](const std::string& wanted) {
    return std::ranges::find(page.sections, wanted, &PageSection::id) != page.sections.end();
  };
  std::string free = id;
  for (int i = 2; is_taken(free); ++i) free = fmt::format("{}-{}", id, i);
  return free;
}

/// The document as a page, with its pictures made.
Page page_of(const Document& document) {
  Page page;
  page.title = "Foretrace: " + document.title();
  page.heading = document.heading();
  for (const Document::Section& section : document.sections()) {
    const std::string heading = capitalized_title(section.heading);
    std::string html;
    for (const Document::Block& block : section.blocks) {
      if (!document.is_heading(block))
        html += std::visit(PageWriter(page, heading.empty() ? document.title() : heading), block);
    }
    if (html.empty()) continue;
    if (!heading.empty())
      page.sections.push_back({id_of(page, heading), heading, std::move(html)});
    else if (page.sections.empty())
      page.lead += html;
    else
      page.sections.back().html += html;
  }
  return page;
}

}  // namespace

void write_html(const Document& document, std::ostream& out) { write_page(page_of(document), out); }

void write_parts(const Document& document, std::ostream& out) {
  const Page page = page_of(document);
  out << script_json(
      {{"heading", page.heading}, {"lead", page.lead}, {"sections", sections_json(page.sections)}});
}

}  // namespace foretrace
