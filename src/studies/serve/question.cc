#include "foretrace/error.h"
#include "foretrace/question/scale.h"
#include "question/common/forms.h"
#include "studies/serve/serve_plan.h"

namespace foretrace {
namespace {

class PlanServe final : public Question {
 public:
  PlanServe() { question_.served.cache = "any"; }

  void describe(Fields& fields) override {
    ServeQuestion& served = question_.served;
    served.describe_served(fields);
    fields.choice("cache", served.cache, {"any", "bf16", "fp8", "fp4"},
                  "Precision of keys and values; any: bf16, or fp8 where bf16 needs more GPUs");
    fields.as({.value = "TIMES"})
        .text("slo", question_.slo,
              "Longest times: ttft, tpot, itl or end_to_end with _mean, _p50, _p90 or _p99, as in "
              "ttft_p99=2s,tpot_p99=50ms");
    fields.as({.value = "COUNTS"})
        .text("gpus", gpus_, "Counts to choose from: 8, or 1..16; by default all of the machine");
    fields.as({.value = "COUNTS"})
        .text("tensor", tensor_, "Tensor parallel GPUs to choose from; by default all that fit");
    served.describe_memory(fields);
    served.describe_measured(fields);
    served.describe_prices(fields);
    fields.integer("top", top_, "How many configurations to rank", 1, 1000);
  }

  std::string remarks() const override {
    return "The search covers how a copy is placed (tensor parallel GPUs, ranks of data parallel "
           "attention, groups of experts), how many copies there are, how many of them only "
           "compute prompts, max_num_seqs and max_num_batched_tokens where --engine does not set "
           "them, and the precision of the cache. Each is replayed as `serve` replays it.\n"
           "  foretrace plan serve llama3-70b --machine dgx-h100 --load "
           "rate=4,input=2000,output=300 --slo ttft_p99=2s,tpot_p99=50ms";
  }

  std::vector<Form> forms() const override { return forms_of<ServePlanReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (!gpus_.empty()) question_.gpus = within("--gpus", [&] { return read_counts(gpus_); });
    if (!tensor_.empty())
      question_.tensor = within("--tensor", [&] { return read_counts(tensor_); });
    question_.top = static_cast<std::size_t>(top_);
    const auto activity = session.begin("planning how to serve " + question_.served.model);
    return answer_of(plan_serve(question_));
  }

 private:
  ServePlanQuestion question_;
  std::string gpus_, tensor_;
  std::int64_t top_ = static_cast<std::int64_t>(ServePlanQuestion{}.top);
};

}  // namespace

std::unique_ptr<Question> make_plan_serve() { return std::make_unique<PlanServe>(); }

}  // namespace foretrace
