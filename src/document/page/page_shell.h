#pragma once

// The common parts of every page. A page is one file that loads nothing, looks like the others in a
// light and a dark theme, can be printed, and can be used with the keyboard and a screen reader.
//
//     header   heading, and a button to switch the theme
//     lead     the most important facts, in HTML
//     nav      links to the sections
//     section  heading and HTML, for each section
//     footer
//     data     JSON, parsed when a script asks for it
//     scripts  page/shell.js, uPlot if the page has charts, then those of the page
//
// All text from a trace goes through html_text(), html_table() or script_json(), because names may
// contain any bytes. A content security policy in the page forbids it to load anything, and to run
// any script except those of the page, whose hashes it lists.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "document/words/table.h"

namespace foretrace {

/// Escapes text for use between tags or in a quoted attribute.
std::string html_text(std::string_view text);

/// Returns a list with an item for each line; empty if there are no lines.
std::string html_items(const std::vector<std::string>& lines);

/// Writes JSON as the text of a script element, without anything that looks like the element's end.
std::string script_json(const nlohmann::json& value);

/// Returns a table in a box that scrolls sideways. A cell that contains only '#' is drawn as a bar,
/// which screen readers skip.
std::string html_table(const std::string& caption, const Table& table);

/// Returns `html` folded under `summary`.
std::string html_folded(const std::string& summary, const std::string& html);

struct PageSection {
  std::string id, heading;
  std::string html;
};

/// [{"id", "heading", "html"}], for a page that shows one answer after another.
nlohmann::json sections_json(const std::vector<PageSection>& sections);

struct PageData {
  std::string_view id;
  std::string json;  ///< From script_json().
};

struct Page {
  std::string title;    ///< Title of the window.
  std::string heading;  ///< The verdict.
  std::string lead;     ///< HTML.
  std::vector<PageSection> sections;
  std::vector<std::string_view> styles;  ///< Embedded files in addition to page/shell.css.
  std::vector<PageData> data;
  std::vector<std::string_view> scripts;  ///< Embedded files in addition to page/shell.js.
  bool has_charts = false;                ///< The page needs uPlot.
};

void write_page(const Page& page, std::ostream& out);

/// Returns the text of a style or a script such as "page/shell.js", which the build embeds in the
/// program. REQUIRES: the file is embedded.
std::string_view embedded(std::string_view name);

}  // namespace foretrace
