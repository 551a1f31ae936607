#include "foretrace/error.h"
#include "foretrace/question/examine.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

class Input final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    fields.as({.value = "TRACE"})
        .text("synthetic", question_.synthetic,
              "The same job with synthetic batches made on the device");
    fields.as({.value = "TRACE"})
        .text("cached", question_.cached, "The same job with all its data cached in memory");
    fields.number("samples_per_step", question_.samples, "Samples in a recorded step, for rates", 0,
                  1e12);
    fields.integer("workers", question_.workers, "Loader processes in the recorded job", 0,
                   100'000);
    fields.optional_number("cached_share", cached_share_,
                           "Share of the data that was cached when TRACE was recorded, 0 to 1", 0);
    fields.choice("cache_policy", question_.policy, {"minio", "page_cache", "lru"},
                  "How the data was cached: minio, page_cache or lru (see `foretrace help "
                  "loader`)");
    reading_.describe_part(fields);
    reading_.describe(fields);
  }

  void check() const override {
    if (cached_share_ && *cached_share_ > 1)
      throw Error("--cached-share: must be at most 1, got " + to_text(*cached_share_));
  }

  std::vector<Form> forms() const override { return forms_of<InputReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (cached_share_) question_.cached_share = *cached_share_;
    const ImportOptions reading = reading_.options(session);
    warn_if_large(trace_, reading, session);
    const auto activity = session.begin("reading " + trace_);
    return answer_of(examine_input(trace_, question_, reading));
  }

 private:
  std::string trace_;
  InputQuestion question_;
  std::optional<double> cached_share_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_input() { return std::make_unique<Input>(); }

}  // namespace foretrace
