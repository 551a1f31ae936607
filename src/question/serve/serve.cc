#include "foretrace/ask/serve.h"

#include "question/common/forms.h"

namespace foretrace {
namespace {

class ServeModel final : public Question {
 public:
  void describe(Fields& fields) override { question_.describe(fields); }

  std::vector<Form> forms() const override { return forms_of<ServingReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("serving " + question_.model);
    return answer_of(serve_model(question_));
  }

 private:
  ServeQuestion question_;
};

}  // namespace

std::unique_ptr<Question> make_serve() { return std::make_unique<ServeModel>(); }

}  // namespace foretrace
