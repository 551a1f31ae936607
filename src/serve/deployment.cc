#include "serve/deployment.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <tuple>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace::serve {
namespace {

constexpr double kMebi = 1024 * 1024, kGibi = 1024 * kMebi;
/// Bytes that a device holds besides weights, cache and activations: the context, libraries, and
/// buffers of collectives; and captured graphs. Recalled from logs of vLLM.
constexpr double kContext = .5 * kGibi, kCollectives = 1 * kGibi, kGraphs = .6 * kGibi;
/// Tokens of the first chunk in measured deployments of SGLang: InferenceX's --stream-interval. Not
/// stated in their tables, but without it TTFT does not grow with the load as measured.
constexpr std::int64_t kSglangStream = 30;
/// How the names of devices begin whose deployments the constants were fitted to, and the
/// precisions of their weights.
struct Fitted {
  std::string_view device;
  std::vector<std::string_view> weights;
};
const Fitted kFitted[] = {{"h100-sxm", {"bf16", "fp8", "fp8_block", "fp4"}},
                          {"h200-sxm", {"fp8", "fp8_block", "fp4", "int4"}},
                          {"b200", {"fp8", "fp8_block", "fp4"}},
                          {"b300", {"bf16", "fp8", "fp8_block", "fp4"}}};
/// A row counts as a deployment like this one from this weight on: the same but for its lengths,
/// its load or its version. Chosen.
constexpr double kAlike = .5;
/// Steps outside of a table may take so much of the time. Chosen.
constexpr double kOutside = .05;
constexpr double kVllmShare = .92, kTrtllmShare = .9;

/// For a step with most tokens: the widest rows of a layer, twice, and the logits of most requests.
double activation_bytes(const Deployment& deployment) {
  const Model& model = deployment.model;
  const auto tensor = static_cast<double>(deployment.placement.tensor);
  const auto tokens = static_cast<double>(deployment.engine.max_tokens);
  const double rows =
      static_cast<double>(std::min(deployment.engine.max_sequences, deployment.engine.max_tokens));
  return tokens * 2 *
             std::max(4 * model.hidden,
                      2 * std::max(model.ffn, model.active * model.expert_ffn) / tensor) +
         rows * model.vocabulary / tensor * 6;
}

/// Bytes that SGLang keeps free of weights and cache (server_args.py, 2025).
double sglang_reserve(const Deployment& deployment, double total) {
  const double chunk = std::max<double>(static_cast<double>(deployment.engine.max_tokens), 2048);
  const double mebi = 512 + 1.5 * chunk + 2 * static_cast<double>(deployment.engine.max_graph) +
                      static_cast<double>(deployment.placement.tensor) / 8 * 1024;
  return (total > 60 * kGibi ? std::max(mebi, 10240.) : mebi) * kMebi;
}

/// A price whose steps are so many times as long.
class ScaledPrice final : public StepPrice {
 public:
  ScaledPrice(std::unique_ptr<StepPrice> price, double factor)
      : price_(std::move(price)), factor_(factor) {}
  StepTime of(const StepWork& work) const override {
    StepTime time = price_->of(work);
    time.ns *= factor_;
    for (double& part : time.parts) part *= factor_;
    return time;
  }

