#include "document/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/forms/forms.h"

namespace foretrace {
namespace {

std::string written(std::string_view name, const Document& document) {
  for (const DocumentForm& form : document_forms()) {
    if (form.name != name) continue;
    std::ostringstream out;
    form.write(document, out);
    return out.str();
  }
  return "there is no such form";
}

Table rows(std::size_t count) {
  Table table{.heading = {"rank", "step"}, .rows = {}};
  for (std::size_t i = 0; i < count; ++i)
    table.rows.push_back({std::to_string(i), std::to_string(10 * i) + " ms"});
  return table;
}

Document sample() {
  Document document("Sample");
  document.say("8 GPUs of dgx-h100").sum_up("fastest with 8").say("Bound by", "the network");
  document.section("Ranks", Document::Heading::not_in_text).table(rows(2));
  document.section("Plot", Document::Heading::not_in_text)
      .draw({.make = [] { return Picture::Made{"<svg></svg>\n"}; }, .letters = "##\n"});
  return document.list("assumed:", {"no losses", "a < b"}).list("refused:", {}).titled("", rows(0));
}

TEST(Document, TextLeavesOutWhatSumsUpTheTables) {
  EXPECT_EQ(written("text", sample()), R"(8 GPUs of dgx-h100
Bound by      the network

rank   step
0      0 ms
1     10 ms

##

assumed:
  - no losses
  - a < b
)");
}

TEST(Document, BriefIsTheHead) {
  EXPECT_EQ(written("brief", sample()),
            "8 GPUs of dgx-h100\nfastest with 8\nBound by      the network\n");
}

TEST(Document, BriefHasWholeSentencesOfFiveLines) {
  Document document("Long");
  const std::string long_sentence(300, 'x');
  for (int i = 0; i < 4; ++i) document.say("word", "a " + long_sentence + " b");
  const std::string brief = written("brief", document);
  EXPECT_EQ(std::count(brief.begin(), brief.end(), '\n'), 3);  // A second one would be line 6.
  Document longer("Longer");
  std::string words;
  for (int i = 0; i < 400; ++i) words += "word ";
  const std::string cut = written("brief", longer.say(words));
  EXPECT_EQ(std::count(cut.begin(), cut.end(), '\n'), 5);
}

TEST(Document, MarkdownHasTheFirstSentenceAsHeading) {
  EXPECT_EQ(written("markdown", sample()), R"(### Foretrace: 8 GPUs of dgx-h100

**fastest with 8**

**Bound by:** the network

#### Ranks

| rank | step |
| :-- | --: |
| 0 | 0 ms |
| 1 | 10 ms |

#### Plot

    ##

#### Assumed

- no losses
- a &lt; b

)");
}

TEST(Document, PageHasSectionsWithContentAndDrawings) {
  const std::string page = written("html", sample());
  EXPECT_NE(page.find("<h1>8 GPUs of dgx-h100</h1>"), page.npos);
  EXPECT_NE(page.find("<section id=\"plot\""), page.npos);
  EXPECT_NE(page.find("<svg></svg>"), page.npos);
  EXPECT_NE(page.find("<li>a &lt; b</li>"), page.npos);
  EXPECT_EQ(page.find("refused"), page.npos);
}

TEST(Document, PartsAreTheContentOfThePage) {
  std::ostringstream out;
  write_parts(sample(), out);
  const auto parts = nlohmann::json::parse(out.str());
  const std::string page = written("html", sample());
  EXPECT_EQ(parts.at("heading"), "8 GPUs of dgx-h100");
  ASSERT_FALSE(parts.at("sections").empty());
  for (const auto& section : parts.at("sections"))
    EXPECT_NE(page.find(section.at("html").get<std::string>()), page.npos) << section.at("id");
  EXPECT_NE(page.find(parts.at("lead").get<std::string>()), page.npos);
}

TEST(Document, TablesWithoutHeadingAreTablesInMarkdown) {
  Document document("Facts");
  document.table({.heading = {}, .rows = {{"format", "kineto"}}, .left = {0, 1}});
  EXPECT_NE(written("markdown", document).find("|  |  |\n| :-- | :-- |\n| format | kineto |\n"),
            std::string::npos);
}

TEST(Document, PicturesAreMadeOnlyForForms) {
  int made = 0;
  Document document("Drawn");
  document.draw({.make = [&] { return ++made, Picture::Made{"<svg></svg>"}; }});
  written("text", document), written("markdown", document);
  EXPECT_EQ(made, 0);
  written("html", document);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace foretrace
