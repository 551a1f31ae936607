#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "foretrace/ask/predict.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

void show_schema(const std::string& what, Session& session) {
  const std::vector<std::string_view> names = {"machine", "prediction", "scenario"};
  if (what == "scenario") return print_json(scenario_schema(), session.out);
  if (what == "prediction") return print_json(prediction_schema(), session.out);
  if (what == "machine") return print_json(cluster_schema(), session.out);
  throw Error(fmt::format("schema: must be machine, prediction or scenario, got '{}'{}", what,
                          did_you_mean(what, names)));
}

}  // namespace

void add_schema(CLI::App& command, Session& session) {
  const auto what = std::make_shared<std::string>();
  command.add_option("WHAT", *what, "Which schema to print")
      ->type_name("machine|prediction|scenario")
      ->required();
  command.callback([what, &session] { show_schema(*what, session); });
}

}  // namespace foretrace
