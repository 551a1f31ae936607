#include "foretrace/error.h"
#include "foretrace/question/scale.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

class Scale final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "TRACE", .is_positional = true})
        .text("trace", question_.trace, "The trace of a job on one GPU");
    fields.optional_time("step_time", step_time_,
                         "Without a trace: how long a step takes on one GPU");
    fields.optional_time("update_time", question_.update_time,
                         "Without a trace: how long the optimizer's part of the step takes");
    fields.name_or_path(
        "machine", question_.machine,
        "The machine to scale on: a name from `foretrace list machines`, or a file");
    fields.as({.value = "COUNTS"})
        .text("gpus", gpus_,
              "Counts: 1..1024 doubles from one to the next, 8..64/+8 adds 8, 1,8,16 lists them");
    fields.as({.value = "STEP"})
        .texts("scheme", question_.schemes,
               "How to scale: a transform that has a setting \"gpus\", such as "
               "data_parallel:bucket=100MB; may be repeated; data_parallel by default");
    changes_.describe(fields, "What else to change before the job is scaled, as in predict",
                      "Read these changes from a JSON file");
    changes_.describe_samples(fields);
    question_.training.describe(fields);
    fields.path("ledger", question_.ledger_path, "Your own ledger of outcomes");
    reading_.describe_part(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<ScaleReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    question_.scenario = changes_.scenario();
    if (question_.trace.empty() && !step_time_)
      throw Error(
          "scale: which TRACE? Without one, give --step-time, and the scheme's gradient_bytes");
    question_.step_time = step_time_.value_or(Nanoseconds{});
    question_.gpus = within("--gpus", [&] { return read_counts(gpus_); });
    question_.reading = reading_.options(session);
    const auto activity =
        session.begin("scaling " + (question_.trace.empty() ? "a step" : question_.trace));
    return answer_of(scale(question_));
  }

 private:
  ScaleQuestion question_;
  Changes changes_;
  Reading reading_;
  std::optional<Nanoseconds> step_time_;
  std::string gpus_ = "1..64";
};

}  // namespace

std::unique_ptr<Question> make_scale() { return std::make_unique<Scale>(); }

}  // namespace foretrace