 private:
  std::unique_ptr<StepPrice> price_;
  double factor_;
};

FrontEnd front_of(const Deployment& deployment) {
  const ServeConstants constants;
  const EngineCosts costs = costs_of(constants, deployment.engine.scheduler, deployment.version);
  return {
      .constant = from_microseconds(costs.entry_us),
      .each = from_microseconds(costs.each_us),
      .token_ns = constants.token * 1e3,
      .count = deployment.prefill_replicas > 0 ? deployment.prefill_replicas : deployment.replicas};
}

Fleet fleet_of(const Deployment& deployment, const CacheMemory& memory) {
  Fleet fleet{.engine = deployment.engine,
              .replicas = deployment.replicas * deployment.placement.data,
              .least_busy = deployment.least_busy};
  if (fleet.engine.blocks == 0) fleet.engine.blocks = memory.blocks;
  if (fleet.engine.max_length == 0) fleet.engine.max_length = deployment.model.context;
  const double block_bytes =
      cache_bytes_per_token(deployment.model, deployment.precision, deployment.placement.tensor) *
      static_cast<double>(fleet.engine.block);
  fleet.engine.held_blocks = static_cast<std::int64_t>(
      std::ceil(cache_bytes_per_sequence(deployment.model, deployment.precision,
                                         deployment.placement.tensor) /
                block_bytes));
  fleet.front = front_of(deployment);
  if (deployment.prefill_replicas > 0) {
    fleet.prefill_replicas = deployment.prefill_replicas * deployment.placement.data;
    fleet.prefill_engine = fleet.engine;
    // Each device sends its part of the cache, in whole blocks, over its own NIC.
    const Bandwidth link = deployment.platform.across;
    fleet.transfer = [block_bytes, link, block = fleet.engine.block](std::int64_t tokens) {
      return time_for({std::llround(block_bytes * static_cast<double>(blocks_for(tokens, block)))},
                      link);
    };
  }
  return fleet;
}

/// The load that servers before the engines can take, in requests a second.
double front_capacity(const Deployment& deployment) {
  const FrontEnd front = front_of(deployment);
  const double input = static_cast<double>(deployment.load.input) * (1 + deployment.load.range) / 2;
  return 1e9 * static_cast<double>(front.count) / front.busy_ns(input);
}

/// `busy`: share of the time that engines have work; `front_busy`: the same of servers before them
/// if these limit the capacity, else 0. An engine has work all the time at low loads as well, in
/// small steps.
std::string bound_of(const ServingPoint& point, const Deployment& deployment, double busy,
                     double front_busy) {
  if (front_busy >= .5)
    return fmt::format(
        "the server before the engine, which takes requests one after the other {} of the time",
        to_share(front_busy, 0));
  if (busy < .5)
    return fmt::format("nothing: engines are idle {} of the time", to_share(1 - busy, 0));
  const std::string step = fmt::format("{} takes {} of the time of steps", point.shares[0].first,
                                       to_share(point.shares[0].second, 0));
  if (point.preemptions > 0 || (point.waiting_mean > 1 && point.cache_peak > .97))
    return "the cache is full, so that requests wait or are computed again; " + step;
  if (point.waiting_mean > 1 &&
      point.concurrency > static_cast<double>(deployment.engine.max_sequences))
    return "max_num_seqs is reached, so that requests wait; " + step;
  return step;
}

/// Where the deployment is unlike all measured ones; empty if it is like some. `was_given`: one of
/// the same kind, length and load is known.
std::string differences_of(const Deployment& deployment, bool was_given) {
  std::string why;
  const auto add = [&](bool is_far, const std::string& what) {
    if (is_far) why += (why.empty() ? "" : ", ") + what;
  };
  if (!was_given) {
    const std::string device = lower_case(deployment.platform.device.name);
    const auto* const fitted = std::ranges::find_if(
        kFitted, [&](const Fitted& one) { return device.starts_with(one.device); });
    const bool is_fitted = fitted != std::end(kFitted);
    const std::string& weights = deployment.precision.name;
    add(!is_fitted, "none on " + deployment.platform.device.name);
    add(is_fitted && std::ranges::find(fitted->weights, weights) == fitted->weights.end(),
        fmt::format("none with {} weights on {}", weights, deployment.platform.device.name));
    add(deployment.placement.tensor > 8, "none over more than 8 GPUs");
    add(deployment.placement.data > 1, "few with attention that is data parallel");
    add(described(deployment).concurrency > 512, "none with more than 512 requests at a time");
    add(deployment.load.input > 8192 || deployment.load.output > 8192,
        "none with longer prompts or answers than 8192 tokens");
  }
  add(deployment.prefill_replicas > 0, "none with prompts apart");
  add(deployment.replicas > 1, "none with several replicas");
  add(deployment.engine.hit_share > 0, "none with prompts in the prefix cache");
  add(!deployment.load.is_closed(), "none with another load than a closed one");
  return why;
}

std::string basis_of_table(double outside, bool& is_covered) {
  is_covered = outside <= kOutside;
  const std::string text = "steps are those of the given table";
  if (outside == 0) return text;
  return fmt::format(
      "{}, scaled as single operations are for {} of the time of steps, outside of it", text,
      to_share(outside, 0));
}

std::string basis_of(const Deployment& deployment, const Correction& correction, bool& is_covered) {
  const bool was_given = correction.nearest >= kAlike;
  const std::string why = differences_of(deployment, was_given);
  is_covered = why.empty();
  if (was_given)
    return is_covered ? "measured deployments like this one were given"
                      : "measured deployments were given, but " + why;
  return is_covered ? "constants were fitted to measured deployments of this engine and device"
                    : "constants were fitted to measured deployments, but " + why;
}

/// Makes times to the first token so many times as long. In a closed load requests are sent when
/// others end, and so later.
void stretch_first(ServedLoad& load, double factor, bool is_closed) {
  double before = 0, after = 0;
  for (RequestRecord& record : load.records) {
    const Nanoseconds more =
        scaled(record.first - record.sent, factor) - (record.first - record.sent);
    before += static_cast<double>((record.end - record.sent).count());
    record.started = record.sent + scaled(record.started - record.sent, factor);
    record.first += more, record.end += more;
    after += static_cast<double>((record.end - record.sent).count());
  }
  if (!is_closed) return;
  for (RequestRecord& record : load.records) {
    const Nanoseconds later = scaled(record.sent, after / before) - record.sent;
    for (Nanoseconds* time : {&record.sent, &record.started, &record.first, &record.end})
      *time += later;
  }
  load.end = scaled(load.end, after / before);
}

}  // namespace

