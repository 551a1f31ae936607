// Foretrace in Python: questions go in as texts, answers come out as the JSON texts that the
// command line prints. What Python users see is foretrace/__init__.py, which makes dictionaries of
// them.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/scenario.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

namespace py = pybind11;
using Json = nlohmann::json;

/// What is asked: a scenario file or a scenario's JSON text, then further steps.
struct Asked {
  std::string trace, scenario_file, scenario_json, machine, memory_json;
  std::vector<std::string> steps;
};

/// How it is answered.
struct How {
  bool cache = true, strict = false;
  std::string html, perfetto, ledger, execution_trace;

  PredictOptions options() const {
    return {.strict = strict,
            .cache_folder = cache ? default_cache_folder() : "",
            .execution_trace = execution_trace,
            .perfetto_path = perfetto,
            .html_path = html,
            .ledger_path = ledger};
  }
};

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // Names may hold any bytes.
}

Scenario scenario_of(const Asked& asked) {
  Scenario scenario;
  if (!asked.scenario_file.empty()) scenario = read_scenario(asked.scenario_file);
  if (!asked.scenario_json.empty()) scenario = parse_scenario(Json::parse(asked.scenario_json));
  for (const std::string& step : asked.steps) {
    scenario.transforms.push_back(within(step, [&] { return read_transform_text(step); }));
    scenario.uses.push_back(step);
  }
  if (!asked.trace.empty()) scenario.trace = asked.trace;
  if (!asked.machine.empty()) scenario.machine = asked.machine;
  if (!asked.memory_json.empty())
    within("memory", [&] { read_json(Json::parse(asked.memory_json), scenario.allocator); });
  if (scenario.trace.empty()) throw Error("which trace? Give it, or name it in the scenario");
  return scenario;
}

std::string predict_text(const Asked& asked, const How& how) {
  const Scenario scenario = scenario_of(asked);
  const Prediction prediction = predict(scenario.trace, scenario, how.options());
  Json answer = to_json(prediction);
  Json& asserts = answer["asserts_that_do_not_hold"] = Json::array();
  for (const CheckedAssert& one : check_asserts(scenario, prediction)) {
    asserts.push_back({{"text", one.text},
                       {"found", one.found},
                       {"verdict", one.verdict == Verdict::fails ? "fails" : "undecided"}});
  }
  return text_of(answer);
}

std::string vary_text(const Asked& asked, const How& how, const Vary& question) {
  const Scenario scenario = scenario_of(asked);
  return text_of(to_json(vary(scenario.trace, scenario, question, how.options())));
}

std::string transforms_text() {
  Json all = Json::array();
  for (const TransformEntry& entry : transforms()) {
    const auto transform = entry.make();
    all.push_back({{"name", entry.name},
                   {"summary", entry.summary},
                   {"assumes", entry.assumes},
                   {"defaults", write_json(*transform)},
                   {"settings", json_schema(*transform).at("properties")}});
  }
  return text_of(all);
}

std::string info_text(const std::string& path, const How& how) {
  Json all = Json::array();
  for (const Trace& trace : import_all(path, {.cache_folder = how.options().cache_folder}))
    all.push_back(describe_trace(trace));
  return text_of(all);
}

/// Without Python's lock, so that other threads go on.
template <class Work>
std::string unlocked(const Work& work) {
  const py::gil_scoped_release release;
  return work();
}

}  // namespace

PYBIND11_MODULE(_foretrace, module) {
  module.doc() = "The compiled part of foretrace; use `import foretrace`.";
  module.attr("version") = std::string(kVersion);

  const auto error = py::register_exception<Error>(module, "Error", PyExc_ValueError);
  py::register_exception<TraceError>(module, "TraceError", error);

  py::class_<Asked>(module, "Asked")
      .def(py::init<>())
      .def_readwrite("trace", &Asked::trace)
      .def_readwrite("scenario_file", &Asked::scenario_file)
      .def_readwrite("scenario_json", &Asked::scenario_json)
      .def_readwrite("machine", &Asked::machine)
      .def_readwrite("memory_json", &Asked::memory_json)
      .def_readwrite("steps", &Asked::steps);
  py::class_<How>(module, "How")
      .def(py::init<>())
      .def_readwrite("cache", &How::cache)
      .def_readwrite("strict", &How::strict)
      .def_readwrite("html", &How::html)
      .def_readwrite("perfetto", &How::perfetto)
      .def_readwrite("ledger", &How::ledger)
      .def_readwrite("execution_trace", &How::execution_trace);

  module.def("predict", [](const Asked& asked, const How& how) {
    return unlocked([&] { return predict_text(asked, how); });
  });
  module.def("vary", [](const Asked& asked, const How& how, const std::string& setting,
                        const std::string& values, const std::string& until) {
    return unlocked([&] {
      return vary_text(asked, how, {.setting = setting, .values = values, .until = until});
    });
  });
  module.def("transforms", [] { return transforms_text(); });
  module.def("info", [](const std::string& path, const How& how) {
    return unlocked([&] { return info_text(path, how); });
  });
}

}  // namespace foretrace
