// Advice for people, as text and as Markdown.

#include <fmt/core.h>
#include <ostream>

#include "base/shown.h"
#include "foretrace/report.h"
#include "report/advice/words.h"
#include "report/words/tables.h"
#include "report/words/text_parts.h"
#include "report/words/wording.h"
#include "report/words/wrapped.h"

namespace foretrace {
namespace {

/// Limits that keep the short answer small enough for one screen.
constexpr std::size_t kScreenWidth = 100;
constexpr std::size_t kMostFirst = 2;
constexpr const char* kCandidates = "What a step gains, each alone";

void write_head(std::ostream& out, std::string_view heading, const std::string& sentence) {
  write_headed(out, heading, sentence, kSentenceColumn, kScreenWidth);
}

void write_heads(const Advice& advice, std::ostream& out) {
  const AdviceVerdict verdict = advice_verdict(advice);
  if (const std::string warning = trust_warning(advice.trust); !warning.empty())
    write_head(out, "Trust", warning);
  write_head(out, "Bound by", verdict.bound);
  for (std::size_t i = 0; i < advice.causes.size() && i < kMostFirst; ++i)
    write_head(out, i == 0 ? "First" : "", advice.causes[i]);
  if (advice.ladder.empty()) return;
  write_head(out, "Would help", verdict.help);
  write_head(out, "At best", verdict.best);
  if (const std::string more = more_gpus_sentence(advice.more_gpus); !more.empty())
    write_head(out, "More GPUs", more);
}

std::string now_sentence(const Advice& advice) {
  std::string text =
      to_text(advice.step_time) + (advice.has_steps ? " a step" : " for the whole recording");
  if (!advice.machine.empty())
    text += ", predicted for " + advice.machine;
  else
    text += fmt::format(", {} off what was measured", to_percent(advice.replay_error, 2));
  if (const std::string rates = rates_text(advice.rates, advice.breakdown, advice.step_time);
      !rates.empty())
    text += "; " + rates;
  if (advice.allocated) {
    text += fmt::format("; {} allocated at the peak", to_text(*advice.allocated));
    if (advice.memory > Bytes{}) text += " of " + to_text(advice.memory);
  }
  return text + warnings_hint(advice.notes);
}

/// Returns a line for each transform that does not apply, with the reason.
std::vector<std::string> not_applicable(const Advice& advice) {
  std::vector<std::string> lines;
  for (const NotTried& one : advice.not_applicable)
    lines.push_back(fmt::format("{}: {}", one.transform, one.reason));
  return lines;
}

std::string names_of(const std::vector<NotTried>& all) {
  std::string names;
  for (const NotTried& one : all) names += (names.empty() ? "" : ", ") + one.transform;
  return names;
}

struct GoalTitle {
  const char* goal;
  const char* title;
};
constexpr GoalTitle kGoals[] = {{"time", "Worth doing, each alone"},
                                {"throughput", "For more samples in the same time"},
                                {"device", "On another device"}};

void write_suggestions(const Advice& advice, std::ostream& out) {
  for (const GoalTitle& goal : kGoals)
    write_titled(out, goal.title, suggestion_table(advice, goal.goal));
  for (const Suggestion* one : recommended(advice, "time")) {
    out << "\n  " << shown(one->use) << '\n';
    for (const std::string& line : suggestion_details(advice, *one))
      out << "    " << wrapped(line, 6) << '\n';
  }
}

void write_joint(const Advice& advice, std::ostream& out) {
  if (!advice.joint) return;
  write_list(out, "Together", joint_sentences(advice));
  write_titled(out, "", pair_table(advice));
}

void write_answers(const Advice& advice, std::ostream& out) {
  write_heads(advice, out);
  write_head(out, "Now", now_sentence(advice));
  if (advice.target) write_head(out, "Target", target_sentence(advice));
  if (advice.curve) {
    out << '\n';
    write_curve_text(*advice.curve, out);
  }
}

/// Summarizes the table of ceilings in one line.
void write_ceilings(const Advice& advice, std::ostream& out) {
  std::string text;
  for (const AdviceCeiling& ceiling : advice.ladder) {
    if (ceiling.is_present && ceiling.name != "all" && ceiling.name != "overlap")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", ceiling.title,
                          change_text(advice.step_time, ceiling.step_time));
  }
  if (text.empty()) return;
  out << '\n';
  write_head(out, "At most", "if it took no time: " + text);
}

/// Returns a narrow table of the suggestions that are recommended because they save time.
Table short_table(const Advice& advice) {
  Table table{.heading = {"", "step", "change", "between", "sure"}, .rows = {}, .left = {0, 4}};
  for (const Suggestion* one : recommended(advice, "time")) {
    table.rows.push_back(
        {one->use, to_text(one->step_time), change_text(advice.step_time, one->step_time),
         fmt::format("{} to {}", to_text(one->lower), to_text(one->upper)), one->confidence.word});
  }
  return table;
}

}  // namespace

