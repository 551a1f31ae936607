// Answers a question about serving: reads the deployment from its settings, and replays its load
// for each point; or holds predictions against measured deployments.

#include "foretrace/question/serve.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields/assignments.h"
#include "base/fields/settings.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "question/serve/asked.h"
#include "scenario/values.h"

namespace foretrace {
namespace {

using serve::Deployment;
using serve::MeasuredDeployment;

/// One point: a setting that replaces what the question has.
struct Variant {
  enum class Of { question, engine, load };
  std::string changed;
  Of of = Of::question;
};

class Slo final : public Described {
 public:
  Slo() {
    constexpr std::pair<const char*, serve::Statistic> kStatistics[] = {
        {"mean", &LatencyFigure::mean},
        {"p50", &LatencyFigure::p50},
        {"p90", &LatencyFigure::p90},
        {"p99", &LatencyFigure::p99}};
    for (const std::string latency : {"ttft", "tpot", "itl", "end_to_end"}) {
      for (const auto& [name, statistic] : kStatistics)
        parts.push_back({latency + "_" + name, latency, statistic});
    }
  }
  void describe(Fields& fields) override {
    for (serve::SloPart& part : parts) fields.time(part.name, part.limit, "Longest time", 0ns);
  }

  std::vector<serve::SloPart> parts;
};

serve::EngineSettings engine_of(const std::string& text, const std::string& changed) {
  serve::EngineSettings settings = engine_settings_of(text);
  if (!changed.empty()) within("vary", [&] { read_assigned(changed, settings); });
  return serve::with_defaults(settings);
}

Deployment deployment_of_question(ServeQuestion question, const Variant& variant) {
  if (variant.of == Variant::Of::question && !variant.changed.empty())
    within("vary", [&] { read_assigned(variant.changed, question); });
  if (question.model.empty() || question.machine.empty())
    throw Error(
        "serve: must have a model and a machine, such as serve llama3-8b --machine dgx-h100");
  Deployment deployment{
      .model = serve::find_model(question.model),
      .precision = {},
      .placement = {question.tensor, question.data, question.expert},
      .platform = find_platform(question.machine),
      .engine =
          engine_of(question.engine, variant.of == Variant::Of::engine ? variant.changed : ""),
      .load = {},
      .version = question.version,
      .utilization = question.utilization,
      .replicas = question.replicas,
      .prefill_replicas = question.prefill_replicas,
      .least_busy = question.router == "least_busy"};
  deployment.precision = serve::precision_of(deployment.model, question.weights, question.cache,
                                             deployment.platform.device);
  if (!question.goodput.empty())
    within("goodput", [&] { read_assigned(question.goodput, deployment.demands); });
  if (!question.slo.empty()) deployment.slo = slo_of(question.slo);
  if (!question.load.empty())
    within("load", [&] { read_assigned(question.load, deployment.load); });
  if (variant.of == Variant::Of::load)
    within("vary", [&] { read_assigned(variant.changed, deployment.load); });
  return deployment;
}

/// Whether a setting of `object`, which changes, takes whole numbers only.
bool is_whole(const std::string& name, Described& object) {
  try {
    read_assigned(name + "=1.5", object);
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// "max_num_seqs=32,64" gives a point for each value.
std::vector<Variant> variants_of(const ServeQuestion& question) {
  if (question.vary.empty()) return {{}};
  const std::size_t equals = question.vary.find('=');
  if (equals == std::string::npos || equals + 1 == question.vary.size())
    throw Error(fmt::format("vary: must be SETTING=VALUE,VALUE,..., got \"{}\"", question.vary));
  const std::string name = question.vary.substr(0, equals);
  serve::EngineSettings engine;
  serve::Load load;
  ServeQuestion own;
  Described* const objects[] = {&own, &engine, &load};  // In the order of Variant::Of.
  SettingNames known;
  std::optional<Variant::Of> of;
  for (std::size_t i = 0; i < std::size(objects); ++i) {
    const SettingNames names = setting_names(*objects[i]);
    known.insert(names.begin(), names.end());
    if (!of && names.contains(name)) of = static_cast<Variant::Of>(i);
  }
  if (!of) throw Error("vary: " + no_such_setting(name, known));
  std::vector<Variant> variants;
  within("vary", [&] {
    const std::string values = question.vary.substr(equals + 1);
    const bool whole = is_whole(name, *objects[static_cast<std::size_t>(*of)]);
    for (const std::string& value : read_values(values, whole).listed)
      variants.push_back({name + "=" + value, *of});
  });
  return variants;
}

/// A row's prediction by constants alone.
struct ServedRow {
  MeasuredDeployment row;
  double first_ms = 0, gap_ms = 0;
  ServingPoint point{};
  std::string refused{};
};

std::vector<MeasuredDeployment> measured_in(const std::string& path,
                                            std::vector<std::string>& assumptions) {
  serve::MeasuredDeployments measured = serve::read_measured(path);
  if (measured.apart + measured.unknown > 0)
    assumptions.push_back(
        fmt::format("{}: {} with prompts apart and {} without a known model or "
                    "layout are left out",
                    path, counted(measured.apart, "row"), measured.unknown));
  return std::move(measured.rows);
}

std::vector<ServedRow> served_rows(const std::string& path,
                                   const serve::ServeCalibration& calibration,
                                   std::vector<std::string>& assumptions) {
  std::vector<ServedRow> rows;
  for (const MeasuredDeployment& row : measured_in(path, assumptions)) rows.push_back({row});
  on_all_cores(rows.size(), [&](std::size_t i) {
    ServedRow& row = rows[i];
    try {
      row.point = serve::serve_point(serve::deployment_of(row.row), calibration);
      if (!row.point.latency("tpot")->has_values)
        throw Error("osl: must be more than 1, as answers of one token have no TPOT");
      row.first_ms = static_cast<double>(row.point.latency("ttft")->mean.count()) * 1e-6;
      row.gap_ms = static_cast<double>(row.point.latency("tpot")->mean.count()) * 1e-6;
    } catch (const Error& error) {
      row.refused = error.what();
    }
  });
  return rows;
}

}  // namespace

serve::EngineSettings engine_settings_of(const std::string& text) {
  serve::EngineSettings settings;
  const std::size_t colon = text.find(':');
  settings.scheduler = text.substr(0, colon);
  if (colon != std::string::npos)
    within(settings.scheduler, [&] { read_assigned(text.substr(colon + 1), settings); });
  return settings;
}

std::vector<serve::SloPart> slo_of(const std::string& text) {
  Slo slo;
  within("--slo", [&] { read_assigned(text, slo); });
  std::erase_if(slo.parts, [](const serve::SloPart& part) { return part.limit == 0ns; });
  if (slo.parts.empty()) throw Error("--slo: must have a time above 0, such as ttft_p99=2s");
  return slo.parts;
}

serve::Deployment deployment_of(const ServeQuestion& question) {
  return deployment_of_question(question, {});
}

serve::ServeCalibration serve_calibration_of(const std::string& path,
                                             std::vector<std::string>& assumptions) {
  if (path.empty()) return {};
  const std::vector<MeasuredDeployment> measured = measured_in(path, assumptions);
  std::vector<std::optional<serve::ServeCalibration::Row>> residuals(measured.size());
  on_all_cores(measured.size(), [&](std::size_t i) {
    if (!measured[i].flags.empty()) return;
    try {
      residuals[i] =
          serve::ServedDeployment(serve::deployment_of(measured[i]), {}).residual(measured[i]);
    } catch (const Error&) {
      // The number of rows in the answer tells how many could be used.
    }
  });
  std::vector<serve::ServeCalibration::Row> rows;
  for (auto& residual : residuals) {
    if (residual) rows.push_back(std::move(*residual));
  }
  assumptions.push_back(fmt::format("corrected by {} of {}", counted(rows.size(), "row"), path));
  return serve::ServeCalibration(std::move(rows));
}

namespace {

/// Errors of rows without flags, for all and for each machine.
std::vector<ServingError> serving_errors(const std::vector<ServedRow>& rows) {
  struct Group {
    std::vector<double> first, per_token;
    double inside_first = 0, inside_per_token = 0;
  };
  std::map<std::string, Group> groups;
  for (const ServedRow& row : rows) {
    if (!row.refused.empty() || !row.row.flags.empty()) continue;
    const auto inside = [&](const char* name, double ms) {
      const auto& interval = *row.point.latency(name)->interval;
      return static_cast<double>(interval.first.count()) <= ms * 1e6 &&
             ms * 1e6 <= static_cast<double>(interval.second.count());
    };
    for (const std::string& key : {std::string(" all"), row.row.system}) {
      Group& group = groups[key];
      group.first.push_back(std::abs(row.first_ms / row.row.first_ms - 1));
      group.per_token.push_back(std::abs(row.gap_ms / row.row.gap_ms - 1));
      group.inside_first += inside("ttft", row.row.first_ms) ? 1 : 0;
      group.inside_per_token += inside("tpot", row.row.gap_ms) ? 1 : 0;
    }
  }
  std::vector<ServingError> errors;
  for (auto& [name, group] : groups) {
    const auto count = static_cast<double>(group.first.size());
    errors.push_back({.what = name == " all" ? "all" : name,
                      .rows = group.first.size(),
                      .first = median(group.first),
                      .per_token = median(group.per_token),
                      .inside_first = group.inside_first / count,
                      .inside_per_token = group.inside_per_token / count});
  }
  return errors;
}

/// Rows without flags that differ by their release alone: a release is priced where it changes what
/// an engine does, not where it merely is faster.
ServingReleases releases_of(const std::vector<ServedRow>& rows) {
  std::map<std::string, std::vector<const ServedRow*>> cells;
  for (const ServedRow& row : rows) {
    const MeasuredDeployment& of = row.row;
    if (!row.refused.empty() || !of.flags.empty() || of.version.empty()) continue;
    cells[fmt::format("{} {} {} {} {} {} {} {} {} {}", of.model, of.system, of.scheduler,
                      of.weights, of.placement.tensor, of.placement.data, of.placement.expert,
                      of.input, of.output, of.concurrency)]
        .push_back(&row);
  }
  constexpr double kSame = 1e-3;
  ServingReleases found;
  std::vector<double> apart;
  for (const auto& entry : cells) {
    const std::vector<const ServedRow*>& cell = entry.second;
    const auto other = std::ranges::find_if(
        cell, [&](const ServedRow* row) { return row->row.version != cell.front()->row.version; });
    if (other == cell.end()) continue;
    ++found.cells;
    const auto priced = std::ranges::minmax(cell, {}, &ServedRow::gap_ms);
    if (priced.max->gap_ms > priced.min->gap_ms * (1 + kSame)) continue;
    ++found.alike;
    const auto measured =
        std::ranges::minmax(cell, {}, [](const ServedRow* row) { return row->row.gap_ms; });
    apart.push_back(measured.max->row.gap_ms / measured.min->row.gap_ms - 1);
    if (found.example.empty()) found.example = cell.front()->row.id + " and " + (*other)->row.id;
  }
  if (!apart.empty()) found.apart = median(apart);
  return found;
}

/// The ends of the interval are those of the throughput.
TokenPrice token_price(const ServingPoint& point, const GpuPrice& price) {
  const double outputs = point.output_tokens_per_second, all = point.all_tokens_per_second;
  const auto ranged = [&](double tokens) {
    return RangedNumber{price_of_a_million(1 / tokens, price),
                        price_of_a_million(outputs / tokens / point.upper_output_tokens, price),
                        price_of_a_million(outputs / tokens / point.lower_output_tokens, price)};
  };
  return {price.per_hour, price.currency, ranged(outputs), ranged(all)};
}

/// Adds a price to each point. Where several devices are asked about, one without a price is noted.
void add_prices(const ServeQuestion& question, const std::vector<Deployment>& deployments,
                ServingReport& report) {
  if (question.prices.empty()) return;
  const GpuFigures prices(question.prices, "prices");
  for (std::size_t i = 0; i < deployments.size(); ++i) {
    ServingPoint& point = report.points[i];
    if (!point.refused.empty()) continue;
    try {
      point.price = token_price(point, prices.price_of(deployments[i].platform.device.name));
    } catch (const Error& error) {
      if (deployments.size() == 1) throw;
      report.assumptions.push_back(point.changed + " has no price: " + error.what());
    }
  }
  report.assumptions.push_back(
      "GPUs are paid for from the first request to the last token of the replayed load");
}

}  // namespace

double price_of_a_million(double seconds, const GpuPrice& price) {
  constexpr double kHour = 3600, kMillion = 1e6;
  return seconds * price.per_hour / kHour * kMillion;
}

std::string placement_text(const ServeQuestion& question) {
  std::string text = fmt::format("tensor {}", question.tensor);
  if (question.data > 1) text += fmt::format(", data {}", question.data);
  if (question.expert > 1) text += fmt::format(", expert {}", question.expert);
  if (question.replicas > 1) text += ", " + counted(question.replicas, "replica");
  if (question.prefill_replicas > 0)
    text += fmt::format(", {} for prompts", question.prefill_replicas);
  return text;
}

std::string load_text(const serve::Load& load) {
  const std::string lengths =
      fmt::format("prompts of {}{} tokens, answers of {}{}", load.range < 1 ? "up to " : "",
                  load.input, load.range < 1 ? "up to " : "", load.output);
  if (!load.file.empty()) return "requests of " + load.file;
  if (load.burst) return "all requests at once, " + lengths;
  if (load.rate > 0)
    return fmt::format("{} requests a second at random times, {}", load.rate, lengths);
  return fmt::format("{} at a time, {}", counted(load.concurrency, "request"), lengths);
}

void add_serve_assumptions(const ServeQuestion& question, const Deployment& deployment,
                           std::vector<std::string>& assumptions) {
  if (question.table.empty())
    assumptions.push_back(
        "the price of a step is that of single operations with constants fitted to measured "
        "deployments (src/serve/constants.def); experts are chosen at random");
  else
    assumptions.push_back(
        fmt::format("steps of {} are those of this model, machine, layout and precision, which a "
                    "table does not name",
                    question.table));
  if (question.cache == "auto")
    assumptions.push_back(fmt::format("the cache is in {}, as the weights suggest",
                                      deployment.precision.cache_bytes == 1 ? "fp8" : "bf16"));
  if (deployment.engine.hit_share == 0) assumptions.push_back("no prompt is in the prefix cache");
  if (deployment.prefill_replicas > 0)
    assumptions.push_back("each GPU sends its part of a prompt's cache over its own NIC");
  if (deployment.placement.data > 1)
    assumptions.push_back("ranks of data parallel attention step alone, not together");
}

void ServeQuestion::describe_served(Fields& fields) {
  fields.as({.value = "MODEL", .is_positional = true})
      .name_or_path("model", model,
                    "The model: a transformer from `foretrace list models`, or a file");
  fields.name_or_path("machine", machine,
                      "The machine: a name from `foretrace list machines`, or a file");
  fields.as({.value = "ENGINE"})
      .text("engine", engine,
            "vllm, sglang or trtllm, with settings: vllm:max_num_seqs=64,prefix_hits=0.3");
  fields.text("engine_version", version, "The engine's version");
  fields.as({.value = "SETTINGS"})
      .text("load", load,
            "The load: concurrency=64 (at a time), rate=8 (a second), burst=true or "
            "file=requests.csv, with input=1024,output=1024,range=0.8,requests=640");
  fields.choice("weights", weights, {"bf16", "fp8", "fp8_block", "fp4", "int4"},
                "Precision of weights");
}

void ServeQuestion::describe_measured(Fields& fields) {
  fields.path("table", table, "Measured steps, a CSV with kind, batch, context and time_us");
  fields.path("calibrate", calibrate, "Correct by measured deployments, a CSV (docs/serving.md)");
}

void ServeQuestion::describe_memory(Fields& fields) {
  fields.number("gpu_memory_utilization", utilization,
                "Share of memory for the engine; by default its own rule", 0.05, 1);
}

void ServeQuestion::describe_prices(Fields& fields) {
  fields.path("prices", prices, "Prices of GPUs: JSON, {\"prices\": {\"h100\": \"2.5 USD/h\"}}");
}

void ServeQuestion::describe(Fields& fields) {
  describe_served(fields);
  fields.choice("cache", cache, {"auto", "bf16", "fp8", "fp4"}, "Precision of keys and values");
  describe_layout(fields);
  describe_measured(fields);
  fields.path("against", against, "Compare predictions with measured deployments, a CSV");
  fields.as({.value = "TIMES"})
      .text("goodput", goodput,
            "Demanded times; the answer counts requests that meet them: ttft=500ms,tpot=50ms");
  fields.as({.value = "TIMES"})
      .text("slo", slo,
            "Latencies that must hold, ttft_p99=2s,tpot_p99=50ms: the exit code is 1 if one is "
            "missed, 4 if only typical ones hold and not the upper ends");
  describe_prices(fields);
  fields.as({.value = "SETTING=VALUES"})
      .text("vary", vary,
            "Values of a setting of engine, load or layout: max_num_seqs=32,64,128 or "
            "concurrency=8..64/x2");
}

void ServeQuestion::describe_layout(Fields& fields) {
  fields.integer("tensor", tensor, "Tensor parallel GPUs", 1, 1024);
  fields.integer("data", data, "Data parallel ranks of attention, which share experts", 1, 1024);
  fields.integer("expert", expert, "Groups of experts", 1, 1024);
  fields.integer("replicas", replicas, "Copies of the model behind a router", 1, 1024);
  fields.integer("prefill_replicas", prefill_replicas,
                 "More copies, which only compute prompts and send their cache on", 0, 1024);
  fields.choice("router", router, {"least_busy", "round_robin"}, "Where requests go");
  describe_memory(fields);
}

ServingReport serve_model(const ServeQuestion& question) {
  ServingReport report;
  const serve::ServeCalibration calibration = within(
      "--calibrate", [&] { return serve_calibration_of(question.calibrate, report.assumptions); });
  if (!question.against.empty()) {
    if (!question.prices.empty()) throw Error("--prices: must not be given with --against");
    if (!question.slo.empty()) throw Error("--slo: must not be given with --against");
    const auto rows = served_rows(question.against, calibration, report.assumptions);
    for (const ServedRow& row : rows)
      report.rows.push_back({.id = row.row.id,
                             .system = row.row.system,
                             .first_ms = row.first_ms,
                             .measured_first_ms = row.row.first_ms,
                             .gap_ms = row.gap_ms,
                             .measured_gap_ms = row.row.gap_ms,
                             .refused = row.refused});
    report.errors = serving_errors(rows), report.releases = releases_of(rows);
    return report;
  }
  const std::vector<Variant> variants = variants_of(question);
  std::vector<Deployment> deployments;
  for (const Variant& variant : variants)
    deployments.push_back(deployment_of_question(question, variant));
  report.points.resize(variants.size());
  std::vector<std::string> refused(variants.size());
  on_all_cores(variants.size(), [&](std::size_t i) {
    try {
      report.points[i] = serve::serve_point(deployments[i], calibration, question.table);
    } catch (const Error& error) {
      if (variants.size() == 1) throw;
      report.points[i].refused = error.what();
    }
    report.points[i].changed = variants[i].changed;
  });
  if (std::ranges::none_of(report.points, &std::string::empty, &ServingPoint::refused))
    throw Error(report.points.front().refused);
  const Deployment& first = deployments.front();
  const serve::CacheMemory memory = serve::cache_memory(first);
  report.model = question.model, report.machine = question.machine;
  report.engine = question.engine, report.placement = placement_text(question);
  report.precision = question.weights, report.load = load_text(first.load);
  report.weights = {std::llround(memory.weights)}, report.cache = {std::llround(memory.cache)};
  const std::int64_t blocks = first.engine.blocks > 0 ? first.engine.blocks : memory.blocks;
  report.cache_tokens = blocks * first.engine.block;
  add_serve_assumptions(question, first, report.assumptions);
  add_prices(question, deployments, report);
  return report;
}

}  // namespace foretrace