std::int64_t blocks_in(double total, double utilization, double weights, double other,
                       double block_bytes) {
  return static_cast<std::int64_t>(
      std::floor((std::ceil(total * utilization) - weights - other) / block_bytes));
}

CacheMemory cache_memory(const Deployment& deployment) {
  const auto total = static_cast<double>(deployment.platform.device.memory.count);
  const bool is_alone = deployment.placement.devices() == 1;
  CacheMemory memory;
  memory.weights = weight_bytes(deployment.model, deployment.precision, deployment.placement);
  memory.other = activation_bytes(deployment) + kContext + (is_alone ? 0 : kCollectives) +
                 (deployment.engine.max_graph > 0 ? kGraphs : 0);
  double usable = total * (deployment.utilization > 0 ? deployment.utilization : kVllmShare);
  if (deployment.engine.scheduler == "sglang") {
    memory.other = sglang_reserve(deployment, total);
    usable = deployment.utilization > 0 ? usable + memory.other : total;
  } else if (deployment.engine.scheduler == "trtllm") {
    const double left = std::max(0., total - memory.weights - memory.other);
    const double share = deployment.utilization > 0 ? deployment.utilization : kTrtllmShare;
    usable = memory.weights + memory.other + left * share;
  }
  const double block_bytes =
      cache_bytes_per_token(deployment.model, deployment.precision, deployment.placement.tensor) *
      static_cast<double>(deployment.engine.block);
  memory.blocks = blocks_in(usable, 1, memory.weights, memory.other, block_bytes);
  if (memory.weights + memory.other >= total || memory.blocks < 1)
    throw Error(fmt::format(
        "{} must fit on {}: of its {}, weights take {} and the rest {}; use more GPUs (tensor), "
        "narrower weights or a smaller max_num_batched_tokens",
        deployment.model.name, deployment.platform.device.name,
        to_text(deployment.platform.device.memory), to_text(Bytes{std::llround(memory.weights)}),
        to_text(Bytes{std::llround(memory.other)})));
  memory.cache = static_cast<double>(memory.blocks) * block_bytes;
  return memory;
}