void write_advice_text(const Advice& advice, std::ostream& out) {
  write_answers(advice, out);
  if (!advice.ladder.empty()) {
    const Table table = short_table(advice);
    write_titled(out, "Worth doing, each alone", table);
    write_ceilings(advice, out);
    out << "\nUse --all to see ceilings, what each suggestion does to the path, and what is not "
           "advised and why\n";
    return;
  }
  write_titled(out, "How much faster is fast enough", speed_table(advice));
  write_titled(out, kCandidates, candidate_table(advice));
  write_list(out, "Notes", note_texts(advice.notes));
}

void write_whole_advice_text(const Advice& advice, std::ostream& out) {
  write_answers(advice, out);
  write_titled(out, "At most: what would be gained if something took no time",
               ladder_table(advice));
  write_suggestions(advice, out);
  write_joint(advice, out);
  write_titled(out, "Make room in memory, at this price", memory_choice_table(advice));
  write_titled(out, "How much faster is fast enough", speed_table(advice));
  write_titled(out, kCandidates, candidate_table(advice));
  write_list(out, "Not advised", not_recommended(advice));
  write_list(out, "Not applicable", not_applicable(advice));
  if (!advice.no_advice.empty())
    out << "\n"
        << wrapped(fmt::format("Not tried, because you must choose first: {} "
                               "(see foretrace help transform NAME)",
                               names_of(advice.no_advice)),
                   0)
        << '\n';
  write_list(out, "Notes", note_texts(advice.notes));
}

void write_advice_markdown(const Advice& advice, std::ostream& out) {
  const auto section = [&](const std::string& title, const Table& table) {
    if (table.rows.empty()) return;
    out << "\n### " << title << "\n\n";
    write_markdown_table(table, out);
  };
  const auto lines = [&](const std::string& title, const std::vector<std::string>& all) {
    if (all.empty()) return;
    out << "\n### " << markdown_text(title) << "\n\n";
    for (const std::string& line : all) out << "* " << markdown_text(line) << '\n';
  };
  const AdviceVerdict verdict = advice_verdict(advice);
  out << markdown_trust(trust_warning(advice.trust));
  for (const std::string& cause : advice.causes)
    out << "**First:** " << markdown_text(cause) << "\n\n";
  out << "**Bound by " << markdown_text(verdict.bound) << "**\n\n";
  if (!advice.ladder.empty()) {
    out << "**Would help:** " << markdown_text(verdict.help) << "\n\n**At best:** "
        << markdown_text(verdict.best) << "\n\n";
  }
  if (const std::string more = more_gpus_sentence(advice.more_gpus); !more.empty())
    out << "**More GPUs:** " << markdown_text(more) << "\n\n";
  out << "Now " << markdown_text(now_sentence(advice)) << ".\n";
  if (advice.target) out << "\nTarget: " << markdown_text(target_sentence(advice)) << "\n";
  if (advice.curve) {
    out << '\n';
    write_curve_markdown(*advice.curve, out);
  }
  section("At most", ladder_table(advice));
  for (const GoalTitle& goal : kGoals) section(goal.title, suggestion_table(advice, goal.goal));
  for (const Suggestion* one : recommended(advice, "time"))
    lines(one->use, suggestion_details(advice, *one));
  lines("Together", joint_sentences(advice));
  section("Two together", pair_table(advice));
  section("Make room in memory, at this price", memory_choice_table(advice));
  section("How much faster is fast enough", speed_table(advice));
  section(kCandidates, candidate_table(advice));
  lines("Not advised", not_recommended(advice));
  lines("Not applicable", not_applicable(advice));
  lines("Notes", note_texts(advice.notes));
}

}  // namespace foretrace
