#include "ask/check/undecided.h"

#include <algorithm>

#include "ask/predict/trust.h"

namespace foretrace {
namespace {

/// The reason why the job cannot be judged; empty if it can.
std::string why_undecided(const Trust& trust) {
  if (const TrustReason* cut = trust.reason(kCutOffReason)) return cut->text;
  return trust.grade() == Grade::poor ? "trust is " + trust_warning(trust) : "";
}

}  // namespace

Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited) {
  Trust trust = trust_in_recording(inference, notes,
                                   is_edited ? AnswerAbout::changes : AnswerAbout::recorded);
  if (is_edited) return trust;
  for (TrustReason& reason : trust.reasons) reason.grade = std::min(reason.grade, Grade::fair);
  return trust;
}

void leave_undecided(const CheckOptions& options, CheckReport& report) {
  const std::string why = why_undecided(report.trust);
  if (why.empty()) return;
  for (CheckedFigure& figure : report.figures) {
    if (figure.standing == CheckOutcome::left_out) continue;
    figure.standing = options.undecided.value_or(CheckOutcome::undecided);
    figure.why = why;
  }
}

}  // namespace foretrace