Capacity capacity_of(const Deployment& deployment, const StepPrice& price) {
  const EngineSettings& engine = deployment.engine;
  const double share = (1 + deployment.load.range) / 2;
  const double input = static_cast<double>(deployment.load.input) * share;
  const double output = std::max(1., static_cast<double>(deployment.load.output) * share);
  const double held = std::ceil((input + output / 2) / static_cast<double>(engine.block)) +
                      static_cast<double>(engine.held_blocks);
  const double together =
      std::max(1., std::min(static_cast<double>(engine.max_sequences),
                            std::floor(static_cast<double>(engine.blocks) / held)));
  StepWork decode{.sequences = together,
                  .context = together * (input + output / 2),
                  .sampled = together,
                  .rows = together,
                  .in_graph = true};
  const double computed = std::max(1., input * (1 - engine.hit_share));
  StepWork prompt{.prompt_tokens = computed,
                  .prompt_pairs = computed * (input - computed) + computed * (computed + 1) / 2,
                  .prompt_context = input - computed,
                  .sampled = 1,
                  .rows = computed,
                  .in_graph = true};
  // Prompts fill steps together, as far as the budget of tokens goes.
  const double share_of_step =
      std::max(1., std::floor(static_cast<double>(engine.max_tokens) / computed));
  const double batch = std::min(share_of_step, together);
  prompt.prompt_tokens *= batch, prompt.prompt_pairs *= batch, prompt.prompt_context *= batch;
  prompt.sampled *= batch, prompt.rows *= batch;
  const double decode_ns = (output - 1) * price.of(decode).ns;
  const double prompt_ns = together / batch * price.of(prompt).ns;
  const double second = 1e9 * together * static_cast<double>(deployment.placement.data);
  const auto copies = static_cast<double>(deployment.replicas);
  const double most = front_capacity(deployment);
  const double tokens = std::max(1., output - 1);
  if (deployment.prefill_replicas == 0)
    return {std::min(most, second * copies / (decode_ns + prompt_ns)),
            (decode_ns + prompt_ns) / tokens};
  const auto prefill = static_cast<double>(deployment.prefill_replicas);
  return {std::min(most, second * std::min(copies / std::max(1., decode_ns), prefill / prompt_ns)),
          decode_ns / tokens};
}

void check_demands(const std::vector<SloPart>& slo, const std::vector<Request>& requests) {
  if (std::ranges::any_of(requests, [](const Request& one) { return one.output > 1; })) return;
  for (const SloPart& part : slo) {
    if (part.latency == "tpot" || part.latency == "itl")
      throw Error(fmt::format("--slo: must not have {}, as all answers have one token", part.name));
  }
}

std::unique_ptr<StepPrice> price_of(const Deployment& deployment, const std::string& table,
                                    double factor) {
  std::unique_ptr<StepPrice> price =
      std::make_unique<DevicePrice>(deployment.model, deployment.precision, deployment.placement,
                                    deployment.platform, deployment.engine.scheduler);
  if (!table.empty()) price = std::make_unique<TablePrice>(table, std::move(price));
  if (factor == 1) return price;
  return std::make_unique<ScaledPrice>(std::move(price), factor);
}

MeasuredDeployment described(const Deployment& deployment) {
  return {
      .model = deployment.model.name,
      .system = deployment.platform.name,
      .scheduler = deployment.engine.scheduler,
      .version = deployment.version,
      .weights = deployment.precision.name,
      .placement = deployment.placement,
      .input = deployment.load.input,
      .output = deployment.load.output,
      .concurrency = std::max<std::int64_t>(1, deployment.load.concurrency / deployment.replicas)};
}

