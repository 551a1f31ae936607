#include "foretrace/ask/plan.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ask/plan/kept_plan.h"
#include "base/wording.h"
#include "cli/commands/plan_size.h"
#include "cli/commands/plan_system.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "cli/options/stop_signals.h"
#include "foretrace/ask/allocate.h"
#include "foretrace/ask/pipeline.h"
#include "foretrace/ask/scale.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct PlanCommand {
  PlanQuestion question;
  PlanKeeping keeping;
  std::string gpus, memory, gradients, outputs, shard;
  bool quiet = false;
  FormatOption format{{"text", "json", "csv", "markdown"}, "text"};
  OutputOption output, page;
  ReadingOptions reading;
  CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.require_subcommand(0, 1);
    command.footer(
        "Layouts are all that the model, the batch and the memory allow: data, tensor, pipeline, "
        "context and expert parallel ranks, micro-batch, schedule, recomputation, ZeRO and "
        "sequence parallelism.\n"
        "A trace of a job on one GPU may stand in place of MODEL: its layers are then those that "
        "were "
        "recorded, and the batch is counted in recorded batches.\n"
        "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536\n"
        "  foretrace plan job.json.gz --machine dgx-a100 --gpus 8");
    add_model(command, question);
    command
        .add_option("--gradient-bytes", gradients,
                    "With a trace that does not show them: all gradients of a step")
        ->type_name("SIZE");
    command
        .add_option("--output-bytes", outputs,
                    "With a trace: what a stage passes on for a recorded batch")
        ->type_name("SIZE");
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
    add_calibration(command, question);
    command
        .add_option("--strategy", question.strategy,
                    "exhaustive, or a published planner: chimera, dapple, pipedream or "
                    "pipedream_2bw")
        ->type_name("NAME");
    command.add_option("--top", question.top, "How many layouts to rank")
        ->type_name("NUMBER")
        ->check(CLI::Range(1, 1000));
    names_output(command.add_option(
        "--keep", keeping.path,
        "Keep the bounds of layouts in this file, a block of 256 in a line, as soon as they are "
        "found; the same command continues an existing file. If stopped (SIGINT, SIGTERM), the "
        "bounds so far are kept and the exit code is 130 or 143"));
    command.add_flag("--fresh", keeping.fresh, "Discard what the file of --keep already has");
    command
        .add_option("--shard", shard,
                    "Find only one of N parts of the bounds, I/N from 1/N on, into its own file, "
                    "for `foretrace plan merge`; auto: as numbered by Slurm or MPI")
        ->type_name("I/N|auto");
    command.add_flag("--quiet", quiet, "Show no progress");
    format.add_to(command);
    output.add_to(command);
    page.add_to(command, "--html",
                "Also write a page with the ranking and a plot; it works offline");
    reading.add_to(command);
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // It has answered.
    format.check();
    if (!gpus.empty()) question.gpus = within("--gpus", [&] { return read_counts(gpus); });
    if (!memory.empty()) question.memory = within("--memory", [&] { return parse_bytes(memory); });
    if (!gradients.empty())
      question.gradients = within("--gradient-bytes", [&] { return parse_bytes(gradients); });
    if (!outputs.empty())
      question.output = within("--output-bytes", [&] { return parse_bytes(outputs); });
    question.reading = reading.options();
    check_keeping();
    if (keeping.path.empty()) {
      const Progress progress("planning " + question.model, quiet);
      write(plan(question), session);
    } else if (const auto report = keep(session)) {
      write(*report, session);
    }
  }

  void check_keeping() {
    const std::pair<const char*, bool> options[] = {{"--shard", !shard.empty()},
                                                    {"--fresh", keeping.fresh}};
    for (const auto& [option, is_given] : options) {
      if (is_given && keeping.path.empty()) throw Error(std::string(option) + ": needs --keep");
    }
    if (!shard.empty()) keeping.shard = read_shard(shard, environment_value);
    if (keeping.shard.of > 1 && (!output.path.empty() || !page.path.empty()))
      throw Error("--shard: has no answer to write; ask for it without, with the merged file");
  }

  std::optional<PlanReport> keep(Session& session) {
    const std::string path = path_of_shard(keeping.path, keeping.shard);
    session.files.add_outputs({{"--keep", path}});
    std::optional<CountedProgress> progress;
    std::uint64_t known = 0, all = 0;
    PlanEvents events;
    events.begin = [&](std::uint64_t had, std::uint64_t left) {
      known = had, all = had + left;
      progress.emplace("blocks of layouts", left, quiet);
    };
    events.take = [&] { ++known, progress->add(); };
    const StopSignals signals;
    std::optional<PlanReport> report = plan_keeping(question, keeping, events, stop_asked());
    progress.reset();
    const auto of_all = [&] {
      return grouped(static_cast<std::int64_t>(known)) + " of " +
             grouped(static_cast<std::int64_t>(all)) + " blocks of layouts";
    };
    if (stop_asked()) {
      std::cerr << "foretrace: stopped after " << of_all()
                << "; run the same command again to continue\n";
      session.exit_code = exit_code_of_stop();
      return std::nullopt;
    }
    if (!report && !quiet)
      std::cerr << "foretrace: '" << path << "' has " << of_all() << "; merge all shards with "
                << "`foretrace plan merge` to ask for the answer\n";
    return report;
  }

  void write(const PlanReport& report, Session& session) const {
    if (!page.path.empty())
      page.write(session, [&](std::ostream& out) { write_plan_page(report, out); });
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_plan_csv(report, out);
      if (format.chosen == "markdown") return write_plan_markdown(report, out);
      write_plan_text(report, out);
    });
  }
};

/// "foretrace plan merge FILES": what shards kept becomes the file of one process.
struct PlanMergeCommand {
  std::vector<std::string> files;
  std::string output;

  void add_to(CLI::App& command) {
    command.footer(
        "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536 "
        "--keep plans.jsonl --shard 1/2\n"
        "  foretrace plan merge plans.shard-*-of-2.jsonl --output plans.jsonl\n"
        "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536 "
        "--keep plans.jsonl");
    command.add_option("FILES", files, "What all shards kept, in any order")->required();
    names_output(
        command.add_option("--output,-o", output, "Output file, for --keep without --shard"))
        ->required();
  }

  void run(Session&) const { merge_plans(files, output); }
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
        .add_option(
            "--objective", question.objective,
            "throughput, speedup (over one node), deadline or price; or a formula of nodes, "
            "rate, one (the rate on one node), value, samples, done and left (seconds to "
            "the deadline): \"min(rate, 5000) * value\"")
        ->type_name("WORD|FORMULA");
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
  add_command<PlanMergeCommand>(
      *command.add_subcommand("merge", "Merge what shards kept into one file"), session);
  add_plan_size(*command.add_subcommand(
                    "size", "Size a data parallel job: GPUs, parameter servers, batch, algorithms"),
                session);
  add_plan_system(
      *command.add_subcommand("system", "Replay a system that a file describes by formulas"),
      session);
}

}  // namespace foretrace
