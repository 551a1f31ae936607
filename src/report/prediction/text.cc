#include <ostream>

#include "foretrace/report.h"
#include "report/prediction/registered.h"
#include "report/words/tables.h"
#include "report/words/text_parts.h"
#include "report/words/wording.h"

namespace foretrace {

void write_text(const Prediction& prediction, std::ostream& out) {
  const VerdictLines lines = verdict(prediction);
  if (!lines.trust.empty()) write_headed(out, "Trust", lines.trust);
  write_headed(out, is_what_if(prediction) ? "What if" : "What", lines.what);
  write_headed(out, "How much", lines.how_much);
  if (!lines.steps.empty()) write_headed(out, "Steps", lines.steps);
  if (!lines.unprofiled.empty()) write_headed(out, "Unprofiled", lines.unprofiled);
  write_headed(out, "How sure", lines.how_sure);
  if (!lines.fits.empty()) write_headed(out, "Does it fit", lines.fits);

  if (prediction.has_times) {
    out << '\n';
    write_aligned(time_table(prediction), out);
  }
  const Table memory = memory_table(prediction);
  if (!memory.rows.empty()) {
    out << '\n';
    write_aligned(memory, out);
  }

  if (const Table rates = rate_table(prediction); !rates.rows.empty()) {
    out << '\n';
    write_aligned(rates, out);
  }

  if (const Table ranks = rank_table(prediction); !ranks.rows.empty()) {
    out << '\n';
    write_aligned(ranks, out);
  }

  write_list(out, "Changed in the whole recording", changes(prediction));
  write_list(out, "Figures", figures(prediction));

  out << "\nBased on\n";
  for (const EvidenceLine& evidence : evidence_lines(prediction)) {
    write_headed(out, "  " + std::string(evidence.heading), evidence.sentence, kSentenceColumn + 2);
  }
  write_list(out, "Assumes", prediction.assumptions);
  write_titled(out, "Longest waits on the critical path", wait_table(prediction));
  write_titled(out, "Longest work on the critical path", work_table(prediction));
  write_list(out, "Notes", note_texts(prediction.notes));
}

}  // namespace foretrace
