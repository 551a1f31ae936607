#include <optional>

#include "foretrace/ask/examine.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

using Examined = std::vector<ExaminedTrace>;

void write_examined_text(const Examined& all, std::ostream& out) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out << '\n';
    write_info(all[i].trace, out, all[i].steps ? &*all[i].steps : nullptr,
               all[i].among ? &*all[i].among : nullptr);
  }
}

nlohmann::json described(const ExaminedTrace& one) {
  return describe_trace(one.trace, one.steps ? &*one.steps : nullptr,
                        one.among ? &*one.among : nullptr);
}

/// Prints one object for one trace, and an array for several.
void write_examined_json(const Examined& recordings, std::ostream& out) {
  if (recordings.size() == 1) return print_json(described(recordings[0]), out);
  nlohmann::json all = nlohmann::json::array();
  for (const ExaminedTrace& one : recordings) all.push_back(described(one));
  print_json(all, out);
}

class Info final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override {
    return {form("text", write_examined_text), form("json", write_examined_json)};
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("reading " + trace_);
    return answer_of(examine_traces(trace_, reading_.options(session)));
  }

 private:
  std::string trace_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_info() { return std::make_unique<Info>(); }

}  // namespace foretrace
