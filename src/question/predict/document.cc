#include "document/document.h"

#include <ostream>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/trust.h"
#include "question/words/tables.h"
#include "question/words/wording.h"

namespace foretrace {

Document document_of(const Prediction& prediction) {
  using enum Document::Heading;
  const VerdictLines lines = verdict(prediction);
  const bool is_changed = is_what_if(prediction);
  Document document(lines.what, lines.what);
  document.verdict("Trust", lines.trust).say(is_changed ? "What if" : "What", lines.what);
  document.verdict("How much", lines.how_much).say("Steps", lines.steps);
  document.say("Unprofiled", lines.unprofiled).verdict("How sure", lines.how_sure);
  document.say("Does it fit", lines.fits);
  if (prediction.training) {
    for (const auto& [word, text] : sentences_of(*prediction.training)) document.say(word, text);
  }
  document.section("Where the time goes", not_in_text);
  if (prediction.has_times) document.table(time_table(prediction));
  document.section("Memory", not_in_text).table(memory_table(prediction));
  document.section("Rates", not_in_text).table(rate_table(prediction));
  document.section("Ranks", not_in_text).table(rank_table(prediction));
  document.list("Changed in the whole recording", changes(prediction));
  document.list("Figures", figures(prediction));
  document.section("Based on").indent("  ");
  for (const EvidenceLine& evidence : evidence_lines(prediction))
    document.say(std::string(evidence.heading), evidence.sentence);
  document.list("Assumes", prediction.assumptions);
  document.titled("Longest waits on the critical path", wait_table(prediction));
  document.titled("Longest work on the critical path", work_table(prediction));
  return document.notes(prediction.notes);
}

}  // namespace foretrace
