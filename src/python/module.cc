// Foretrace in Python: questions go in as texts, and answers come out as the JSON texts that the
// command line prints. Users import foretrace/__init__.py, which turns the answers into
// dictionaries.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/many/loaded_job.h"
#include "ask/many/sweep_file.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "foretrace/ask/advise.h"
#include "foretrace/ask/check.h"
#include "foretrace/ask/diff.h"
#include "foretrace/ask/examine.h"
#include "foretrace/ask/predict.h"
#include "foretrace/ask/sweep.h"
#include "foretrace/ask/verify.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/version.h"
#include "python/interruptible.h"

namespace foretrace {
namespace {

namespace py = pybind11;
using Json = nlohmann::json;

/// The question: a scenario file or a scenario's JSON text, then further steps.
struct Request {
  std::string trace, scenario_file, scenario_json, machine, memory_json;
  std::vector<std::string> steps;
  double samples_per_step = 0, tokens_per_step = 0;
};

/// How the question is answered.
struct CallOptions {
  bool cache = true, strict = false, exact = false;
  std::int64_t max_unpacked = 0;
  std::int32_t ranks = 0;
  std::string cache_folder, html, perfetto, ledger, execution_trace, steps, window;

  ImportOptions reading() const {
    ImportOptions options{.max_unpacked = max_unpacked, .execution_trace = execution_trace};
    if (cache) options.cache_folder = cache_folder.empty() ? default_cache_folder() : cache_folder;
    if (!steps.empty()) options.part.steps = within("steps", [&] { return parse_steps(steps); });
    if (!window.empty())
      options.part.window = within("window", [&] { return parse_window(window); });
    return options;
  }
  PredictOptions predict_options() const {
    return {.strict = strict,
            .reading = reading(),
            .perfetto_path = perfetto,
            .html_path = html,
            .ledger_path = ledger,
            .world_size = ranks,
            .exact = exact};
  }
};

Scenario scenario_of(const Request& request) {
  Scenario scenario;
  if (!request.scenario_file.empty()) scenario = read_scenario(request.scenario_file);
  if (!request.scenario_json.empty())
    scenario = parse_scenario(parse_json<Json>(request.scenario_json));
  for (const std::string& step : request.steps) within(step, [&] { add_steps(step, scenario); });
  if (request.samples_per_step > 0) scenario.samples_per_step = request.samples_per_step;
  if (request.tokens_per_step > 0) scenario.tokens_per_step = request.tokens_per_step;
  if (!request.trace.empty()) scenario.trace = request.trace;
  if (!request.machine.empty()) scenario.machine = request.machine;
  if (!request.memory_json.empty())
    within("memory", [&] { read_json(parse_json<Json>(request.memory_json), scenario.allocator); });
  if (scenario.trace.empty()) throw Error("which trace? Give it, or name it in the scenario");
  return scenario;
}

/// A job that stays in memory; nullptr if the trace is read for this question alone.
using LoadedJobPtr = std::shared_ptr<const LoadedJob>;

std::string predict_text(const Request& request, const CallOptions& call,
                         const LoadedJobPtr& loaded) {
  const Scenario scenario = scenario_of(request);
  const Prediction prediction = loaded ? loaded->predict(scenario, call.predict_options())
                                       : predict(scenario.trace, scenario, call.predict_options());
  Json answer = to_json(prediction);
  Json& asserts = answer["asserts_that_do_not_hold"] = Json::array();
  for (const CheckedAssert& failed : check_asserts(scenario, prediction)) {
    asserts.push_back({{"text", failed.text},
                       {"found", failed.found},
                       {"verdict", failed.verdict == Verdict::fails ? "fails" : "undecided"}});
  }
  return json_line(answer);
}

std::string vary_text(const Request& request, const CallOptions& call, const Vary& question,
                      const LoadedJobPtr& loaded) {
  const Scenario scenario = scenario_of(request);
  return json_line(to_json(loaded
                               ? loaded->vary(scenario, question, call.predict_options())
                               : vary(scenario.trace, scenario, question, call.predict_options())));
}

/// Compares the job with a baseline. `limits`, such as "step_time:5%", override those of the
/// baseline.
std::string check_text(const Request& request, const CallOptions& call, const std::string& baseline,
                       const std::vector<std::string>& limits, bool structure_only) {
  const Scenario scenario = scenario_of(request);
  CheckOptions options;
  options.structure_only = structure_only;
  options.reading = call.reading();
  for (const std::string& text : limits) {
    auto [name, limit] = parse_named_limit(text);
    options.fail.insert_or_assign(std::move(name), std::move(limit));
  }
  CheckReport report = check(scenario.trace, scenario, read_baseline(baseline), options);
  report.baseline = baseline;
  return json_line(to_json(report));
}

std::string info_text(const std::string& path, const CallOptions& call) {
  Json answers = Json::array();
  for (const ExaminedTrace& rank : examine_traces(path, call.reading())) {
    answers.push_back(describe_trace(rank.trace, rank.steps ? &*rank.steps : nullptr,
                                     rank.among ? &*rank.among : nullptr));
  }
  return json_line(answers);
}

std::string memory_text(const Request& request, const CallOptions& call,
                        const MemoryQuestion& question) {
  AllocatorSettings allocator;
  if (!request.memory_json.empty())
    within("memory", [&] { read_json(parse_json<Json>(request.memory_json), allocator); });
  const ExaminedMemory examined =
      examine_memory(request.trace, question, allocator, call.reading());
  if (!call.html.empty()) {
    write_new_file(call.html, [&](std::ostream& out) {
      write_memory_html(examined.report, examined.graph, out);
    });
  }
  return json_line(to_json(examined.report));
}

std::string validate_text(const std::string& path, const std::string& against,
                          const CallOptions& call) {
  Json answers = Json::array();
  for (const ValidatedRank& rank : validate_trace(path, against, call.reading())) {
    answers.push_back(to_json(rank));
    answers.back()["broken"] = rank.broken();
  }
  return json_line(answers);
}

Sweep sweep_of(const Request& request, const CallOptions& call, SweepOptions options) {
  options.reading = call.reading();
  options.trace = request.trace;
  if (!request.scenario_file.empty()) return Sweep(request.scenario_file, options);
  return Sweep(parse_json<Json>(request.scenario_json.empty() ? "{}" : request.scenario_json),
               options);
}

/// Returns the answers as the lines of a JSON Lines file, without its header line. `shard` is
/// empty, "3/8" or "auto".
std::vector<std::string> sweep_rows(const Request& request, const CallOptions& call,
                                    const SweepOptions& options, SweepOutput output,
                                    const std::string& shard, const std::atomic<bool>& stop) {
  if (!shard.empty()) output.shard = read_shard(shard, environment_value);
  output.form = sweep_form("", output.path);
  const SweepReport report = answer_into(output, sweep_of(request, call, options), {}, stop);
  std::vector<std::string> rows;
  for (const SweepPoint& point : report.points)
    rows.push_back(sweep_point_line(report.header, point, SweepForm::jsonl));
  return rows;
}

void define_options(py::module_& module) {
  py::class_<Request>(module, "Asked")
      .def(py::init<>())
      .def_readwrite("trace", &Request::trace)
      .def_readwrite("scenario_file", &Request::scenario_file)
      .def_readwrite("scenario_json", &Request::scenario_json)
      .def_readwrite("machine", &Request::machine)
      .def_readwrite("memory_json", &Request::memory_json)
      .def_readwrite("steps", &Request::steps)
      .def_readwrite("samples_per_step", &Request::samples_per_step)
      .def_readwrite("tokens_per_step", &Request::tokens_per_step);
  py::class_<CallOptions>(module, "How")
      .def(py::init<>())
      .def_readwrite("cache", &CallOptions::cache)
      .def_readwrite("cache_folder", &CallOptions::cache_folder)
      .def_readwrite("max_unpacked", &CallOptions::max_unpacked)
      .def_readwrite("strict", &CallOptions::strict)
      .def_readwrite("ranks", &CallOptions::ranks)
      .def_readwrite("exact", &CallOptions::exact)
      .def_readwrite("html", &CallOptions::html)
      .def_readwrite("perfetto", &CallOptions::perfetto)
      .def_readwrite("ledger", &CallOptions::ledger)
      .def_readwrite("execution_trace", &CallOptions::execution_trace)
      .def_readwrite("steps", &CallOptions::steps)
      .def_readwrite("window", &CallOptions::window);
}

// The functions of the module. A call may end before its calculation does, so the calculation gets
// copies of the arguments.

void define_predictions(py::module_& module) {
  py::class_<LoadedJob, std::shared_ptr<LoadedJob>>(module, "HeldJob");
  module.def("hold", [](std::string trace, CallOptions call) {
    return interruptible(
        [trace, call] { return std::make_shared<LoadedJob>(trace, call.reading(), call.ranks); });
  });
  module.def("predict", [](Request request, CallOptions call, std::shared_ptr<LoadedJob> loaded) {
    return interruptible([request, call, loaded] { return predict_text(request, call, loaded); });
  });
  module.def("vary", [](Request request, CallOptions call, std::string setting, std::string values,
                        std::string until, std::shared_ptr<LoadedJob> loaded) {
    return interruptible([request, call, loaded, question = Vary{setting, values, until}] {
      return vary_text(request, call, question, loaded);
    });
  });
  module.def("sweep", [](Request request, CallOptions call, bool intervals, bool memory,
                         unsigned jobs, std::string path, std::string shard, bool fresh) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    const SweepOptions options{.intervals = intervals, .memory = memory, .jobs = jobs};
    const SweepOutput output{.path = path, .fresh = fresh};
    return interruptible(
        [request, call, options, output, shard, stop] {
          return sweep_rows(request, call, options, output, shard, *stop);
        },
        [stop] { *stop = true; });
  });
  module.def("advise", [](std::string trace, CallOptions call, std::string until, std::string vary,
                          std::size_t top, std::string network) {
    AdviceQuestion question;
    question.until = until;
    question.vary = vary;
    question.top = top;
    question.network = network;
    return interruptible([trace, call, question] {
      return json_line(to_json(advise(trace, question, call.predict_options())));
    });
  });
}

void define_comparisons(py::module_& module) {
  module.def("diff", [](std::string before, std::string after, CallOptions call) {
    return interruptible(
        [before, after, call] { return json_line(to_json(diff(before, after, call.reading()))); });
  });
  module.def("verify", [](std::string prediction, std::string measured, CallOptions call,
                          std::string trace) {
    return interruptible([prediction, measured, call, trace] {
      return json_line(
          to_json(verify(prediction, measured,
                         {.trace = trace, .ledger_path = call.ledger, .reading = call.reading()})));
    });
  });
  module.def("check", [](Request request, CallOptions call, std::string baseline,
                         std::vector<std::string> limits, bool structure_only) {
    return interruptible([request, call, baseline, limits, structure_only] {
      return check_text(request, call, baseline, limits, structure_only);
    });
  });
  module.def("bless", [](Request request, CallOptions call, std::vector<std::string> traces,
                         std::string baseline) {
    return interruptible([request, call, traces, baseline] {
      const Scenario scenario = scenario_of(request);
      CheckOptions options;
      options.reading = call.reading();
      options.adds_runs = !baseline.empty();
      std::optional<CheckBaseline> old;
      if (options.adds_runs) old = read_baseline(baseline);
      const std::vector<std::string> recordings =
          traces.empty() ? std::vector{scenario.trace} : traces;
      return write_baseline(bless(recordings, scenario, options, old ? &*old : nullptr));
    });
  });
}

void define_examinations(py::module_& module) {
  module.def("memory", [](Request request, CallOptions call, std::optional<std::int32_t> device,
                          std::optional<std::int64_t> step, std::size_t top, std::string out,
                          std::string in) {
    MemoryQuestion question{.device = device, .step = step, .top = top};
    within("host_bandwidth", [&] {
      if (!out.empty()) question.out = parse_bandwidth(out), question.in = parse_bandwidth(in);
    });
    return interruptible(
        [request, call, question] { return memory_text(request, call, question); });
  });
  module.def(
      "input", [](std::string trace, CallOptions call, std::string synthetic, std::string cached,
                  double samples, std::int64_t workers, double cached_share, std::string policy) {
        const InputQuestion question{synthetic, cached, samples, workers, cached_share, policy};
        return interruptible([trace, call, question] {
          return json_line(to_json(examine_input(trace, question, call.reading())));
        });
      });
  module.def("validate", [](std::string path, std::string against, CallOptions call) {
    return interruptible([path, against, call] { return validate_text(path, against, call); });
  });
  module.def("doctor", [](std::string path, CallOptions call) {
    return interruptible(
        [path, call] { return json_line(to_json(diagnose(path, call.reading()))); });
  });
  module.def("transforms", [] { return json_line(describe_transforms()); });
  module.def("info", [](std::string path, CallOptions call) {
    return interruptible([path, call] { return info_text(path, call); });
  });
}

}  // namespace

PYBIND11_MODULE(_foretrace, module) {
  module.doc() = "The compiled part of foretrace; use `import foretrace`.";
  module.attr("version") = std::string(kVersion);

  const auto error = py::register_exception<Error>(module, "Error", PyExc_ValueError);
  py::register_exception<TraceError>(module, "TraceError", error);

  define_options(module);
  define_predictions(module);
  define_comparisons(module);
  define_examinations(module);
  module.def("finish_abandoned", finish_abandoned);
}

}  // namespace foretrace
