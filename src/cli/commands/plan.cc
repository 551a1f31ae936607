#include "foretrace/ask/plan.h"

#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ask/plan/resumable_plan.h"
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
  PlanFileOptions keeping;
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
        "The search covers all layouts that the model, the batch and the memory allow. They differ "
        "in data, tensor, pipeline, context and expert parallel ranks, micro-batch, schedule, "
        "recomputation, ZeRO and sequence parallelism.\n"
        "MODEL may also be the trace of a job on one GPU: the layers are then the recorded ones, "
        "and the batch is counted in recorded batches.\n"
        "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536\n"
        "  foretrace plan job.json.gz --machine dgx-a100 --gpus 8");
    add_job(command);
    add_search(command);
    add_keeping(command);
    format.add_to(command);
    output.add_to(command);
    page.add_to(command, "--html",
                "Also write a page with the ranking and a plot; it works offline");
    reading.add_to(command);
  }

  /// Adds the options that say what is trained, and on what.
  void add_job(CLI::App& command) {
    add_model(command, question);
    command
        .add_option("--gradient-bytes", gradients,
                    "With a trace that does not show gradients: size of all gradients of a step")
        ->type_name("SIZE");
    command
        .add_option("--output-bytes", outputs,
                    "With a trace: size of the output that a stage passes on for a recorded batch")
        ->type_name("SIZE");
    command.add_option("--gpus", gpus, "Counts to choose from: 64, or 8..1024, or 8,24,64")
        ->type_name("COUNTS");
    command
        .add_option("--global-batch", question.global_batch,
                    "Number of samples in a step, on all GPUs together")
        ->type_name("SAMPLES");
    command.add_option("--memory", memory, "Memory that a device may use; by default all of it")
        ->type_name("SIZE");
  }

  /// Adds the options of the layouts: which are compared, and how they are priced.
  void add_search(CLI::App& command) {
    command
        .add_option("--layout", question.layout,
                    "Your own layout, as for generate: the answer always includes it, and settings "
                    "that are not searched, such as its precision, apply to all layouts")
        ->type_name("SETTINGS");
    command
        .add_option("--fix", question.fix,
                    "Settings that every layout must have: tp=8,schedule=1f1b")
        ->type_name("SETTINGS");
    command
        .add_option("--prices", question.prices,
                    "Prices of GPUs: JSON, {\"prices\": {\"h100\": \"2.5 USD/h\"}}")
        ->type_name("FILE");
    command
        .add_option("--measured", question.measured,
                    "First show how well these measured runs are reproduced: CSV as for "
                    "--calibrate")
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
  }

  void add_keeping(CLI::App& command) {
    names_output(command.add_option(
        "--keep", keeping.path,
        "Keep the bounds of layouts in this file, one line for each block of 256, as soon as they "
        "are found; the same command continues an existing file. If stopped (SIGINT, SIGTERM), the "
        "bounds so far are kept and the exit code is 130 or 143"));
    command.add_flag("--fresh", keeping.fresh,
                     "Discard the bounds that the file of --keep already has");
    command
        .add_option("--shard", shard,
                    "Find only part I of N of the bounds (1/N to N/N) and keep it in its own file, "
                    "for `foretrace plan merge`; auto: take I and N from Slurm or MPI")
        ->type_name("I/N|auto");
    command.add_flag("--quiet", quiet, "Show no progress");
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // The nested command has answered.
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
    } else if (const auto report = plan_with_file(session)) {
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
    if (keeping.shard.count > 1 && (!output.path.empty() || !page.path.empty()))
      throw Error(
          "--shard: has no answer to write; leave out --output and --html, and ask for the answer "
          "without --shard once the files are merged");
  }

  std::optional<PlanReport> plan_with_file(Session& session) {
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
    std::optional<PlanReport> report = resumable_plan(question, keeping, events, stop_requested());
    progress.reset();
    const auto progress_text = [&] {
      return fmt::format("{} of {} blocks of layouts", grouped(known), grouped(all));
    };
    if (stop_requested()) {
      std::cerr << "foretrace: stopped after " << progress_text()
                << "; run the same command again to continue\n";
      session.exit_code = exit_code_of_stop();
      return std::nullopt;
    }
    if (!report && !quiet)
      std::cerr << "foretrace: '" << path << "' has " << progress_text()
                << "; merge all shards with "
                << "`foretrace plan merge`, then ask for the answer without --shard\n";
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

/// "foretrace plan merge FILES": merges the files of all shards into the file that one process
/// would have written.
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
    command.add_option("FILES", files, "The files of all shards, in any order")->required();
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
        "20379}}]}. A job may also have nodes (how many it has), arrival, every, value and "
        "deadline; rates are samples per second by number of nodes, or come from model, machine "
        "and global_batch.\n"
        "  foretrace plan allocate jobs.json --nodes 8\n"
        "  sacct -P -o JobID,Start,End,NodeList > log; foretrace plan allocate jobs.json --sacct "
        "log");
    command.add_option("JOBS", question.jobs, "The elastic jobs: a JSON file")->required();
    command.add_option("--nodes", nodes, "Idle nodes, for one decision")
        ->check(CLI::Range(0, 1'000'000));
    command
        .add_option("--events", question.events,
                    "Replay nodes that come and go: CSV with the columns time_s, joined and left")
        ->type_name("FILE");
    command
        .add_option("--sacct", question.sacct,
                    "Replay the nodes that jobs of Slurm left idle: sacct -P with JobID, Start, "
                    "End and NodeList")
        ->type_name("FILE");
    command
        .add_option("--swf", question.swf,
                    "Replay the nodes that jobs left idle: a log in Standard Workload Format")
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
    command.add_option("--ahead", ahead, "Time within which a decision must pay off")
        ->type_name("TIME");
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
        "Settings are those of the schedule, such as stages (ranks of the pipeline) and "
        "micro_batches, and the times that a rank takes for a micro-batch: forward, backward, "
        "weight, communication, recompute, all_reduce, update; also layers and bytes. "
        "`foretrace list schedules` shows all schedules, `foretrace help 1f1b` the settings of "
        "one.\n"
        "backward is the whole backward pass, unless weight is given: then backward is the input "
        "gradient, and schedules that do not split the backward pass take the sum of both. Times "
        "are those of a whole rank; its chunks share them.\n"
        "bubble_rate is 1 - work of a rank / longest span of a rank. A forward pass (of a chunk, "
        "where ranks have several) is in flight until its input gradient is done.\n"
        "csv is the schedule in the format that torch.distributed.pipelining reads.\n"
        "  foretrace plan show zb_h1:stages=4,micro_batches=8,forward=1ms,backward=1ms,weight=1ms");
    command.add_option("PLAN", question.plan,
                       "A schedule with its settings: NAME:SETTING=VALUE,...; with --file only the "
                       "settings of times");
    command
        .add_option("--file", question.file,
                    "Show this schedule: CSV of torch.distributed.pipelining, one line per rank")
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
      *command.add_subcommand("allocate",
                              "Assign idle nodes to elastic jobs, once or throughout a log"),
      session);
  add_command<PlanShowCommand>(
      *command.add_subcommand("show", "Draw a pipeline schedule and show what it costs"), session);
  add_command<PlanMergeCommand>(
      *command.add_subcommand("merge", "Merge the files of all shards into one"), session);
  add_plan_size(*command.add_subcommand(
                    "size", "Size a data parallel job: GPUs, parameter servers, batch, algorithms"),
                session);
  add_plan_system(
      *command.add_subcommand("system", "Replay a system that a file describes with formulas"),
      session);
}

}  // namespace foretrace
