// Measures how fast a trace becomes a graph: records a second through infer(), the best of seven.
//
//     infer_bench [trace]
//
// Without a trace it is hta-ddp-v100-mem of FORETRACE_CORPUS, or a sample of traces/.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "arguments.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"

namespace foretrace {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void run(const std::string& path) {
  const Trace trace = import_trace(path);
  double best = 1e9;
  std::size_t tasks = 0;
  for (int i = 0; i < 7; ++i) {
    const double begin = cpu_seconds();
    const Inference inference = infer(trace);
    best = std::min(best, cpu_seconds() - begin);
    tasks = inference.graph.task_count();
  }
  const auto records = static_cast<double>(trace.record_count());
  std::printf("%s\n%.0f records to %zu tasks %10.1f ms cpu %8.2f M records/s\n", path.c_str(),
              records, tasks, best * 1e3, records / best / 1e6);
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[trace]");
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  std::string usual = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";
  if (corpus != nullptr) {
    usual = std::string(corpus) + "/hta-ddp-v100-mem/df_index_resolver.json.gz";
  }
  try {
    foretrace::run(arguments.path(1, usual.c_str()));
  } catch (const foretrace::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
