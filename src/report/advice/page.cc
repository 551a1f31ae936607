// Advice as an HTML page: the answers, then every table that the text shows with --all.

#include <fmt/core.h>
#include <ostream>

#include "foretrace/answer/advice.h"
#include "foretrace/report.h"
#include "report/advice/words.h"
#include "report/page/page_shell.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

std::string advice_lead(const Advice& advice) {
  const AdviceVerdict verdict = advice_verdict(advice);
  std::string html;
  const auto add = [&](const char* heading, const std::string& text, const char* style) {
    if (text.empty()) return;
    html += fmt::format("<p{}>{}{}</p>\n", style, heading, html_text(text));
  };
  constexpr const char* kStrong = " class=\"verdict\"";
  add("Trust is ", trust_warning(advice.trust), kStrong);
  for (const std::string& cause : advice.causes) add("First: ", cause, kStrong);
  add("Bound by ", verdict.bound, "");
  if (advice.ladder.empty()) return html;
  add("Would help: ", verdict.help, "");
  add("At best: ", verdict.best, "");
  add("More GPUs: ", more_gpus_sentence(advice.more_gpus), "");
  return html;
}

PageSection details_section(const Advice& advice) {
  std::string html;
  for (const Suggestion* one : recommended(advice, "time"))
    html += html_folded(one->use, html_items(suggestion_details(advice, *one)));
  return {"details", "What each does", std::move(html)};
}

PageSection table_section(const char* id, const char* heading, const Table& table) {
  return {id, heading, table.rows.empty() ? "" : html_table(heading, table)};
}

std::vector<std::string> refusals(const Advice& advice) {
  std::vector<std::string> lines = not_recommended(advice);
  for (const NotTried& one : advice.not_applicable)
    lines.push_back(fmt::format("{} does not apply: {}", one.transform, one.reason));
  return lines;
}

}  // namespace

void write_advice_page(const Advice& advice, std::ostream& out) {
  const std::string source = advice.inputs.empty() ? "a recording" : advice.inputs.front().path;
  Page page{.title = "Foretrace: advice",
            .heading = "Advice for " + source,
            .lead = advice_lead(advice),
            .sections = {},
            .styles = {"page/prediction.css"},
            .data = {},
            .scripts = {}};
  for (PageSection& section : std::vector<PageSection>{
           table_section("time", "Worth doing, each alone", suggestion_table(advice, "time")),
           details_section(advice),
           {"together", "Together", html_items(joint_sentences(advice))},
           table_section("ceilings", "At most", ladder_table(advice)),
           table_section("samples", "For more samples in the same time",
                         suggestion_table(advice, "throughput")),
           table_section("devices", "On another device", suggestion_table(advice, "device")),
           table_section("memory", "Make room in memory, at this price",
                         memory_choice_table(advice)),
           table_section("speed", "How much faster is fast enough", speed_table(advice)),
           table_section("candidates", "What a step gains, each alone", candidate_table(advice)),
           {"refused", "Not advised", html_items(refusals(advice))},
           {"notes", "Notes", html_items(note_texts(advice.notes))}}) {
    if (!section.html.empty()) page.sections.push_back(std::move(section));
  }
  write_page(page, out);
}

}  // namespace foretrace
