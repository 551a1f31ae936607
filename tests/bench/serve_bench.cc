// serve_bench: measures how long it takes to replay a load of 1,000 requests, one where nothing but
// decoding happens, and 1,000 loads on all cores, as a sweep asks for them.

#include <cstdio>
#include <ctime>
#include <string>

#include "arguments.h"
#include "foretrace/question/serve.h"

namespace foretrace {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void time_load(const char* name, const std::string& load, const std::string& vary) {
  ServeQuestion question;
  question.model = "llama3-70b", question.machine = "dgx-h100", question.tensor = 4;
  question.load = load, question.vary = vary;
  const double begin = cpu_seconds();
  const ServingReport report = serve_model(question);
  std::printf("%-44s %8.1f ms of CPU, %zu points\n", name, 1e3 * (cpu_seconds() - begin),
              report.points.size());
}

void run() {
  time_load("1,000 requests, 64 at a time", "concurrency=64,input=1024,output=256,requests=1000",
            "");
  time_load("the same, all equally long",
            "concurrency=64,input=1024,output=256,requests=1000,range=1", "");
  time_load("1 to 1,000 at a time, 1,000 requests each", "input=1024,output=256,requests=1000",
            "concurrency=1..1000/+1");
}

}  // namespace
}  // namespace foretrace

int main(int count, char** words) {
  const foretrace::bench::Arguments arguments(count, words, "");
  foretrace::run();
}
