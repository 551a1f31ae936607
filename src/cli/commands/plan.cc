#include "foretrace/ask/plan.h"

#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/allocate.h"
#include "foretrace/ask/pipeline.h"
#include "foretrace/ask/scale.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct PlanCommand {
  PlanQuestion question;
  std::string gpus, memory;
  bool quiet = false;
  FormatOption format{{"text", "json", "csv", "markdown"}, "text"};
  OutputOption output;
  CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.require_subcommand(0, 1);
    command.footer(
        "Layouts are all that the model, the batch and the memory allow: data, tensor, pipeline, "
        "context and expert parallel ranks, micro-batch, schedule, recomputation, ZeRO and "
        "sequence parallelism.\n"
        "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536");
    command.add_option("MODEL", question.model,
                       "A built-in model with settings (llama3-70b:sequence=4096), or the path of "
                       "a description; `foretrace list models`");
    command.add_option("--machine", question.machine,
                       "A built-in machine, or the path of one; `foretrace list machines`");
    command.add_option("--gpus", gpus, "Counts to choose from: 64, or 8..1024, or 8,24,64")
        ->type_name("COUNTS");
    command.add_option("--global-batch", question.global_batch, "Samples of a step, on all GPUs")
        ->type_name("SAMPLES");
    command.add_option("--memory", memory, "What a device may use; by default all it has")
        ->type_name("SIZE");
    command
        .add_option("--layout", question.layout,
                    "Your own layout, as for generate: it is always in the answer, and its "
                    "precision and the like hold for all")
        ->type_name("SETTINGS");
    command.add_option("--fix", question.fix, "Settings that all layouts have: tp=8,schedule=1f1b")
        ->type_name("SETTINGS");
    command
        .add_option("--prices", question.prices,
                    "What GPUs cost: JSON, {\"prices\": {\"h100\": \"2.5 USD/h\"}}")
        ->type_name("FILE");
    command
        .add_option("--measured", question.measured,
                    "Say first which of these measured runs are reproduced: CSV as for generate")
        ->type_name("FILE");
    command
        .add_option("--calibrate", question.calibrate, "Fit to measured steps, as generate does")
        ->type_name("FILE");
    command.add_option("--calibrate-rows", question.calibrate_rows,
                       "How many of its rows to fit to; 0: all; by default 5 %, at least 5");
    command.add_option("--only", question.only, "Rows of tables whose column holds a text")
        ->type_name("COLUMN=TEXT");
    command.add_option("--top", question.top, "How many layouts to rank")
        ->type_name("NUMBER")
        ->check(CLI::Range(1, 1000));
    command.add_flag("--quiet", quiet, "Show no progress");
    format.add_to(command);
    output.add_to(command);
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // It has answered.
    format.check();
    if (!gpus.empty()) question.gpus = within("--gpus", [&] { return read_counts(gpus); });
    if (!memory.empty()) question.memory = within("--memory", [&] { return parse_bytes(memory); });
    const PlanReport report = [&] {
      const Progress progress("planning " + question.model, quiet);
      return plan(question);
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_plan_csv(report, out);
      if (format.chosen == "markdown") return write_plan_markdown(report, out);
      write_plan_text(report, out);
    });
  }
};

struct PlanAllocateCommand {
  AllocateQuestion question;
  std::int64_t nodes = -1;
  std::string ahead = "120s";
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    command.footer(
        "JOBS is JSON: {\"jobs\": [{\"name\": \"a\", \"count\": 10, \"least\": 1, \"most\": 64, "
        "\"up\": \"18s\", \"down\": \"12s\", \"samples\": 1e8, \"rates\": {\"1\": 2831, \"8\": "
        "20379}}]}, also with nodes (that it has), arrival, every, value and deadline; rates are "
        "samples a second by nodes, or come from model, machine and global_batch.\n"
        "  foretrace plan allocate jobs.json --nodes 8\n"
        "  sacct -P -o JobID,Start,End,NodeList > log; foretrace plan allocate jobs.json --sacct "
        "log");
    command.add_option("JOBS", question.jobs, "The elastic jobs: a JSON file")->required();
    command.add_option("--nodes", nodes, "Idle nodes, for one decision")
        ->check(CLI::Range(0, 1'000'000));
    command
        .add_option("--events", question.events,
                    "Replay nodes that come and go: CSV, time_s,joined,left")
        ->type_name("FILE");
    command
        .add_option("--sacct", question.sacct,
                    "Replay the nodes that jobs of Slurm left idle: sacct -P with JobID, Start, "
                    "End and NodeList")
        ->type_name("FILE");
    command.add_option("--swf", question.swf, "The same, in Standard Workload Format")
        ->type_name("FILE");
    command
        .add_option("--objective", question.objective,
                    "throughput, speedup (over one node), deadline or price")
        ->type_name("WORD");
    command
        .add_option("--solver", question.solver,
                    "knapsack (exact), milp (the same by glpk) or equal (equal shares)")
        ->type_name("WORD");
    command.add_option("--ahead", ahead, "How long a decision has to pay off")->type_name("TIME");
    command.add_option("--at-once", question.at_once, "Jobs that may run at once in a replay")
        ->type_name("NUMBER")
        ->check(CLI::Range(1, 100'000));
    format.add_to(command);
    output.add_to(command);
  }

  void run(Session& session) {
    format.check();
    if (nodes >= 0) question.nodes = nodes;
    question.ahead = within("--ahead", [&] { return parse_time(ahead); });
    const AllocationReport report = allocate(question);
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_allocation_csv(report, out);
      write_allocation_text(report, out);
    });
  }
};

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
  add_command<PlanCommand>(command, session);
  add_command<PlanAllocateCommand>(
      *command.add_subcommand("allocate", "Give idle nodes to elastic jobs, now or over a log"),
      session);
  add_command<PlanShowCommand>(
      *command.add_subcommand("show", "Draw a pipeline schedule, and what it costs"), session);
}

}  // namespace foretrace
