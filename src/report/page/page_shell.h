#pragma once

// The common parts of every page: one file that loads nothing, looks the same as the others in
// light and in dark, can be printed, and can be used with the keyboard and a screen reader.
//
//     header   heading, button for the other theme
//     lead     the most important facts, in HTML
//     nav      to the sections
//     section  heading, HTML              one for each
//     footer
//     data     JSON, parsed when a script asks for it
//     scripts  page/shell.js, uPlot where there are charts, then those of the page
//
// All text from a trace goes through html_text(), html_table() or script_json(): names may contain
// any bytes. A policy in the page itself forbids it to load anything, and to run any script but
// those of the page, whose hashes it names.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/words/table.h"

namespace foretrace {

/// As text between tags or in a quoted attribute.
std::string html_text(std::string_view text);

/// A list with an item for each line; empty if there is none.
std::string html_items(const std::vector<std::string>& lines);

/// As the text of a script element, in which nothing may look like its end.
std::string script_json(const nlohmann::json& value);

/// In a box that scrolls sideways by itself. A cell of '#' alone is drawn as a bar, which screen
/// readers skip.
std::string html_table(const std::string& caption, const Table& table);

/// Folded under `summary`: the content of a picture as text.
std::string html_folded(const std::string& summary, const std::string& html);

struct PageSection {
  std::string id, heading;
  std::string html;
};

struct PageData {
  std::string_view id;
  std::string json;  ///< From script_json().
};

struct Page {
  std::string title;    ///< Title of the window.
  std::string heading;  ///< The verdict.
  std::string lead;     ///< HTML.
  std::vector<PageSection> sections;
  std::vector<std::string_view> styles;  ///< Embedded files beside page/shell.css.
  std::vector<PageData> data;
  std::vector<std::string_view> scripts;  ///< Embedded files beside page/shell.js.
  bool has_charts = false;                ///< With uPlot.
};

void write_page(const Page& page, std::ostream& out);

}  // namespace foretrace
