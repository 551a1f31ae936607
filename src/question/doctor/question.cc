#include <algorithm>

#include "foretrace/question/examine.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

using Diagnoses = std::vector<Diagnosis>;

class Doctor final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<Diagnoses>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("examining " + trace_);
    Diagnoses ranks = diagnose(trace_, reading_.options(session));
    const bool is_usable =
        std::ranges::all_of(ranks, [](const Diagnosis& one) { return one.replay.has_value(); });
    return answer_of(std::move(ranks), is_usable ? kAnswered : kUnusableTrace);
  }

 private:
  std::string trace_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace foretrace
