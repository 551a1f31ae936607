#include <fmt/core.h>
#include <map>

#include "base/parse_number.h"
#include "foretrace/error.h"
#include "question/common/forms.h"
#include "studies/system/system.h"

namespace foretrace {
namespace {

class PlanSystem final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "FILE", .is_positional = true, .is_required = true})
        .path("file", file_, "The description of a system");
    fields.as({.value = "NAME=NUMBER"})
        .texts("set", settings_, "Replace the number of a setting: M=20; may be repeated");
  }

  std::string remarks() const override {
    return "FILE is JSON: tasks on lanes, with times in seconds that are formulas of its settings. "
           "Rows are cases with other settings. A search tries values and shows the best one. If "
           "an assertion does not hold, the exit code is 1. \"asks\" takes numbers from answers of "
           "other questions, and \"published\" says which figures are in range of a paper's. "
           "scenarios/systems and scenarios/claims have examples.\n"
           "  {\"settings\": {\"N\": 100, \"M\": 4}, \"tasks\": [{\"name\": \"start\", \"time\": "
           "\"12\"}, {\"name\": \"map\", \"lanes\": \"M\", \"count\": \"N\", \"time\": \"0.5\", "
           "\"after\": [\"start\"]}], \"figures\": [\"rate = N / time\"], \"search\": {\"M\": "
           "\"1..8\"}, \"minimize\": \"time * M\"}\n"
           "  foretrace plan system cluster.json --set M=20";
  }

  std::vector<Form> forms() const override { return forms_of<SystemReport>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    SystemReport report =
        run_system(file_, numbers(), {.root = session.root(), .stop = &session.stop()});
    const ExitCode code = report.holds() ? kAnswered : kCheckFailed;
    return answer_of(std::move(report), code);
  }

 private:
  std::map<std::string, double> numbers() const {
    std::map<std::string, double> all;
    for (const std::string& text : settings_) {
      const std::size_t sign = text.find('=');
      const auto value = sign == std::string::npos
                             ? std::nullopt
                             : parse_number<double>(std::string_view(text).substr(sign + 1));
      if (!value) throw Error(fmt::format("--set: must be NAME=NUMBER, got \"{}\"", text));
      all[text.substr(0, sign)] = *value;
    }
    return all;
  }

  std::string file_;
  std::vector<std::string> settings_;
};

}  // namespace

std::unique_ptr<Question> make_plan_system() { return std::make_unique<PlanSystem>(); }

}  // namespace foretrace
