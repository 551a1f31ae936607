#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/options/command.h"
#include "foretrace/cluster.h"
#include "foretrace/question.h"
#include "foretrace/scenario.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

class SchemaCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "WHAT", .is_positional = true, .is_required = true})
        .choice("what", what_, names(),
                "Which schema to print: of a file, or of the answers to a question");
  }

  void run(Invocation& invocation) override {
    if (const QuestionEntry* const question = find_question(what_)) {
      print_json(answer_schema(*question->make()), invocation.out);
    } else {
      print_json(what_ == "scenario" ? scenario_schema() : cluster_schema(), invocation.out);
    }
  }

 private:
  static std::vector<std::string_view> names() {
    std::vector<std::string_view> all = {"machine", "scenario"};
    for (const QuestionEntry& question : questions()) all.push_back(question.name);
    std::ranges::sort(all);
    return all;
  }

  std::string what_;
};

}  // namespace

std::unique_ptr<Command> make_schema_command() { return std::make_unique<SchemaCommand>(); }

}  // namespace foretrace
