#include "foretrace/ask/generate.h"

#include <nlohmann/json.hpp>

#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct GenerateCommand {
  GenerateQuestion question;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    add_model(command, question);
    command
        .add_option("--layout", question.layout,
                    "tp, pp, dp, cp, ep, micro_batch, global_batch, recompute, ...: "
                    "tp=8,pp=12,dp=4,micro_batch=1,global_batch=512")
        ->type_name("SETTINGS");
    add_calibration(command, question);
    command
        .add_option("--against", question.against,
                    "Compare with measured steps in a table as for --calibrate, except the rows "
                    "that prices were fitted to")
        ->type_name("FILE");
    format.add_to(command);
    output.add_to(command);
  }

  void run(Session& session) {
    format.check();
    const GenerationReport report = generate_step(question);
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_generation_csv(report, out);
      write_generation_text(report, out);
    });
  }
};

}  // namespace

void add_generate(CLI::App& command, Session& session) {
  add_command<GenerateCommand>(command, session);
}

}  // namespace foretrace
