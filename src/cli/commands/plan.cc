#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "foretrace/ask/pipeline.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct PlanShowCommand {
  PipelineQuestion question;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output, page;

  void add_to(CLI::App& command) {
    command.footer(
        "Settings are stages (ranks of the pipeline), micro_batches and others of the schedule, "
        "and "
        "the times of a rank for a micro-batch: forward, backward, weight, communication, "
        "recompute, all_reduce, update; also layers and bytes. `foretrace list schedules` shows "
        "all schedules, `foretrace help 1f1b` the settings of one.\n"
        "backward is the whole backward pass, unless weight is given: then backward is the input "
        "gradient, and schedules that do not split it take the sum. Times are those of a whole "
        "rank, which its chunks share.\n"
        "bubble_rate is 1 - work of a rank / longest span of a rank; in flight are forward passes "
        "(of a chunk, where ranks have several) whose input gradient is to come.\n"
        "csv is the schedule as torch.distributed.pipelining reads it.\n"
        "  foretrace plan show zb_h1:stages=4,micro_batches=8,forward=1ms,backward=1ms,weight=1ms");
    command.add_option("PLAN", question.plan,
                       "NAME:SETTING=VALUE,...; with --file settings of times alone");
    command
        .add_option("--file", question.file,
                    "Show this schedule: CSV of torch.distributed.pipelining, a line per rank")
        ->type_name("FILE");
    format.add_to(command);
    output.add_to(command);
    page.add_to(command, "--html", "Also write a page with the picture; it works offline");
  }

  void run(Session& session) {
    format.check();
    if (question.plan.empty() && question.file.empty())
      throw Error(
          "plan show: needs a schedule, as in `foretrace plan show 1f1b:stages=4`, or "
          "--file; `foretrace list schedules` shows all");
    if (format.chosen == "csv" && page.path.empty())
      return output.write(session, [&](std::ostream& out) { out << pipeline_csv(question); });
    const PipelineReport report = show_pipeline(question);
    if (!page.path.empty())
      page.write(session, [&](std::ostream& out) { write_pipeline_page(report, out); });
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "csv") {
        out << pipeline_csv(question);
        return;
      }
      if (format.chosen == "json") return print_json(to_json(report), out);
      write_pipeline_text(report, out);
    });
  }
};

}  // namespace

void add_plan(CLI::App& command, Session& session) {
  command.require_subcommand(1);
  add_command<PlanShowCommand>(
      *command.add_subcommand("show", "Draw a pipeline schedule, and what it costs"), session);
}

}  // namespace foretrace
