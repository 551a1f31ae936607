#include "cli/commands/plan_system.h"

#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/parse_number.h"
#include "cli/options/options.h"
#include "foretrace/ask/system.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct PlanSystemCommand {
  std::string file;
  std::vector<std::string> settings;
  std::map<std::string, double> numbers;
  FormatOption format{{"text", "json"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    command.footer(
        "FILE is JSON: tasks on lanes, with times in seconds that are formulas of its settings. "
        "Rows are cases with other settings. A search tries values and shows the best one. If an "
        "assertion does not hold, the exit code is 1. scenarios/systems has examples.\n"
        "  {\"settings\": {\"N\": 100, \"M\": 4}, \"tasks\": [{\"name\": \"start\", \"time\": "
        "\"12\"}, "
        "{\"name\": \"map\", \"lanes\": \"M\", \"count\": \"N\", \"time\": \"0.5\", \"after\": "
        "[\"start\"]}], \"figures\": [\"rate = N / time\"], \"search\": {\"M\": \"1..8\"}, "
        "\"minimize\": \"time * M\"}\n"
        "  foretrace plan system cluster.json --set M=20");
    command.add_option("FILE", file, "The description of a system")->required();
    command.add_option("--set", settings, "Replace the number of a setting: M=20; may be repeated")
        ->type_name("NAME=NUMBER")
        ->allow_extra_args(false);
    format.add_to(command);
    output.add_to(command);
  }

  void read_settings() {
    for (const std::string& text : settings) {
      const std::size_t sign = text.find('=');
      const auto value = sign == std::string::npos
                             ? std::nullopt
                             : parse_number<double>(std::string_view(text).substr(sign + 1));
      if (!value) throw Error(fmt::format("--set: must be NAME=NUMBER, got \"{}\"", text));
      numbers[text.substr(0, sign)] = *value;
    }
  }

  void run(Session& session) {
    format.check();
    read_settings();
    const SystemReport report = run_system(file, numbers);
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      write_system_text(report, out);
    });
    if (!report.holds()) session.exit_code = kCheckFailed;
  }
};

}  // namespace

void add_plan_system(CLI::App& command, Session& session) {
  add_command<PlanSystemCommand>(command, session);
}

}  // namespace foretrace
