#include "foretrace/ask/serve.h"

#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct ServeCommand {
  ServeQuestion question;
  bool quiet = false;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    command.add_option("MODEL", question.model,
                       "The model: a transformer from `foretrace list models`, or a file");
    command
        .add_option("--machine", question.machine,
                    "The machine: a name from `foretrace list machines`, or a file")
        ->type_name("NAME|FILE");
    command
        .add_option("--engine", question.engine,
                    "vllm, sglang or trtllm, with settings: vllm:max_num_seqs=64,prefix_hits=0.3")
        ->type_name("ENGINE");
    command.add_option("--engine-version", question.version, "The engine's version")
        ->type_name("TEXT");
    command
        .add_option("--load", question.load,
                    "The load: concurrency=64 (at a time), rate=8 (a second), burst=true or "
                    "file=requests.csv, with input=1024,output=1024,range=0.8,requests=640")
        ->type_name("SETTINGS");
    command
        .add_option("--weights", question.weights,
                    "Precision of weights: bf16, fp8, fp8_block, fp4, int4")
        ->type_name("NAME");
    command
        .add_option("--cache", question.cache, "Precision of keys and values: auto, bf16, fp8, fp4")
        ->type_name("NAME");
    add_layout_to(command);
    command
        .add_option("--table", question.table,
                    "Measured steps, a CSV with kind, batch, context and time_us")
        ->type_name("FILE");
    command
        .add_option("--calibrate", question.calibrate,
                    "Correct by measured deployments, a CSV (docs/serving.md)")
        ->type_name("FILE");
    command
        .add_option("--against", question.against,
                    "Compare predictions with measured deployments, a CSV")
        ->type_name("FILE");
    command
        .add_option(
            "--goodput", question.goodput,
            "Demanded times; the answer counts requests that meet them: ttft=500ms,tpot=50ms")
        ->type_name("TIMES");
    command
        .add_option("--vary", question.vary,
                    "Values of a setting of engine, load or layout: max_num_seqs=32,64,128")
        ->type_name("SETTING=VALUES");
    command.add_flag("--quiet", quiet, "Show no progress");
    format.add_to(command);
    output.add_to(command);
  }

  void add_layout_to(CLI::App& command) {
    command.add_option("--tensor", question.tensor, "Tensor parallel GPUs")
        ->check(CLI::Range(1, 1024));
    command
        .add_option("--data", question.data,
                    "Data parallel ranks of attention, which share experts")
        ->check(CLI::Range(1, 1024));
    command.add_option("--expert", question.expert, "Groups of experts")
        ->check(CLI::Range(1, 1024));
    command.add_option("--replicas", question.replicas, "Copies of the model behind a router")
        ->check(CLI::Range(1, 1024));
    command
        .add_option("--prefill-replicas", question.prefill_replicas,
                    "More copies, which only compute prompts and send their cache on")
        ->check(CLI::Range(0, 1024));
    command.add_option("--router", question.router, "Where requests go: least_busy or round_robin")
        ->check(CLI::IsMember({"least_busy", "round_robin"}));
    command
        .add_option("--gpu-memory-utilization", question.utilization,
                    "Share of memory for the engine; by default its own rule")
        ->check(CLI::Range(0.05, 1.0));
  }

  void run(Session& session) {
    format.check();
    const ServingReport report = [&] {
      const Progress progress("serving " + question.model, quiet);
      return serve_model(question);
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_serving_csv(report, out);
      write_serving_text(report, out);
    });
  }
};

}  // namespace

void add_serve(CLI::App& command, Session& session) { add_command<ServeCommand>(command, session); }

}  // namespace foretrace
