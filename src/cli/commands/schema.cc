#include <nlohmann/json.hpp>

#include "cli/options/command.h"
#include "foretrace/cluster.h"
#include "foretrace/scenario.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

class SchemaCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "WHAT", .is_positional = true, .is_required = true})
        .choice("what", what_, {"machine", "prediction", "scenario"}, "Which schema to print");
  }

  void run(Invocation& invocation) override {
    print_json(what_ == "scenario"     ? scenario_schema()
               : what_ == "prediction" ? prediction_schema()
                                       : cluster_schema(),
               invocation.out);
  }

 private:
  std::string what_;
};

}  // namespace

std::unique_ptr<Command> make_schema_command() { return std::make_unique<SchemaCommand>(); }

}  // namespace foretrace
