#include "cli/commands/plan_size.h"

#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "foretrace/ask/scale.h"
#include "foretrace/ask/size.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

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

}  // namespace

void add_plan_size(CLI::App& command, Session& session) {
  add_command<PlanSizeCommand>(command, session);
}

}  // namespace foretrace
