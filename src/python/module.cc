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

#include "ask/many/held_job.h"
#include "ask/many/sweep_file.h"
#include "base/files/new_file.h"
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
struct Asked {
  std::string trace, scenario_file, scenario_json, machine, memory_json;
  std::vector<std::string> steps;
  double samples_per_step = 0, tokens_per_step = 0;
};

/// How the question is answered.
struct How {
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
  PredictOptions options() const {
    return {.strict = strict,
            .reading = reading(),
            .perfetto_path = perfetto,
            .html_path = html,
            .ledger_path = ledger,
            .world_size = ranks,
            .exact = exact};
  }
};

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // Names may hold any bytes.
}

Scenario scenario_of(const Asked& asked) {
  Scenario scenario;
  if (!asked.scenario_file.empty()) scenario = read_scenario(asked.scenario_file);
  if (!asked.scenario_json.empty()) scenario = parse_scenario(Json::parse(asked.scenario_json));
  for (const std::string& step : asked.steps) within(step, [&] { add_steps(step, scenario); });
  if (asked.samples_per_step > 0) scenario.samples_per_step = asked.samples_per_step;
  if (asked.tokens_per_step > 0) scenario.tokens_per_step = asked.tokens_per_step;
  if (!asked.trace.empty()) scenario.trace = asked.trace;
  if (!asked.machine.empty()) scenario.machine = asked.machine;
  if (!asked.memory_json.empty())
    within("memory", [&] { read_json(Json::parse(asked.memory_json), scenario.allocator); });
  if (scenario.trace.empty()) throw Error("which trace? Give it, or name it in the scenario");
  return scenario;
}

/// A job that stays in memory; nullptr if the trace is read for this question alone.
using Held = std::shared_ptr<const HeldJob>;

std::string predict_text(const Asked& asked, const How& how, const Held& held) {
  const Scenario scenario = scenario_of(asked);
  const Prediction prediction = held ? held->predict(scenario, how.options())
                                     : predict(scenario.trace, scenario, how.options());
  Json answer = to_json(prediction);
  Json& asserts = answer["asserts_that_do_not_hold"] = Json::array();
  for (const CheckedAssert& one : check_asserts(scenario, prediction)) {
    asserts.push_back({{"text", one.text},
                       {"found", one.found},
                       {"verdict", one.verdict == Verdict::fails ? "fails" : "undecided"}});
  }
  return text_of(answer);
}

std::string vary_text(const Asked& asked, const How& how, const Vary& question, const Held& held) {
  const Scenario scenario = scenario_of(asked);
  return text_of(to_json(held ? held->vary(scenario, question, how.options())
                              : vary(scenario.trace, scenario, question, how.options())));
}

/// Compares the job with a baseline. `limits`, such as "step_time:5%", override those of the
/// baseline.
std::string check_text(const Asked& asked, const How& how, const std::string& baseline,
                       const std::vector<std::string>& limits, bool structure_only) {
  const Scenario scenario = scenario_of(asked);
  CheckOptions options;
  options.structure_only = structure_only;
  options.reading = how.reading();
  for (const std::string& text : limits) {
    auto [name, limit] = parse_named_limit(text);
    options.fail.insert_or_assign(std::move(name), std::move(limit));
  }
  CheckReport report = check(scenario.trace, scenario, read_baseline(baseline), options);
  report.baseline = baseline;
  return text_of(to_json(report));
}

std::string info_text(const std::string& path, const How& how) {
  Json all = Json::array();
  for (const ExaminedTrace& one : examine_traces(path, how.reading())) {
    all.push_back(describe_trace(one.trace, one.steps ? &*one.steps : nullptr,
                                 one.among ? &*one.among : nullptr));
  }
  return text_of(all);
}

std::string memory_text(const Asked& asked, const How& how, const MemoryQuestion& question) {
  AllocatorSettings allocator;
  if (!asked.memory_json.empty())
    within("memory", [&] { read_json(Json::parse(asked.memory_json), allocator); });
  const ExaminedMemory examined = examine_memory(asked.trace, question, allocator, how.reading());
  if (!how.html.empty()) {
    write_new_file(how.html, [&](std::ostream& out) {
      write_memory_html(examined.report, examined.graph, out);
    });
  }
  return text_of(to_json(examined.report));
}

std::string validate_text(const std::string& path, const std::string& against, const How& how) {
  Json all = Json::array();
  for (const ValidatedRank& rank : validate_trace(path, against, how.reading())) {
    all.push_back(to_json(rank));
    all.back()["broken"] = rank.broken();
  }
  return text_of(all);
}

Sweep sweep_of(const Asked& asked, const How& how, SweepOptions options) {
  options.reading = how.reading();
  options.trace = asked.trace;
  if (!asked.scenario_file.empty()) return Sweep(asked.scenario_file, options);
  return Sweep(Json::parse(asked.scenario_json.empty() ? "{}" : asked.scenario_json), options);
}

