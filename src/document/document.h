#pragma once

// A document is what a person reads of an answer, in this order. An answer says once what it
// says; each form in documents.def writes all of it in its own way:
//
//     head         sentences; the first is what the page is called
//     section      a heading, then sentences, lists, tables and drawings
//     section ...
//
// Sections, lists and tables without content are left out, so that whoever fills a document need
// not ask. All text is plain: each form makes it harmless in its own way.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "document/page/page_shell.h"
#include "document/words/table.h"
#include "document/words/wrapped.h"
#include "foretrace/notes.h"

namespace foretrace {

/// The column where sentences after a word begin.
constexpr std::size_t kSentenceColumn = 14;

/// "Bound by      the host: ...", or only a sentence if there is no word.
struct Sentence {
  std::string word, text;
  bool is_verdict = false;  ///< Stands out where a form can do that.
  bool is_lead = false;     ///< Sums up what text shows anyway, so that only other forms have it.
};

struct Items {
  std::vector<std::string> lines;
  std::string summary = {};  ///< If not empty: folded under it, where a form can do that.
};

struct PlacedTable {
  Table table;
  std::string caption;
  std::string indent;  ///< In text.
};

/// A picture of what the tables say. Text may have a picture of letters instead.
struct Picture {
  struct Made {
    std::string html;
    std::vector<std::string_view> styles = {}, scripts = {};  ///< Embedded files.
    std::vector<PageData> data = {};
    bool has_charts = false;  ///< The page needs uPlot.
  };
  std::function<Made()> make = {};  ///< Called only by forms that can show it.
  std::string letters = {};
  bool is_in_text = true;  ///< Otherwise the letters are only for forms that show no `make`.
};

class Document {
 public:
  using Block = std::variant<Sentence, Items, PlacedTable, Picture>;
  /// Where a section has its heading: everywhere, or not in text.
  /// `titled_apart`: with an empty line below it in text.
  enum class Heading { everywhere, not_in_text, titled_apart };
  struct Section {
    std::string heading;
    Heading where = Heading::everywhere;
    std::string indent = {};  ///< Before each sentence, in text.
    std::vector<Block> blocks = {};
  };

  /// `title` is the title of a page's window. `heading` is what the page is called; if it is empty,
  /// the first sentence of the head is.
  explicit Document(std::string title, std::string heading = {});

  /// Sentences begin at this column in text, lines end before that one.
  std::size_t column = kSentenceColumn;
  std::size_t width = kLineWidth;

  /// Begins a section. What was said before is the head.
  Document& section(std::string heading, Heading where = Heading::everywhere);
  /// Text indents the sentences of this section.
  Document& indent(std::string spaces);
  Document& say(std::string sentence);
  Document& say(std::string word, std::string sentence);
  Document& verdict(std::string word, std::string sentence);
  /// Says in the head what text shows in a table. `--brief` needs it.
  Document& sum_up(std::string sentence);
  Document& items(std::vector<std::string> lines);
  Document& folded(std::string summary, std::vector<std::string> lines);
  Document& table(Table table, std::string caption = {}, std::string indent = {});
  Document& draw(Picture picture);

  /// A section with a list, a table, or notes.
  Document& list(std::string heading, std::vector<std::string> lines);
  Document& titled(std::string heading, Table table);
  Document& notes(const Notes& notes, std::string heading = "Notes");
  /// Adds another document, its head as a section.
  Document& append(const Document& other);

  const std::string& title() const { return title_; }
  /// The heading of the page.
  std::string heading() const;
  /// Whether the block only repeats that heading.
  bool is_heading(const Block& block) const;
  /// The head, then all sections with content.
  std::vector<Section> sections() const;

 private:
  Document& add(Block block);

  std::string title_, heading_;
  std::vector<Section> sections_{1};
};

}  // namespace foretrace
