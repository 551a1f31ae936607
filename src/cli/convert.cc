#include <fstream>
#include <memory>

#include "cli/options.h"
#include "cli/progress.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/infer.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

bool ends_in(const std::string& path, std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

void write_notation(const Graph& graph, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << to_text(graph);
  file.close();
  if (!file) throw Error("cannot write '" + path + "'");
}

struct ConvertCommand {
  std::string from, to;
  bool quiet = false;
  ExecutionTraceOption execution_trace;
  CacheOptions cache;

  void add_to(CLI::App& command) {
    command.add_option("TRACE", from, "What to read")->required();
    command
        .add_option("OUT", to,
                    "What to write. By its ending: .ftrace (all records), .json or .json.gz "
                    "(Kineto JSON of the tasks "
                    "that were found), .graph (their dependencies, as text)")
        ->required();
    command.add_flag("--quiet", quiet, "Show no progress");
    execution_trace.add_to(command);
    cache.add_to(command);
  }

  void run() const {
    const bool as_kineto = ends_in(to, {".json", ".json.gz"});
    if (exporter_for(to) == nullptr && !as_kineto && !ends_in(to, {".graph"})) {
      throw Error("convert: OUT must end in .ftrace, .json, .json.gz or .graph, got '" + to + "'");
    }
    const Progress progress("converting " + from, quiet);
    const Trace trace = import_trace(
        from, {.cache_folder = cache.chosen(), .execution_trace = execution_trace.path});
    if (exporter_for(to) != nullptr) return export_trace(trace, to);
    const Inference inference = within(from, [&] { return infer(trace); });
    if (as_kineto) return write_kineto(inference.graph, inference.recorded, to);
    write_notation(inference.graph, to);
  }
};

}  // namespace

void add_convert(CLI::App& command, Session& session) {
  const auto convert = std::make_shared<ConvertCommand>();
  convert->add_to(command);
  command.callback([convert, &session] {
    convert->run();
    session.exit_code = kAnswered;
  });
}

}  // namespace foretrace