/// Returns the answers as the lines of a JSON Lines file, without its header line. `shard` is
/// empty, "3/8" or "auto".
std::vector<std::string> sweep_rows(const Asked& asked, const How& how, const SweepOptions& options,
                                    SweepOutput output, const std::string& shard,
                                    const std::atomic<bool>& stop) {
  if (!shard.empty()) output.shard = read_shard(shard, environment_value);
  output.form = sweep_form("", output.path);
  const SweepReport report = answer_into(output, sweep_of(asked, how, options), {}, stop);
  std::vector<std::string> rows;
  for (const SweepPoint& point : report.points)
    rows.push_back(sweep_point_line(report.header, point, SweepForm::jsonl));
  return rows;
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
      .def_readwrite("steps", &Asked::steps)
      .def_readwrite("samples_per_step", &Asked::samples_per_step)
      .def_readwrite("tokens_per_step", &Asked::tokens_per_step);
  py::class_<How>(module, "How")
      .def(py::init<>())
      .def_readwrite("cache", &How::cache)
      .def_readwrite("cache_folder", &How::cache_folder)
      .def_readwrite("max_unpacked", &How::max_unpacked)
      .def_readwrite("strict", &How::strict)
      .def_readwrite("ranks", &How::ranks)
      .def_readwrite("exact", &How::exact)
      .def_readwrite("html", &How::html)
      .def_readwrite("perfetto", &How::perfetto)
      .def_readwrite("ledger", &How::ledger)
      .def_readwrite("execution_trace", &How::execution_trace)
      .def_readwrite("steps", &How::steps)
      .def_readwrite("window", &How::window);

  // A call may end before its calculation does, so the calculation gets copies of the arguments.
  py::class_<HeldJob, std::shared_ptr<HeldJob>>(module, "HeldJob");
  module.def("hold", [](std::string trace, How how) {
    return interruptible(
        [trace, how] { return std::make_shared<HeldJob>(trace, how.reading(), how.ranks); });
  });
  module.def("predict", [](Asked asked, How how, std::shared_ptr<HeldJob> held) {
    return interruptible([asked, how, held] { return predict_text(asked, how, held); });
  });
  module.def("vary", [](Asked asked, How how, std::string setting, std::string values,
                        std::string until, std::shared_ptr<HeldJob> held) {
    return interruptible([asked, how, held, question = Vary{setting, values, until}] {
      return vary_text(asked, how, question, held);
    });
  });
  module.def("sweep", [](Asked asked, How how, bool intervals, bool memory, unsigned jobs,
                         std::string path, std::string shard, bool fresh) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    const SweepOptions options{.intervals = intervals, .memory = memory, .jobs = jobs};
    const SweepOutput output{.path = path, .fresh = fresh};
    return interruptible([asked, how, options, output, shard,
                          stop] { return sweep_rows(asked, how, options, output, shard, *stop); },
                         [stop] { *stop = true; });
  });
  module.def("advise", [](std::string trace, How how, std::string until, std::string vary,
                          std::size_t top, std::string network) {
    AdviceQuestion question;
    question.until = until;
    question.vary = vary;
    question.top = top;
    question.network = network;
    return interruptible([trace, how, question] {
      return text_of(to_json(advise(trace, question, how.options())));
    });
  });
  module.def("diff", [](std::string before, std::string after, How how) {
    return interruptible(
        [before, after, how] { return text_of(to_json(diff(before, after, how.reading()))); });
  });
  module.def(
      "verify", [](std::string prediction, std::string measured, How how, std::string trace) {
        return interruptible([prediction, measured, how, trace] {
          return text_of(to_json(
              verify(prediction, measured,
                     {.trace = trace, .ledger_path = how.ledger, .reading = how.reading()})));
        });
      });
  module.def("check", [](Asked asked, How how, std::string baseline,
                         std::vector<std::string> limits, bool structure_only) {
    return interruptible([asked, how, baseline, limits, structure_only] {
      return check_text(asked, how, baseline, limits, structure_only);
    });
  });
  module.def("bless",
             [](Asked asked, How how, std::vector<std::string> traces, std::string baseline) {
               return interruptible([asked, how, traces, baseline] {
                 const Scenario scenario = scenario_of(asked);
                 CheckOptions options;
                 options.reading = how.reading();
                 options.adds_runs = !baseline.empty();
                 std::optional<CheckBaseline> old;
                 if (options.adds_runs) old = read_baseline(baseline);
                 const std::vector<std::string> blessed =
                     traces.empty() ? std::vector{scenario.trace} : traces;
                 return write_baseline(bless(blessed, scenario, options, old ? &*old : nullptr));
               });
             });
  module.def("memory", [](Asked asked, How how, std::optional<std::int32_t> device,
                          std::optional<std::int64_t> step, std::size_t top, std::string out,
                          std::string in) {
    MemoryQuestion question{.device = device, .step = step, .top = top};
    within("host_bandwidth", [&] {
      if (!out.empty()) question.out = parse_bandwidth(out), question.in = parse_bandwidth(in);
    });
    return interruptible([asked, how, question] { return memory_text(asked, how, question); });
  });
  module.def(
      "input", [](std::string trace, How how, std::string synthetic, std::string cached,
                  double samples, std::int64_t workers, double cached_share, std::string policy) {
        const InputQuestion question{synthetic, cached, samples, workers, cached_share, policy};
        return interruptible([trace, how, question] {
          return text_of(to_json(examine_input(trace, question, how.reading())));
        });
      });
  module.def("validate", [](std::string path, std::string against, How how) {
    return interruptible([path, against, how] { return validate_text(path, against, how); });
  });
  module.def("doctor", [](std::string path, How how) {
    return interruptible([path, how] { return text_of(to_json(diagnose(path, how.reading()))); });
  });
  module.def("transforms", [] { return text_of(describe_transforms()); });
  module.def("info", [](std::string path, How how) {
    return interruptible([path, how] { return info_text(path, how); });
  });
  module.def("finish_abandoned", finish_abandoned);
}

}  // namespace foretrace
