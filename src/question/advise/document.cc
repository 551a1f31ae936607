// Advice for people, as text and as Markdown.

#include "document/document.h"

#include <fmt/core.h>
#include <ostream>

#include "base/shown.h"
#include "document/words/wrapped.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/trust.h"
#include "question/advise/words.h"
#include "question/words/tables.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

/// Limits that keep the short answer small enough for one screen.
constexpr std::size_t kScreenWidth = 100;
constexpr std::size_t kMaxFirst = 2;
constexpr const char* kCandidates = "What a step gains, each alone";

void say_verdict(const Advice& advice, Document& document) {
  const AdviceVerdict verdict = advice_verdict(advice);
  document.verdict("Trust", trust_warning(advice.trust)).verdict("Bound by", verdict.bound);
  for (std::size_t i = 0; i < advice.causes.size() && i < kMaxFirst; ++i)
    document.say(i == 0 ? "First" : " ", advice.causes[i]);
  if (advice.ladder.empty()) return;
  document.verdict("Would help", verdict.help).verdict("At best", verdict.best);
  document.say("More GPUs", more_gpus_sentence(advice.more_gpus));
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

void add_suggestions(const Advice& advice, Document& document) {
  for (const GoalTitle& goal : kGoals)
    document.titled(goal.title, suggestion_table(advice, goal.goal));
  for (const Suggestion* one : recommended(advice, "time"))
    document.section("").folded(one->use, suggestion_details(advice, *one));
}

/// Summarizes the table of ceilings in one line.
std::string ceilings_sentence(const Advice& advice) {
  std::string text;
  for (const AdviceCeiling& ceiling : advice.ladder) {
    if (ceiling.is_present && ceiling.name != "all" && ceiling.name != "overlap")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", ceiling.title,
                          change_text(advice.step_time, ceiling.step_time));
  }
  return text.empty() ? text : "if it took no time: " + text;
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

/// Adds one screen of 24 lines: the best suggestions and ceilings.
void add_short(const Advice& advice, Document& document) {
  if (!advice.ladder.empty()) {
    document.titled("Worth doing, each alone", short_table(advice));
    document.section("Ceilings", Document::Heading::not_in_text)
        .say("At most", ceilings_sentence(advice));
    document.section("").say(
        "Use --all to see ceilings, what each suggestion does to the path, and what is not "
        "advised and why");
    return;
  }
  document.titled("How much faster is fast enough", speed_table(advice));
  document.titled(kCandidates, candidate_table(advice)).notes(advice.notes);
}

void add_all(const Advice& advice, Document& document) {
  if (std::string gains = gains_picture(advice); !gains.empty()) {
    document.section("Gains", Document::Heading::not_in_text).draw({[gains = std::move(gains)] {
      return Picture::Made{gains};
    }});
  }
  document.titled("At most: what would be gained if something took no time", ladder_table(advice));
  add_suggestions(advice, document);
  if (advice.joint)
    document.list("Together", joint_sentences(advice)).titled("", pair_table(advice));
  document.titled("Make room in memory, at this price", memory_choice_table(advice));
  document.titled("How much faster is fast enough", speed_table(advice));
  document.titled(kCandidates, candidate_table(advice));
  document.list("Not advised", not_recommended(advice));
  document.list("Not applicable", not_applicable(advice));
  if (!advice.no_advice.empty())
    document.section("").say(fmt::format(
        "Not tried, because you must choose first: {} (see foretrace help transform NAME)",
        names_of(advice.no_advice)));
  document.notes(advice.notes);
}

}  // namespace

Document document_of(const Advice& advice, bool is_whole) {
  const std::string source = advice.inputs.empty() ? "a recording" : advice.inputs.front().path;
  Document document("advice", "Advice for " + source);
  document.width = kScreenWidth;
  say_verdict(advice, document);
  document.say("Rank", advice.rank_choice);
  document.say("Now", now_sentence(advice));
  if (advice.target) document.say("Target", target_sentence(advice));
  if (advice.curve) document.append(document_of(*advice.curve));
  if (is_whole)
    add_all(advice, document);
  else
    add_short(advice, document);
  return document;
}

}  // namespace foretrace
