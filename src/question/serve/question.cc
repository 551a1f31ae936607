#include "foretrace/question/serve.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

/// The code of the best of several points.
ExitCode code_of(const ServingReport& report) {
  bool is_typical = false, is_missed = false;
  for (const ServingPoint& point : report.points) {
    const SloVerdict verdict = verdict_of(point.slo);
    if (!point.refused.empty()) continue;
    if (verdict == SloVerdict::meets) return kAnswered;
    (verdict == SloVerdict::typically ? is_typical : is_missed) = true;
  }
  return is_typical ? kUndecided : is_missed ? kCheckFailed : kAnswered;
}

class ServeModel final : public Question {
 public:
  void describe(Fields& fields) override { question_.describe(fields); }

  std::vector<Form> forms() const override { return forms_of<ServingReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("serving " + question_.model);
    ServingReport report = serve_model(question_);
    const ExitCode code = code_of(report);
    return answer_of(std::move(report), code);
  }

 private:
  ServeQuestion question_;
};

}  // namespace

std::unique_ptr<Question> make_serve() { return std::make_unique<ServeModel>(); }

}  // namespace foretrace
