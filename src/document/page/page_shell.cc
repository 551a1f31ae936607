#include "document/page/page_shell.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "base/sha256.h"
#include "base/shown.h"
#include "document/page/packed_numbers.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

/// Returns the content of a cell. A bar of '#' becomes a drawn bar, which screen readers skip.
std::string html_cell(const std::string& text) {
  if (text.empty() || text.find_first_not_of('#') != std::string::npos) return html_text(text);
  return fmt::format("<span class=\"bar\" style=\"width: {}ch\" aria-hidden=\"true\"></span>",
                     text.size());
}

/// Runs before anything is drawn, so that the page does not flash in the other theme.
constexpr std::string_view kChosenTheme =
    "try { const theme = localStorage.getItem('foretrace-theme'); "
    "if (theme) document.documentElement.dataset.theme = theme; } catch {}";

/// Returns the scripts in the order in which they run; the first is in the head.
std::vector<std::string> scripts_of(const Page& page) {
  std::vector<std::string> scripts = {std::string(kChosenTheme)};
  if (page.has_charts) scripts.emplace_back(embedded("vendor/uplot/uPlot.iife.min.js"));
  scripts.push_back("\n" + std::string(embedded("page/shell.js")));
  for (const std::string_view script : page.scripts)
    scripts.push_back("\n" + std::string(embedded(script)));
  return scripts;
}

/// Returns the content security policy: the page loads nothing, and runs only our scripts, so that
/// a script that a name in a trace smuggles in does not run.
std::string policy_for(const std::vector<std::string>& scripts) {
  std::string policy = "default-src 'none'; style-src 'unsafe-inline'; script-src";
  for (const std::string& script : scripts)
    policy += fmt::format(" 'sha256-{}'", base64_of(sha256_of(script)));
  return policy + "; img-src data:; base-uri 'none'; form-action 'none'";
}

void write_script(std::string_view script, std::ostream& out) {
  out << "<script>" << script << "</script>\n";
}

void write_head(const Page& page, const std::vector<std::string>& scripts, std::ostream& out) {
  out << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\""
      << policy_for(scripts)
      << "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"
      << html_text(page.title) << "</title>\n<style>\n"
      << embedded("page/shell.css");
  if (page.has_charts) out << embedded("vendor/uplot/uPlot.min.css") << '\n';
  for (const std::string_view style : page.styles) out << embedded(style);
  out << "</style>\n";
  write_script(scripts.front(), out);
  out << "</head>\n";
}

void write_navigation(const Page& page, std::ostream& out) {
  if (page.sections.size() < 2) return;
  out << "<nav class=\"sections\" aria-label=\"Sections\"><ul>\n";
  for (const PageSection& section : page.sections) {
    out << "<li><a href=\"#" << section.id << "\">" << html_text(section.heading) << "</a></li>\n";
  }
  out << "</ul></nav>\n";
}

void write_scripts(const Page& page, const std::vector<std::string>& scripts, std::ostream& out) {
  for (const PageData& data : page.data) {
    out << "<script type=\"application/json\" id=\"" << data.id << "\">" << data.json
        << "</script>\n";
  }
  if (page.has_charts)
    out << "<!--\nuPlot, which draws the charts:\n\n"
        << embedded("vendor/uplot/LICENSE") << "\n-->\n";
  for (std::size_t i = 1; i < scripts.size(); ++i) write_script(scripts[i], out);
}

}  // namespace

std::string html_items(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string html = "<ul>\n";
  for (const std::string& line : lines) html += fmt::format("<li>{}</li>\n", html_text(line));
  return html + "</ul>\n";
}

std::string html_text(std::string_view text) {
  std::string all;
  for (const char c : shown_lines(text)) {
    if (c == '&') {
      all += "&amp;";
    } else if (c == '<') {
      all += "&lt;";
    } else if (c == '>') {
      all += "&gt;";
    } else if (c == '"') {
      all += "&quot;";
    } else {
      all += c;
    }
  }
  return all;
}

std::string script_json(const nlohmann::json& value) {
  const std::string text = json_line(value);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string html_table(const std::string& caption, const Table& table) {
  // Narrow screens show long texts below the numbers of their row.
  constexpr std::size_t kLong = 16;
  const auto is_left = [&](std::size_t column) {
    return std::ranges::find(table.left, column) != table.left.end();
  };
  const auto is_long = [&](std::size_t column) {
    return column > 0 && is_left(column) && std::ranges::any_of(table.rows, [&](const auto& row) {
             return column < row.size() && row[column].size() > kLong;
           });
  };
  std::size_t columns = table.heading.size();
  for (const auto& row : table.rows) columns = std::max(columns, row.size());
  std::vector<const char*> classes(columns, ">");
  bool has_texts = false;
  for (std::size_t i = 0; i < columns; ++i) {
    if (is_left(i)) classes[i] = is_long(i) ? " class=\"left long\">" : " class=\"left\">";
    has_texts = has_texts || is_long(i);
  }
  std::string html = fmt::format(
      "<div class=\"table{0}\" role=\"group\" tabindex=\"0\" aria-label=\"{1}\">"
      "<table aria-label=\"{1}\"><thead><tr>",
      has_texts ? " texts" : "", html_text(caption));
  if (table.heading.empty()) html.resize(html.size() - std::string_view("<thead><tr>").size());
  for (std::size_t i = 0; i < table.heading.size(); ++i) {
    const std::string heading = html_text(table.heading[i]);
    html += heading.empty() ? "<td></td>"
                            : fmt::format("<th scope=\"col\"{}{}</th>", classes[i], heading);
  }
  html += table.heading.empty() ? "<tbody>\n" : "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += fmt::format("<td{}{}</td>", classes[i], html_cell(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_folded(const std::string& summary, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(summary), html);
}

nlohmann::json sections_json(const std::vector<PageSection>& sections) {
  nlohmann::json all = nlohmann::json::array();
  for (const PageSection& section : sections)
    all.push_back({{"id", section.id}, {"heading", section.heading}, {"html", section.html}});
  return all;
}

void write_page(const Page& page, std::ostream& out) {
  const std::vector<std::string> scripts = scripts_of(page);
  write_head(page, scripts, out);
  out << "<body>\n<a class=\"skip\" href=\"#main\">Skip to the answer</a>\n<header>\n<h1>"
      << html_text(page.heading)
      << "</h1>\n<button id=\"theme\" type=\"button\" hidden>Dark theme</button>\n</header>\n"
         "<main id=\"main\">\n"
      << page.lead;
  write_navigation(page, out);
  for (const PageSection& section : page.sections) {
    out << "<section id=\"" << section.id << "\" aria-labelledby=\"" << section.id
        << "-heading\">\n<h2 id=\"" << section.id << "-heading\">" << html_text(section.heading)
        << "</h2>\n"
        << section.html << "</section>\n";
  }
  out << "</main>\n<footer>Made by foretrace " << kVersion
      << ". This page is one file; it loads nothing and sends nothing.</footer>\n"
         "<div id=\"said\" class=\"said\" aria-live=\"polite\"></div>\n";
  write_scripts(page, scripts, out);
  out << "</body>\n</html>\n";
}

}  // namespace foretrace
