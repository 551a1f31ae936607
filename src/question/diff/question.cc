#include <fmt/core.h>

#include "foretrace/question/diff.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

class DiffJobs final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "A", .is_positional = true, .is_required = true})
        .text("before", before_, "A trace, or a folder with the traces of all ranks");
    fields.as({.value = "B", .is_positional = true, .is_required = true})
        .text("after", after_, "The same job, recorded after a change");
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<DiffReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin(fmt::format("comparing {} with {}", before_, after_));
    return answer_of(
        diff(before_, after_, reading_.options(session), {.with_names = session.wants("csv")}));
  }

 private:
  std::string before_, after_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_diff() { return std::make_unique<DiffJobs>(); }

}  // namespace foretrace
