#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

struct ShownAdvice {
  Advice advice;
  bool shows_all = false;  ///< Also at a terminal; other forms always do.
};

Document document_of(const ShownAdvice& job) { return document_of(job.advice, true); }
nlohmann::json to_json(const ShownAdvice& job) { return to_json(job.advice); }
void write_csv(const ShownAdvice& job, std::ostream& out) { write_csv(job.advice, out); }

void write_screen(const ShownAdvice& job, std::ostream& out) {
  write_text(document_of(job.advice, job.shows_all), out);
}

class Advise final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    fields.as({.value = "TRANSFORM"})
        .texts("only", question_.only, "Try only this transform; may be repeated");
    fields.as({.value = "TRANSFORM"})
        .texts("skip", question_.skip, "Do not try this transform; may be repeated");
    fields.name_or_path("machine", question_.machine,
                        "Advise for the job on this device: a built-in name or a JSON file");
    fields.name_or_path(
        "network", question_.network,
        "The machine over whose network the job communicates, or would on more GPUs: a name from "
        "`foretrace list machines` or a file; buckets, algorithms and more GPUs are tried with it");
    fields.as({.value = "TARGET"})
        .text("until", question_.until,
              "Find how fast each part must be to reach a target, such as \"step_time <= 100ms\" "
              "or \"throughput >= 4000\"");
    fields.as({.value = "WHAT"})
        .text("vary", question_.vary,
              "With --until: vary only one part, such as link.bandwidth, or one setting, such as "
              "loader.workers=1..32");
    fields.path("candidates", question_.candidates,
                "Only rank these kernels by what a step gains: CSV with the columns name and "
                "factor (new time relative to the recorded one)");
    fields.number("samples_per_step", question_.samples,
                  "Samples in a recorded step, for throughput", 0, 1e12);
    fields.integer("top", top_, "Number of suggestions shown of each kind", 1, 1000);
    fields.path("ledger", ledger_,
                "Your own ledger of predictions and outcomes, counted in addition to the built-in "
                "one");
    fields.flag("all", all_,
                "Show everything as text: ceilings, what each suggestion does to the critical "
                "path, what is not advised");
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override {
    std::vector<Form> all = forms_of<ShownAdvice>();
    for (Form& one : all) {
      if (one.name == "text") one = form("text", write_screen);
    }
    return all;
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    question_.top = static_cast<std::size_t>(top_);
    const ImportOptions reading = reading_.options(session);
    warn_if_large(trace_, reading, session);
    const auto activity = session.begin("advising on " + trace_);
    Advice advice = advise(*session.open(trace_, {.reading = reading}), question_, ledger_);
    const ExitCode code = advice.reaches_target() ? kAnswered : kCheckFailed;
    return answer_of(ShownAdvice{std::move(advice), all_}, code);
  }

 private:
  std::string trace_, ledger_;
  AdviceQuestion question_;
  std::int64_t top_ = static_cast<std::int64_t>(AdviceQuestion{}.top);
  bool all_ = false;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_advise() { return std::make_unique<Advise>(); }

}  // namespace foretrace
