#include "foretrace/ask/plan.h"

#include <fmt/core.h>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "ask/plan/resumable_plan.h"
#include "base/parse_number.h"
#include "base/wording.h"
#include "cli/options/command.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "cli/options/stop_signals.h"
#include "foretrace/ask/allocate.h"
#include "foretrace/ask/pipeline.h"
#include "foretrace/ask/scale.h"
#include "foretrace/ask/size.h"
#include "foretrace/ask/system.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

// "foretrace plan system FILE".

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

void add_plan_system(CLI::App& command, Session& session) {
  add_command<PlanSystemCommand>(command, session);
}

// "foretrace plan size [TRACE]".

struct PlanSizeCommand {
  SizeQuestion question;
  std::string gpus, compute, overhead, model, server, memory;
  double speedup = 0, efficiency = 0;
  FormatOption format{{"text", "json"}, "text"};
  OutputOption output;
  ReadingOptions reading;
  CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.footer(
        "GPUs divide the computation C of a step among them, but each still has the whole overhead "
        "O, which nothing hides. With R = O / C, G GPUs are G (1 + R) / (1 + G R) times as fast as "
        "one.\n"
        "LAYERS is JSON: {\"samples\": 1281167, \"batches\": [{\"size\": 128, \"epochs\": 60, "
        "\"feature_maps\": \"3GB\", \"parameters\": \"1GB\", \"classifier\": \"200MB\", "
        "\"layers\": [{\"name\": \"conv1\", \"algorithms\": [{\"name\": \"fft\", \"time\": "
        "\"3ms\", \"memory\": \"1GB\"}, {\"name\": \"gemm\", \"time\": \"5ms\"}]}]}]}\n"
        "  foretrace plan size job.json.gz --gpus 1..16 --speedup 3\n"
        "  foretrace plan size --compute 1s --overhead 100ms --gpus 8 --model-bytes 244MB "
        "--server-bandwidth 10Gb/s\n"
        "  foretrace plan size --layers layers.json --memory 12GB");
    command.add_option("TRACE", question.trace, "The trace of a job on one GPU");
    command.add_option("--compute", compute, "Without a trace: time of the kernels of a step")
        ->type_name("TIME");
    command
        .add_option("--overhead", overhead,
                    "Without a trace: time of a step beyond its kernels, which nothing hides")
        ->type_name("TIME");
    command.add_option("--gpus", gpus, "Counts to answer for: 8, or 1..64, or 1,4,6")
        ->type_name("COUNTS");
    command
        .add_option("--speedup", speedup,
                    "Find how many GPUs make the job this many times as fast as one")
        ->type_name("TIMES");
    command
        .add_option("--efficiency", efficiency,
                    "Find up to how many GPUs each one does at least this share of what one alone "
                    "does, such as 0.9")
        ->type_name("SHARE");
    command
        .add_option("--server-bandwidth", server,
                    "Find how many parameter servers of this bandwidth hide their traffic")
        ->type_name("RATE");
    command
        .add_option("--model-bytes", model,
                    "Size of the model; by default that of the gradients in the trace")
        ->type_name("SIZE");
    command
        .add_option("--layers", question.layers,
                    "Choose a batch, and an algorithm for each layer, from this file")
        ->type_name("LAYERS");
    command.add_option("--memory", memory, "With --layers: memory of a GPU")->type_name("SIZE");
    command
        .add_option("--solver", question.solver, "With --layers: exact, or milp (the same by glpk)")
        ->type_name("WORD");
    format.add_to(command);
    output.add_to(command);
    reading.add_to(command);
  }

  void run(Session& session) {
    format.check();
    if (!gpus.empty()) question.gpus = within("--gpus", [&] { return read_counts(gpus); });
    if (!compute.empty())
      question.compute = within("--compute", [&] { return parse_time(compute); });
    if (!overhead.empty())
      question.overhead = within("--overhead", [&] { return parse_time(overhead); });
    if (app->count("--speedup") > 0) question.speedup = speedup;
    if (app->count("--efficiency") > 0) question.efficiency = efficiency;
    if (!server.empty())
      question.server = within("--server-bandwidth", [&] { return parse_bandwidth(server); });
    if (!model.empty())
      question.model = within("--model-bytes", [&] { return parse_bytes(model); });
    if (!memory.empty()) question.memory = within("--memory", [&] { return parse_bytes(memory); });
    question.reading = reading.options();
    const SizingReport report = size_job(question);
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      write_sizing_text(report, out);
    });
  }
};

void add_plan_size(CLI::App& command, Session& session) {
  add_command<PlanSizeCommand>(command, session);
}

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
