// Any text as a scenario that asks many questions: an Error, or answers. Questions that share a
// structure get the same answers as if each was asked alone.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/json_file.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/job.h"
#include "foretrace/question/sweep.h"
#include "foretrace/simulate.h"

namespace {

using namespace foretrace;

constexpr auto kSteps = R"(
    @step one
    @step two
    main:   a:input 4 {step=0 phase=input}, F:launch 1 {step=0 phase=forward}, U:launch 1 {step=0 phase=update}, b:input 4 {step=1 phase=input}, G:launch 1 {step=1 phase=forward}, s:sync 1 {step=1}
    stream: gemm 6 {step=0 phase=forward layer=0 module=net/fc}, u 2 {step=0 phase=update layer=1}, g 6 {step=1 phase=forward layer=0}
    F -> gemm
    U -> u
    G -> g
    g -> s
)";

std::vector<Inference> two_steps() {
  std::vector<Inference> ranks(1);
  ranks[0].graph = parse_graph(kSteps);
  ranks[0].recorded = simulate(ranks[0].graph);
  return ranks;
}

/// Leaves out settings that ask for millions of tasks, which are allowed but slow.
bool is_small(const nlohmann::json& json) {
  if (json.is_number()) return json.get<double>() <= 1000 && json.get<double>() >= -1000;
  if (!json.is_structured()) return true;
  for (const auto& element : json) {
    if (!is_small(element)) return false;
  }
  return true;
}

std::string lines_of(const nlohmann::json& json, bool share) {
  const Sweep sweep(json, two_steps(), {.jobs = 1, .share_structures = share});
  std::string lines;
  const std::atomic<bool> stop = false;
  const auto take = [&](SweepPoint&& point) {
    lines += sweep_point_line(sweep.header(), point, SweepForm::jsonl);
  };
  constexpr std::uint64_t kMax = 24;
  sweep.run(0, std::min(sweep.header().points, kMax), {.take = take, .flush = [] {}}, stop);
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const nlohmann::json json = parse_json_text({reinterpret_cast<const char*>(data), size});
    if (!is_small(json)) return 0;
    if (lines_of(json, true) != lines_of(json, false)) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
