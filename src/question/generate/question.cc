#include "foretrace/question/generate.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/model.h"

namespace foretrace {
namespace {

class Generate final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_model(fields, question_);
    describe_launch(fields, question_);
    fields.optional_integer("gpus", question_.gpus,
                            "With --config: GPUs of the job, if the file does not say how many", 1);
    fields.as({.value = "SETTINGS"})
        .text("layout", question_.layout,
              "tp, pp, dp, cp, ep, micro_batch, global_batch, recompute, ...: "
              "tp=8,pp=12,dp=4,micro_batch=1,global_batch=512");
    describe_memory_limit(fields, limit_,
                          "Memory of a device, such as 40GB; by default all it has");
    question_.training.describe(fields);
    describe_calibration(fields, question_);
    fields.path("against", question_.against,
                "Compare with measured steps in a table as for --calibrate, except the rows that "
                "prices were fitted to");
  }

  std::vector<Form> forms() const override { return forms_of<GenerationReport>(); }

  std::unique_ptr<Answer> ask(Session&) override {
    question_.memory_limit = memory_limit_of(limit_);
    return answer_of(generate_step(question_));
  }

 private:
  GenerateQuestion question_;
  std::string limit_;
};

}  // namespace

std::unique_ptr<Question> make_generate() { return std::make_unique<Generate>(); }

}  // namespace foretrace
