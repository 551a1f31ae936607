#include "studies/serve/space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>

#include "base/fields/assignments.h"
#include "base/wording.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/question/training.h"
#include "question/serve/asked.h"

namespace foretrace {
namespace {

/// Tokens of a step that are tried beside the engine's own limit.
constexpr std::array<std::int64_t, 5> kTokenLimits = {1024, 2048, 4096, 8192, 16384};
/// Each configuration replays all requests, so a load is refused if it has more.
constexpr std::size_t kMaxRequests = 20'000;
constexpr double kNano = 1e9;

void check(const ServePlanQuestion& question) {
  const ServeQuestion& served = question.served;
  if (served.model.empty() || served.machine.empty())
    throw Error(
        "plan serve: must have a model and a machine, such as plan serve llama3-8b --machine "
        "dgx-h100 --load rate=4,input=2000,output=300 --slo ttft_p99=2s,tpot_p99=50ms");
  if (served.load.empty())
    throw Error("--load: must be given, such as rate=4,input=2000,output=300");
  if (question.slo.empty()) throw Error("--slo: must be given, such as ttft_p99=2s,tpot_p99=50ms");
  if (!served.table.empty() && question.tensor.size() != 1)
    throw Error(
        "--tensor: must be one number with --table, whose steps are those of one placement");
}

std::vector<std::int64_t> gpus_of(const ServePlanQuestion& question) {
  std::vector<std::int64_t> gpus = question.gpus;
  const Cluster cluster = find_cluster(question.served.machine, gpus.empty() ? 0 : gpus.back());
  if (gpus.empty())
    for (std::int64_t i = 1; i <= std::ssize(cluster.placement); ++i) gpus.push_back(i);
  return gpus;
}

bool divides(std::int64_t count, double size) {
  return std::fmod(size, static_cast<double>(count)) == 0;
}

/// Adds the placements with and without groups of experts.
void add_placements(const serve::Model& model, std::int64_t tensor, std::int64_t data,
                    std::vector<serve::Placement>& all) {
  const std::int64_t devices = tensor * data;
  if (model.experts == 0 || divides(devices, model.expert_ffn)) all.push_back({tensor, data, 1});
  if (model.experts > 0 && devices > 1 && divides(devices, model.experts))
    all.push_back({tensor, data, devices});
}

}  // namespace

ServeSpace::ServeSpace(const ServePlanQuestion& asked) : question(asked) {
  check(question);
  ServeQuestion first = question.served;
  caches = {first.cache};
  if (first.cache == "any") caches = {"bf16", "fp8"}, first.cache = "bf16";
  base = deployment_of(first), given = engine_settings_of(first.engine);
  if (peak_of(base.platform.device, Arithmetic::fp8).flops_per_second == 0 && caches.size() > 1)
    caches.pop_back();
  base.slo = slo_of(question.slo), gpus = gpus_of(question);
  read_load();
  calibration_ = within(
      "--calibrate", [&] { return serve_calibration_of(question.served.calibrate, assumptions); });
  if (!first.prices.empty()) price = price_of(first.prices, base.platform.device.name);
}

void ServeSpace::read_load() {
  const std::vector<serve::Request> all = serve::requests_of(base.load);
  requests = all.size();
  serve::check_demands(base.slo, all);
  if (requests > kMaxRequests)
    throw Error(fmt::format(
        "--load: must have at most {} requests, as each configuration replays all, got {}",
        grouped(kMaxRequests), grouped(requests)));
  const std::int64_t most =
      base.engine.max_length > 0 ? base.engine.max_length : base.model.context;
  double outputs = 0;
  for (const serve::Request& request : all) {
    outputs += static_cast<double>(request.output);
    if (request.input + request.output > most)
      throw Error(fmt::format(
          "--load: input and output of a request must be at most the {} tokens that {} serves, got "
          "{} and {}",
          most, base.model.name, request.input, request.output));
  }
  const double span_ns = static_cast<double>((all.back().arrival - all.front().arrival).count());
  const double mean = outputs / static_cast<double>(requests);
  if (base.load.rate > 0) offered_ = base.load.rate * mean;
  if (!base.load.file.empty() && span_ns > 0) offered_ = outputs / span_ns * kNano;
}

std::vector<ServedCopy> ServeSpace::copies() const {
  const serve::Model& model = base.model;
  const std::int64_t node = base.platform.per_node, most = gpus.back();
  std::vector<serve::Placement> placements;
  for (std::int64_t tensor = 1; tensor <= std::min(most, static_cast<std::int64_t>(model.heads));
       ++tensor) {
    if (!divides(tensor, model.heads)) continue;
    if (!question.tensor.empty() && !std::ranges::binary_search(question.tensor, tensor)) continue;
    for (std::int64_t data = 1; data <= (model.experts > 0 ? most / tensor : 1); ++data)
      if (tensor * data <= node || tensor * data % node == 0)
        add_placements(model, tensor, data, placements);
  }
  std::vector<ServedCopy> all;
  for (const std::string& cache : caches) {
    const serve::Precision precision =
        serve::precision_of(model, question.served.weights, cache, base.platform.device);
    for (const serve::Placement& placement : placements)
      all.push_back({placement, cache, precision});
  }
  if (all.empty())
    throw Error("--tensor: must have a divisor of the model's heads that --gpus have room for");
  return all;
}

std::string ServeSpace::fit(ServedCopy& copy) const {
  std::vector<std::int64_t> limits = {base.engine.max_tokens};
  for (const std::int64_t limit : kTokenLimits) {
    if (given.max_tokens == 0 && limit != limits.front()) limits.push_back(limit);
  }
  std::string why;
  for (const std::int64_t limit : limits) {
    try {
      const serve::ServedDeployment served = served_by({.copy = &copy, .tokens = limit});
      served.check();
      copy.capacity = std::max(copy.capacity, served.capacity());
      copy.tokens.push_back(limit);
    } catch (const Error& error) {
      const std::string text = error.what();
      if (why.empty()) why = text.substr(0, text.find("; use "));
    }
  }
  return copy.tokens.empty() ? why : "";
}

serve::ServedDeployment ServeSpace::served_by(const ServeCandidate& candidate) const {
  serve::Deployment deployment = base;
  deployment.placement = candidate.copy->placement;
  deployment.precision = candidate.copy->precision;
  deployment.engine.max_tokens = candidate.tokens;
  deployment.engine.max_sequences = sequences_of(candidate);
  deployment.replicas = candidate.replicas, deployment.prefill_replicas = candidate.prefill;
  return {deployment, calibration_, question.served.table};
}

double ServeSpace::share_of(const ServingPoint& point, const SloPart& part) const {
  return static_cast<double>((point.latency(part.latency)->*part.statistic).count()) /
         static_cast<double>(part.limit.count());
}

double ServeSpace::share_of(const ServingPoint& point) const {
  double share = 0;
  for (const SloPart& part : base.slo) share = std::max(share, share_of(point, part));
  return share;
}

double ServeSpace::cost_of(const ServingPoint& point) const {
  return offered_ > 0 ? static_cast<double>(point.gpus) / offered_
                      : 1 / point.output_tokens_per_second;
}

std::int64_t ServeSpace::sequences_of(const ServeCandidate& candidate) const {
  return candidate.sequences > 0 ? candidate.sequences : base.engine.max_sequences;
}

ServeQuestion ServeSpace::asked_of(const ServeCandidate& candidate) const {
  ServeQuestion asked = question.served;
  const serve::Placement& placement = candidate.copy->placement;
  asked.tensor = placement.tensor, asked.data = placement.data, asked.expert = placement.expert;
  asked.replicas = candidate.replicas, asked.prefill_replicas = candidate.prefill;
  asked.cache = candidate.copy->cache;
  const auto add = [&](const char* name, std::int64_t value) {
    asked.engine += asked.engine.find(':') == std::string::npos ? ":" : ",";
    asked.engine += fmt::format("{}={}", name, value);
  };
  if (given.max_sequences == 0) add("max_num_seqs", sequences_of(candidate));
  if (given.max_tokens == 0) add("max_num_batched_tokens", candidate.tokens);
  return asked;
}

std::string ServeSpace::words_of(const ServeCandidate& candidate) const {
  std::string text = placement_text(asked_of(candidate));
  if (caches.size() > 1) text += fmt::format(", {} cache", candidate.copy->cache);
  if (candidate.sequences > 0) text += fmt::format(", max_num_seqs {}", candidate.sequences);
  if (candidate.tokens != base.engine.max_tokens)
    text += fmt::format(", max_num_batched_tokens {}", candidate.tokens);
  return text;
}

ServePlanRow ServeSpace::row_of(const ServeCandidate& candidate,
                                const ServingPoint& typical) const {
  ServePlanRow row{.asked = asked_of(candidate),
                   .configuration = words_of(candidate),
                   .gpus = candidate.gpus(),
                   .max_sequences = sequences_of(candidate),
                   .max_tokens = candidate.tokens,
                   .point = typical};
  for (const SloPart& part : base.slo)
    row.figures.push_back({part.name, part.limit, typical.latency(part.latency)->*part.statistic});
  if (price) row.price = price_of_a_million(cost_of(typical), *price);
  return row;
}

std::string command_of(const ServeQuestion& asked) {
  const ServeQuestion defaults;
  std::string text = fmt::format("foretrace serve {} --machine {}", asked.model, asked.machine);
  const auto add = [&](const char* name, const auto& value, const auto& usual) {
    if (value != usual) text += fmt::format(" --{} {}", name, value);
  };
  add("tensor", asked.tensor, 1), add("data", asked.data, 1), add("expert", asked.expert, 1);
  add("replicas", asked.replicas, 1), add("prefill-replicas", asked.prefill_replicas, 0);
  add("engine", asked.engine, ""), add("engine-version", asked.version, "");
  add("weights", asked.weights, ""), add("cache", asked.cache, "");
  add("gpu-memory-utilization", asked.utilization, defaults.utilization);
  add("table", asked.table, ""), add("calibrate", asked.calibrate, "");
  add("prices", asked.prices, "");
  return text + " --load " + asked.load;
}

}  // namespace foretrace
