#include "foretrace/error.h"
#include "foretrace/question/scale.h"
#include "question/common/forms.h"
#include "question/common/reading.h"
#include "studies/size/size.h"

namespace foretrace {

static void complete(SizingReport& report) { report.batches.resize(kFilledLength); }

namespace {

class PlanSize final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "TRACE", .is_positional = true})
        .text("trace", question_.trace, "The trace of a job on one GPU");
    fields.optional_time("compute", question_.compute,
                         "Without a trace: time of the kernels of a step");
    fields.optional_time("overhead", question_.overhead,
                         "Without a trace: time of a step beyond its kernels, which nothing hides");
    fields.as({.value = "COUNTS"})
        .text("gpus", gpus_, "Counts to answer for: 8, or 1..64, or 1,4,6");
    fields.as({.value = "TIMES"})
        .optional_number("speedup", question_.speedup,
                         "Find how many GPUs make the job this many times as fast as one");
    fields.as({.value = "SHARE"})
        .optional_number("efficiency", question_.efficiency,
                         "Find up to how many GPUs each one does at least this share of what one "
                         "alone does, such as 0.9");
    fields.bandwidth("server_bandwidth", question_.server,
                     "Find how many parameter servers of this bandwidth hide their traffic");
    fields.optional_bytes("model_bytes", question_.model,
                          "Size of the model; by default that of the gradients in the trace");
    fields.as({.value = "LAYERS"})
        .path("layers", question_.layers,
              "Choose a batch, and an algorithm for each layer, from this file");
    fields.optional_bytes("memory", question_.memory, "With --layers: memory of a GPU");
    fields.as({.value = "WORD"})
        .text("solver", question_.solver, "With --layers: exact, or milp (the same by glpk)");
    reading_.describe(fields);
  }

  std::string remarks() const override {
    return "GPUs divide the computation C of a step among them, but each still has the whole "
           "overhead O, which nothing hides. With R = O / C, G GPUs are G (1 + R) / (1 + G R) "
           "times as fast as one.\n"
           "LAYERS is JSON: {\"samples\": 1281167, \"batches\": [{\"size\": 128, \"epochs\": 60, "
           "\"feature_maps\": \"3GB\", \"parameters\": \"1GB\", \"classifier\": \"200MB\", "
           "\"layers\": [{\"name\": \"conv1\", \"algorithms\": [{\"name\": \"fft\", \"time\": "
           "\"3ms\", \"memory\": \"1GB\"}, {\"name\": \"gemm\", \"time\": \"5ms\"}]}]}]}\n"
           "  foretrace plan size job.json.gz --gpus 1..16 --speedup 3\n"
           "  foretrace plan size --compute 1s --overhead 100ms --gpus 8 --model-bytes 244MB "
           "--server-bandwidth 10Gb/s\n"
           "  foretrace plan size --layers layers.json --memory 12GB";
  }

  std::vector<Form> forms() const override { return forms_of<SizingReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (!gpus_.empty()) question_.gpus = within("--gpus", [&] { return read_counts(gpus_); });
    question_.reading = reading_.options(session);
    return answer_of(size_job(question_));
  }

 private:
  SizeQuestion question_;
  std::string gpus_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_plan_size() { return std::make_unique<PlanSize>(); }

}  // namespace foretrace
