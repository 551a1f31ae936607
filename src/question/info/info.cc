#include <optional>

#include "foretrace/ask/examine.h"
#include "question/common/forms.h"
#include "question/common/reading.h"
#include "report/trace/serving_kinds.h"

namespace foretrace {
namespace {

struct Examined {
  std::vector<ExaminedTrace> recordings;
};

Document document_of(const Examined& all) {
  Document document("Recording", "What was recorded");
  for (const ExaminedTrace& one : all.recordings)
    add_info(one.trace, one.steps ? &*one.steps : nullptr, one.among ? &*one.among : nullptr,
             document);
  return document;
}

nlohmann::json described(const ExaminedTrace& one) {
  return describe_trace(one.trace, one.steps ? &*one.steps : nullptr,
                        one.among ? &*one.among : nullptr);
}

/// Returns one object for one trace, and an array for several.
nlohmann::json to_json(const Examined& examined) {
  const std::vector<ExaminedTrace>& recordings = examined.recordings;
  if (recordings.size() == 1) return described(recordings[0]);
  nlohmann::json all = nlohmann::json::array();
  for (const ExaminedTrace& one : recordings) all.push_back(described(one));
  return all;
}

/// Prints the table of serving steps of the first rank, which stands for the others.
void write_csv(const Examined& examined, std::ostream& out) {
  write_steps_csv(examined.recordings[0].trace, out);
}

class Info final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<Examined>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("reading " + trace_);
    return answer_of(Examined{examine_traces(trace_, reading_.options(session))});
  }

 private:
  std::string trace_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_info() { return std::make_unique<Info>(); }

}  // namespace foretrace
