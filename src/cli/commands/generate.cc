#include "foretrace/ask/generate.h"

#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct GenerateCommand {
  GenerateQuestion question;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    command.add_option(
        "MODEL", question.model,
        "A built-in model with settings (llama3-70b:sequence=4096), or the path of a "
        "description; `foretrace list models`");
    command.add_option("--machine", question.machine,
                       "A built-in machine, or the path of one; `foretrace list machines`");
    command
        .add_option("--layout", question.layout,
                    "tp, pp, dp, cp, ep, micro_batch, global_batch, recompute, ...: "
                    "tp=8,pp=12,dp=4,micro_batch=1,global_batch=512")
        ->type_name("SETTINGS");
    command
        .add_option("--calibrate", question.calibrate,
                    "Fit to measured steps: CSV with the columns model, gpu, gpus, tp, pp, "
                    "micro_batch, global_batch and iteration_ms, or as published tables name them")
        ->type_name("FILE");
    command.add_option(
        "--calibrate-rows", question.calibrate_rows,
        "How many of its rows to fit to, chosen by shape; 0: all; by default 5 %, at "
        "least 5");
    command
        .add_option("--against", question.against,
                    "Compare with such a table, without the rows that were fitted to")
        ->type_name("FILE");
    command.add_option("--only", question.only, "Rows of tables whose column holds a text")
        ->type_name("COLUMN=TEXT");
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
