#include "foretrace/error.h"
#include "foretrace/question/pipeline.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

/// Only the report or the rows are there, unless both are wanted.
struct ShownPipeline {
  PipelineReport report;
  std::string rows;  ///< CSV of torch.distributed.pipelining.
};

Document document_of(const ShownPipeline& shown) { return document_of(shown.report); }
void complete(ShownPipeline& shown) { shown.report.settings_json = kFilledText; }
nlohmann::json to_json(const ShownPipeline& shown) { return to_json(shown.report); }
void write_csv(const ShownPipeline& shown, std::ostream& out) { out << shown.rows; }

class PlanShow final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "PLAN", .is_positional = true})
        .text("plan", question_.plan,
              "A schedule with its settings: NAME:SETTING=VALUE,...; with --file only the settings "
              "of times");
    fields.path("file", question_.file,
                "Show this schedule: CSV of torch.distributed.pipelining, one line per rank");
  }

  std::string remarks() const override {
    return "Settings are those of the schedule, such as stages (ranks of the pipeline) and "
           "micro_batches, and the times that a rank takes for a micro-batch: forward, backward, "
           "weight, communication, recompute, all_reduce, update; also layers and bytes. "
           "`foretrace list schedules` shows all schedules, `foretrace help 1f1b` the settings of "
           "one.\n"
           "backward is the whole backward pass, unless weight is given: then backward is the "
           "input gradient, and schedules that do not split the backward pass take the sum of "
           "both. Times are those of a whole rank; its chunks share them.\n"
           "bubble_rate is 1 - work of a rank / longest span of a rank. A forward pass (of a "
           "chunk, where ranks have several) is in flight until its input gradient is done.\n"
           "csv is the schedule in the format that torch.distributed.pipelining reads.\n"
           "  foretrace plan show "
           "zb_h1:stages=4,micro_batches=8,forward=1ms,backward=1ms,weight=1ms";
  }

  std::vector<Form> forms() const override { return forms_of<ShownPipeline>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (question_.plan.empty() && question_.file.empty())
      throw Error(
          "plan show: needs a schedule, as in `foretrace plan show 1f1b:stages=4`, or --file; "
          "`foretrace list schedules` shows all");
    ShownPipeline shown;
    if (session.wants("csv")) shown.rows = pipeline_csv(question_);
    if (!session.wants("csv") || session.wants("html") || session.wants("json"))
      shown.report = show_pipeline(question_);
    return answer_of(std::move(shown));
  }

 private:
  PipelineQuestion question_;
};

}  // namespace

std::unique_ptr<Question> make_plan_show() { return std::make_unique<PlanShow>(); }

}  // namespace foretrace