ServedDeployment::ServedDeployment(const Deployment& deployment,
                                   const ServeCalibration& calibration, std::string table)
    : deployment_(deployment), table_(std::move(table)) {
  check_placement(deployment.model, deployment.placement);
  const CacheMemory memory = cache_memory(deployment);
  fleet_ = fleet_of(deployment, memory);
  deployment_.engine = fleet_.engine;
  requests_ = requests_of(deployment.load);
  MeasuredDeployment like = described(deployment);
  if (!deployment.load.is_closed() && !calibration.is_empty())
    like.concurrency = std::max<std::int64_t>(
        1, std::llround(moved(0).concurrency / static_cast<double>(deployment.replicas)));
  errors_ = calibration.of(like);
  basis_ = basis_of(deployment, errors_, is_covered_);
  if (!table_.empty()) {
    const ServedLoad served = run(0);
    basis_ = basis_of_table(served.outside_ns / std::max(1., served.busy_ns), is_covered_);
  }
  // Where nothing like it was measured intervals are half as wide again.
  const double wider = is_covered_ ? 1 : 1.5;
  errors_.first_error *= wider, errors_.per_token_error *= wider;
}

std::int64_t ServedDeployment::gpus() const {
  return (deployment_.replicas + deployment_.prefill_replicas) * deployment_.placement.tensor *
         deployment_.placement.data;
}

std::unique_ptr<StepPrice> ServedDeployment::price(double way) const {
  return price_of(deployment_, table_,
                  std::exp(errors_.per_token) * std::exp(way * errors_.per_token_error));
}

double ServedDeployment::capacity() const { return capacity_of(deployment_, *price(0)).rate; }

void ServedDeployment::check() const {
  for (const Request& request : requests_) check_runs(request, fleet_.engine);
}

ServedLoad ServedDeployment::run(double way, std::int64_t concurrency) const {
  ServedLoad served = replay(requests_, concurrency, fleet_, *price(way));
  if (errors_.first != 0) stretch_first(served, std::exp(errors_.first), concurrency > 0);
  return served;
}

ServedLoad ServedDeployment::run(double way) const {
  return run(way, deployment_.load.is_closed() ? deployment_.load.concurrency : 0);
}

ServingPoint ServedDeployment::typical() const {
  const ServedLoad served = run(0);
  ServingPoint point = figures_of(served, gpus());
  if (deployment_.demands.any()) point.goodput = goodput_of(served, deployment_.demands);
  const double span = std::max(1., static_cast<double>(served.end.count()));
  const double busy =
      served.busy_ns / span / static_cast<double>(fleet_.replicas + fleet_.prefill_replicas);
  const bool is_front = capacity() >= front_capacity(deployment_);
  const double front_busy =
      is_front ? served.front_ns / span / static_cast<double>(fleet_.front.count) : 0;
  point.bound = bound_of(point, deployment_, busy, front_busy);
  point.basis = basis_, point.is_covered = is_covered_;
  return point;
}

ServingPoint ServedDeployment::moved(double way) const { return figures_of(run(way), gpus()); }

ServingPoint ServedDeployment::alone() const { return figures_of(run(0, 1), gpus()); }

ServeCalibration::Row ServedDeployment::residual(const MeasuredDeployment& row) const {
  const auto ms = [](const ServingPoint& point, const char* latency) {
    return static_cast<double>(point.latency(latency)->mean.count()) * 1e-6;
  };
  const ServingPoint point = moved(0);
  if (!point.latency("tpot")->has_values)
    throw Error("osl: must be more than 1, as answers of one token have no TPOT");
  const double per_token = std::log(row.gap_ms / ms(point, "tpot"));
  const ServingPoint fitting = moved(per_token / errors_.per_token_error);
  return {row, std::log(row.first_ms / ms(fitting, "ttft")), per_token};
}

