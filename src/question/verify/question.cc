#include "foretrace/question/verify.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

ExitCode code_of(Agreement agreement) {
  if (agreement == Agreement::near) return kUndecided;
  return agreement == Agreement::outside ? kCheckFailed : kAnswered;
}

class Verify final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "PREDICTION", .is_positional = true, .is_required = true})
        .path("prediction", prediction_, "The output of predict --format json");
    fields.as({.value = "TRACE", .is_positional = true, .is_required = true})
        .text("measured", measured_,
              "Recorded after the change was made; a trace, or a folder with the traces of all "
              "ranks");
    fields.as({.value = "TRACE"})
        .text("trace", options_.trace,
              "The trace that the prediction was made from, if it has moved");
    fields.as({.value = "OUT"})
        .path("ledger", options_.ledger_path,
              "Add the outcome to this ledger of your own, which predict --ledger reads");
    reading_.describe(fields);
  }

  std::string remarks() const override {
    return "Exits with 0 if the measured step time is inside the predicted interval, with 1 if it "
           "is not, and with 4 if it is not but some of the measured steps are.";
  }

  std::vector<Form> forms() const override { return forms_of<Verification>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    options_.reading = reading_.options(session);
    const auto activity = session.begin("verifying " + prediction_);
    Verification result = verify(prediction_, measured_, options_);
    const ExitCode code = code_of(result.agreement);
    return answer_of(std::move(result), code);
  }

 private:
  std::string prediction_, measured_;
  VerifyOptions options_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_verify() { return std::make_unique<Verify>(); }

}  // namespace foretrace
