#include "document/document.h"

#include "base/wording.h"

namespace foretrace {
namespace {

bool has_content(const Document::Block& block) {
  if (const auto* table = std::get_if<PlacedTable>(&block)) return !table->table.rows.empty();
  if (const auto* items = std::get_if<Items>(&block)) return !items->lines.empty();
  if (const auto* sentence = std::get_if<Sentence>(&block)) return !sentence->text.empty();
  return true;
}

}  // namespace

Document::Document(std::string title, std::string heading)
    : title_(std::move(title)), heading_(std::move(heading)) {}

Document& Document::section(std::string heading, Heading where) {
  sections_.push_back({std::move(heading), where});
  return *this;
}

Document& Document::indent(std::string spaces) {
  sections_.back().indent = std::move(spaces);
  return *this;
}

Document& Document::append(const Document& other) {
  for (Section& section : other.sections()) sections_.push_back(std::move(section));
  return *this;
}

Document& Document::add(Block block) {
  if (has_content(block)) sections_.back().blocks.push_back(std::move(block));
  return *this;
}

Document& Document::say(std::string sentence) { return say("", std::move(sentence)); }

Document& Document::say(std::string word, std::string sentence) {
  return add(Sentence{std::move(word), std::move(sentence)});
}

Document& Document::verdict(std::string word, std::string sentence) {
  return add(Sentence{std::move(word), std::move(sentence), true});
}

Document& Document::sum_up(std::string sentence) {
  if (!sentence.empty())
    sections_.front().blocks.push_back(Sentence{"", std::move(sentence), true, true});
  return *this;
}

Document& Document::items(std::vector<std::string> lines) { return add(Items{std::move(lines)}); }

Document& Document::folded(std::string summary, std::vector<std::string> lines) {
  return add(Items{std::move(lines), std::move(summary)});
}

Document& Document::table(Table table, std::string caption, std::string indent) {
  return add(PlacedTable{std::move(table), std::move(caption), std::move(indent)});
}

Document& Document::draw(Picture picture) { return add(std::move(picture)); }

Document& Document::list(std::string heading, std::vector<std::string> lines) {
  return section(std::move(heading)).items(std::move(lines));
}

Document& Document::titled(std::string heading, Table rows) {
  section(heading, heading.empty() ? Heading::not_in_text : Heading::everywhere);
  return table(std::move(rows), std::move(heading), "  ");
}

Document& Document::notes(const Notes& notes, std::string heading) {
  std::vector<std::string> lines;
  for (const Note& note : notes.all()) lines.push_back(note_text(note));
  return list(std::move(heading), std::move(lines));
}

std::string Document::heading() const {
  if (!heading_.empty()) return heading_;
  for (const Block& block : sections_.front().blocks) {
    if (const auto* sentence = std::get_if<Sentence>(&block)) return sentence->text;
  }
  return title_;
}

bool Document::is_heading(const Block& block) const {
  const auto* sentence = std::get_if<Sentence>(&block);
  return sentence != nullptr && sentence->text == heading();
}

std::vector<Document::Section> Document::sections() const {
  std::vector<Section> all{sections_.front()};
  for (std::size_t i = 1; i < sections_.size(); ++i) {
    if (!sections_[i].blocks.empty()) all.push_back(sections_[i]);
  }
  return all;
}

}  // namespace foretrace