Nanoseconds ServedDeployment::end_of(const ServingPoint& typical, const ServingPoint& moved,
                                     const std::string& latency, Statistic statistic,
                                     double way) const {
  const LatencyFigure& figure = *typical.latency(latency);
  const bool is_open = way > 0 && !deployment_.load.is_closed();
  const Capacity capacity = is_open ? capacity_of(deployment_, *price(way)) : Capacity{};
  const bool is_overloaded = is_open && deployment_.load.rate > capacity.rate;
  // The queue grows with each request: replays have an end only because they are finite.
  if (is_overloaded && latency != "tpot" && latency != "itl") return kUnbounded;
  double error = errors_.per_token_error;
  if (latency == "ttft") error = errors_.first_error;
  if (latency == "end_to_end") {
    const double share = static_cast<double>(typical.latency("ttft")->mean.count()) /
                         std::max(1., static_cast<double>(figure.mean.count()));
    error = share * errors_.first_error + (1 - share) * errors_.per_token_error;
  }
  const Nanoseconds factored = scaled(figure.*statistic, std::exp(way * error));
  const Nanoseconds replayed = moved.latency(latency)->*statistic;
  if (way < 0) return std::min(factored, replayed);
  const Nanoseconds full = from_nanoseconds(is_overloaded ? capacity.gap_ns : 0);
  return std::max({factored, replayed, full});
}

ServingPoint ServedDeployment::bounded(ServingPoint typical, const ServingPoint& slower) const {
  const ServingPoint faster = moved(-1);
  const auto ends = [&](const std::string& latency, Statistic statistic) {
    return std::pair(end_of(typical, faster, latency, statistic, -1),
                     end_of(typical, slower, latency, statistic, 1));
  };
  for (std::size_t i = 0; i < 2; ++i) {
    LatencyFigure& figure = typical.latencies[i];
    if (figure.has_values) figure.interval = ends(figure.name, &LatencyFigure::mean);
  }
  for (const SloPart& part : deployment_.slo)
    typical.slo.push_back({part.name, part.limit, typical.latency(part.latency)->*part.statistic,
                           ends(part.latency, part.statistic)});
  std::tie(typical.lower_output_tokens, typical.upper_output_tokens) =
      std::minmax({typical.output_tokens_per_second, faster.output_tokens_per_second,
                   slower.output_tokens_per_second});
  return typical;
}

ServingPoint serve_point(const Deployment& deployment, const ServeCalibration& calibration,
                         const std::string& table) {
  const ServedDeployment served(deployment, calibration, table);
  check_demands(deployment.slo, requests_of(deployment.load));
  const double capacity = served.capacity();
  if (deployment.load.rate > capacity)
    throw Error(fmt::format(
        "load: rate must be below the capacity of about {} requests a second, got {}; above it the "
        "time to the first token grows without bound and has no mean",
        to_fixed(capacity, capacity < 10 ? 2 : 0), to_text(deployment.load.rate)));
  return served.bounded(served.typical(), served.moved(1));
}

Deployment deployment_of(const MeasuredDeployment& row) {
  Deployment deployment{.model = find_model(row.model),
                        .precision = {},
                        .placement = row.placement,
                        .platform = find_platform(row.system),
                        .engine = {},
                        .load = {},
                        .version = row.version};
  deployment.precision =
      precision_of(deployment.model, row.weights, "auto", deployment.platform.device);
  deployment.engine.scheduler = row.scheduler;
  deployment.engine = with_defaults(deployment.engine);
  // Whoever measured a prompt allowed it, whatever the default is.
  if (!deployment.engine.is_chunked)
    deployment.engine.max_tokens = std::max(deployment.engine.max_tokens, row.input + 64);
  if (row.scheduler == "sglang") deployment.engine.stream = kSglangStream;
  deployment.load.concurrency = row.concurrency;
  deployment.load.input = row.input, deployment.load.output = row.output;
  return deployment;
}

}  // namespace foretrace::serve
