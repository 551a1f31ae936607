// Any text as a scenario: it is read, or refused with an Error. A scenario that is read is applied
// to a small graph, and its effective settings are read back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files/json_file.h"
#include "foretrace/error.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "transform/synonyms.h"

namespace {

constexpr auto kGraph = R"(
    @step one
    @step two
    main:   a:input 4 {step=0 phase=input}, i:launch 1 {step=0}, F:launch 1 {step=0 phase=forward}, U:launch 1 {step=0 phase=update}, b:input 4 {step=1 phase=input}, G:launch 1 {step=1 phase=forward}, s:sync 1 {step=1}
    stream: ii:copy_in 2 {step=0 bytes=1000B}, gemm 6 {step=0 phase=forward layer=0 module=net/fc}, u 2 {step=0 phase=update layer=1}, g 6 {step=1 phase=forward layer=0}
    i -> ii
    F -> gemm
    U -> u
    G -> g
    g -> s
)";

/// Leaves out settings that ask for millions of tasks, which are allowed but slow.
bool is_small(const nlohmann::json& json) {
  if (json.is_number()) return json.get<double>() <= 1000 && json.get<double>() >= -1000;
  if (!json.is_structured()) return true;
  for (const auto& element : json) {
    if (!is_small(element)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretrace;
  try {
    for (const std::string& step : read_steps({reinterpret_cast<const char*>(data), size}))
      read_transform_text(step);
  } catch (const Error&) {
  }
  try {
    const nlohmann::json json = parse_json_text({reinterpret_cast<const char*>(data), size});
    const Scenario scenario = parse_scenario(json);
    const nlohmann::json written = write_scenario(scenario);
    if (write_scenario(parse_scenario(written)) != written) std::abort();
    for (const std::string& use : scenario.uses) read_transform_text(use);
    if (!is_small(written) || scenario.transforms.size() > 8) return 0;
    Graph graph = parse_graph(kGraph);
    for (const auto& transform : scenario.transforms) transform->apply(graph, {});
    simulate(graph);
  } catch (const Error&) {
  }
  return 0;
}
