#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "foretrace/error.h"
#include "serve/deployment.h"
#include "serve/figures.h"

namespace foretrace::serve {
namespace {

constexpr double kGibibyte = 1024. * 1024 * 1024;

Precision bf16() { return {.name = "bf16"}; }

/// Sums over all operations of a step.
Operation total_of(const StepOperations& step) {
  Operation total{.kind = OperationKind::product, .arithmetic = Arithmetic::half};
  for (const Operation& operation : step.operations) {
    total.flops += operation.count * operation.flops;
    total.weights += operation.count * operation.weights;
    total.cache += operation.count * operation.cache;
  }
  return total;
}

StepWork decoding(double sequences, double context) {
  return {.sequences = sequences,
          .context = sequences * context,
          .sampled = sequences,
          .rows = sequences,
          .in_graph = true};
}

StepWork prompt_of(double tokens) {
  return {.prompt_tokens = tokens,
          .prompt_pairs = tokens * (tokens + 1) / 2,
          .sampled = 1,
          .rows = tokens};
}

Deployment llama8b() {
  Deployment deployment{.model = find_model("llama3-8b"),
                        .precision = bf16(),
                        .placement = {},
                        .platform = find_platform("dgx-h100"),
                        .engine = {},
                        .load = {},
                        .version = ""};
  deployment.engine = with_defaults({});
  deployment.load.concurrency = 16, deployment.load.requests = 64;
  return deployment;
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ServedModel, BytesOfATokenFollowTheAttention) {
  const auto bytes = [](const char* name, std::int64_t tensor = 1) {
    return cache_bytes_per_token(find_model(name), bf16(), tensor);
  };
  EXPECT_EQ(bytes("llama3-8b"), 131'072);
  EXPECT_EQ(bytes("llama3-70b"), 327'680);
  EXPECT_EQ(bytes("llama3-70b", 4), 81'920);
  EXPECT_EQ(bytes("llama3-405b"), 516'096);
  EXPECT_EQ(bytes("qwen3-32b"), 262'144);
  EXPECT_EQ(bytes("qwen3-235b-a22b"), 192'512);
  EXPECT_EQ(bytes("minimax-m2"), 253'952);
  EXPECT_EQ(bytes("deepseek-v3"), 70'272);
  EXPECT_EQ(bytes("deepseek-v3", 8), 70'272);  // Each rank holds the latent vectors.
  EXPECT_EQ(bytes("glm-5"), 89'856);
  EXPECT_EQ(bytes("gpt-oss-120b"), 36'864);
  EXPECT_EQ(bytes("qwen3.5-397b-a17b"), 30'720);
  EXPECT_EQ(bytes("qwen3-30b-a3b", 8), 24'576);  // Four heads: copies beyond four ranks.
  Precision fp8 = bf16();
  fp8.cache_bytes = 1;
  EXPECT_EQ(cache_bytes_per_token(find_model("deepseek-v3"), fp8, 1), 35'136);
}

TEST(ServedModel, WindowsAndStatesDoNotGrow) {
  const Model model = find_model("gpt-oss-120b");
  EXPECT_EQ(cache_bytes_per_sequence(model, bf16(), 1), 4'718'592);
  EXPECT_EQ(131'072 * cache_bytes_per_token(model, bf16(), 1) +
                cache_bytes_per_sequence(model, bf16(), 1),
            4'836'556'800);
  EXPECT_EQ(cache_bytes_per_sequence(find_model("qwen3.5-397b-a17b"), bf16(), 1), 192'061'440);
}

TEST(ServedModel, WeightsHaveTheSizeOfTheCheckpoint) {
  EXPECT_EQ(weight_bytes(find_model("llama3-8b"), bf16(), {}), 16'060'522'496);
  const DeviceModel device = find_device("b200");
  const Model model = find_model("llama3-8b");
  EXPECT_NEAR(weight_bytes(model, precision_of(model, "fp8_block", "auto", device), {}), 9.083e9,
              .001e9);
  EXPECT_NEAR(weight_bytes(model, precision_of(model, "fp4", "auto", device), {}), 6'027'747'328,
              1e6);
  const Model oss = find_model("gpt-oss-120b");
  EXPECT_NEAR(weight_bytes(oss, precision_of(oss, "fp4", "auto", device), {}), 65.25e9, .1e9);
}

TEST(ServedModel, BlocksAreWhatIsLeft) {
  const double total = 80 * kGibibyte, other = 2 * kGibibyte + 644'245'094;
  const double weights = 16'060'522'496, block = 16 * 131'072;
  EXPECT_EQ(blocks_in(total, .90, weights, other, block), 27'874);
  EXPECT_EQ(blocks_in(total, .92, weights, other, block), 28'693);
  EXPECT_EQ(blocks_in(total, .92, weights, other, block / 2), 57'387);
  EXPECT_EQ(blocks_in(41'603'061'351, 1, 0, 0, 1'310'720), 31'740);
}

TEST(ServedModel, DecodingReadsWeightsAndCache) {
  const Model model = find_model("llama3-8b");
  const auto bytes = [&](double sequences, double context) {
    const Operation total =
        total_of(operations_of(model, bf16(), {}, decoding(sequences, context)));
    return total.weights + total.cache;
  };
  EXPECT_EQ(bytes(1, 1024), 15'144'067'072);
  EXPECT_EQ(bytes(64, 1024), 23'599'783'936);
  EXPECT_NEAR(bytes(256, 4096) / 3.35e12 * 1e3, 45.507, .001);
}

TEST(ServedModel, PromptsComputePairsOfTokens) {
  const Model model = find_model("llama3-8b");
  const auto flops = [&](double tokens) {
    return total_of(operations_of(model, bf16(), {}, prompt_of(tokens))).flops;
  };
  // Without norms, which are 4e-5 of it.
  EXPECT_NEAR(flops(4096) / 61'576'956'608'512, 1, 1e-4);
  EXPECT_NEAR(flops(32'768) / 738'898'902'777'856, 1, 1e-4);
}

TEST(ServedModel, ExpertsThatTokensReach) {
  EXPECT_EQ(distinct_experts(8, 2, 4), 5.46875);
  EXPECT_EQ(distinct_experts(8, 8, 3), 8);
  EXPECT_DOUBLE_EQ(distinct_experts(256, 8, 1), 8);
  EXPECT_NEAR(distinct_experts(256, 8, 64), 222.442, .001);
}

TEST(ServedModel, SpeculationGivesMoreTokensPerStep) {
  EXPECT_NEAR(tokens_per_step(.8, 4), 3.3616, 1e-9);
  EXPECT_NEAR(tokens_per_step(.7, 3), 2.533, 1e-9);
  EXPECT_EQ(tokens_per_step(.7, 0), 1);
}

TEST(DevicePrice, FallsWithRanksAndRisesWithWork) {
  const Platform platform = find_platform("dgx-h100");
  const Model model = find_model("llama3-70b");
  const DevicePrice four(model, bf16(), {.tensor = 4}, platform, "vllm");
  const DevicePrice eight(model, bf16(), {.tensor = 8}, platform, "vllm");
  EXPECT_LT(eight.of(decoding(8, 1024)).ns, four.of(decoding(8, 1024)).ns);
  EXPECT_LT(four.of(decoding(8, 1024)).ns, four.of(decoding(9, 1024)).ns);
  EXPECT_LT(four.of(decoding(8, 1024)).ns, four.of(decoding(8, 2048)).ns);
  EXPECT_LT(four.of(prompt_of(1024)).ns, four.of(prompt_of(2048)).ns);
  const StepTime time = four.of(decoding(8, 1024));
  double parts = 0;
  for (const double part : time.parts) parts += part;
  EXPECT_NEAR(parts, time.ns, 1e-3);
}

/// A price of steps outside of a table: a token of a prompt 100 ns, one that is attended to 1 ns.
class ByTokens final : public StepPrice {
 public:
  StepTime of(const StepWork& work) const override {
    return {.ns = work.context + 100 * work.prompt_tokens};
  }
};

TEST(TablePrice, InterpolatesMeasuredSteps) {
  const std::string path = testing::TempDir() + "steps.csv";
  std::ofstream(path) << "kind,batch,context,time_us\ndecode,1,100,10\ndecode,1,300,30\n"
                         "decode,3,100,20\ndecode,3,300,40\nprefill,1,100,50\nprefill,1,300,90\n";
  const TablePrice price(path, std::make_unique<ByTokens>());
  EXPECT_DOUBLE_EQ(price.of(decoding(1, 200)).ns, 20'000);
  EXPECT_DOUBLE_EQ(price.of(decoding(2, 200)).ns, 25'000);
  EXPECT_DOUBLE_EQ(price.of(prompt_of(200)).ns, 70'000);
  EXPECT_FALSE(price.of(decoding(2, 200)).is_outside);
  std::ofstream(path) << "kind,batch,context,time_us\ndecode,1,100,-10\n";
  EXPECT_EQ(refusal([&] { TablePrice(path, nullptr); }),
            path + ": line 2: time_us: must be from 0.001 to 1000000000000, got \"-10\"");
}

TEST(TablePrice, OutsideOfItStepsAreAsAnotherPriceHasThem) {
  const std::string path = testing::TempDir() + "steps.csv";
  std::ofstream(path) << "kind,batch,context,time_us\ndecode,2,100,10\ndecode,2,100,30\n"
                         "prefill,1,100,50\n";
  const TablePrice price(path, std::make_unique<ByTokens>());
  const auto ns = [&](const StepWork& work, bool is_outside) {
    const StepTime time = price.of(work);
    EXPECT_EQ(time.is_outside, is_outside);
    return time.ns;
  };
  EXPECT_DOUBLE_EQ(ns(decoding(2, 100), false), 20'000);  // The mean of equal rows.
  EXPECT_DOUBLE_EQ(ns(decoding(2, 400), true), 80'000);
  EXPECT_DOUBLE_EQ(ns(decoding(6, 200), true), 120'000);
  EXPECT_DOUBLE_EQ(ns(decoding(1, 50), true), 5'000);
  EXPECT_DOUBLE_EQ(ns(prompt_of(100), false), 50'000);
  EXPECT_DOUBLE_EQ(ns(prompt_of(300), true), 150'000);
  const ServingPoint point = serve_point(llama8b(), {}, path);
  EXPECT_FALSE(point.is_covered);
  EXPECT_NE(point.basis.find("of the time of steps"), std::string::npos) << point.basis;
}

TEST(Figures, HaveTheDefinitionsOfVllmsBenchmark) {
  // Chunks at 1.0, 1.2 and 1.6 s; a request of one token has no TPOT.
  ServedLoad load;
  load.records = {
      {.sent = 0ns, .started = 0ns, .first = 1s, .end = 1600ms, .input = 1, .output = 5},
      {.sent = 0ns, .started = 0ns, .first = 2s, .end = 2s, .input = 1, .output = 1}};
  load.gaps = {{2e8, 1}, {4e8, 1}};
  load.end = 2s, load.busy_ns = 2e9;
  const ServingPoint point = figures_of(load, 1);
  EXPECT_EQ(point.latency("ttft")->mean, 1500ms);
  EXPECT_EQ(point.latency("ttft")->p90, 1900ms);
  EXPECT_EQ(point.latency("ttft")->p99, 1990ms);
  EXPECT_EQ(point.latency("tpot")->mean, 150ms);
  EXPECT_EQ(point.latency("itl")->mean, 300ms);
  EXPECT_EQ(point.requests_per_second, 1);
  EXPECT_EQ(point.concurrency, 1.8);  // 3.6 s of requests in 2 s.
  std::vector<Gap> gaps = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
  EXPECT_DOUBLE_EQ(weighted_quantile(gaps, .99), 3.97);
  gaps = {{1, 2}, {4, 2}};
  EXPECT_DOUBLE_EQ(weighted_quantile(gaps, .5), 2.5);
}

TEST(Figures, GoodputCountsRequestsThatMeetAllDemands) {
  // TTFT and TPOT in ms: (400, 40), (600, 40), (500, 50), and (300, one token), in 10 s.
  ServedLoad load;
  load.records = {{.sent = 0ns, .first = 400ms, .end = 440ms, .output = 2},
                  {.sent = 0ns, .first = 600ms, .end = 640ms, .output = 2},
                  {.sent = 0ns, .first = 500ms, .end = 550ms, .output = 2},
                  {.sent = 0ns, .first = 300ms, .end = 300ms, .output = 1}};
  load.end = 10s;
  Demands demands;
  demands.ttft = 500ms, demands.tpot = 50ms;
  EXPECT_DOUBLE_EQ(goodput_of(load, demands), .3);
}

TEST(Deployment, IntervalsHoldTheMean) {
  const ServingPoint point = serve_point(llama8b(), {});
  for (const char* name : {"ttft", "tpot"}) {
    const LatencyFigure& figure = *point.latency(name);
    EXPECT_LT(figure.interval->first, figure.mean) << name;
    EXPECT_GT(figure.interval->second, figure.mean) << name;
    EXPECT_LE(figure.p50, figure.p90) << name;
    EXPECT_LE(figure.p90, figure.p99) << name;
  }
  EXPECT_LT(point.lower_output_tokens, point.output_tokens_per_second);
  EXPECT_TRUE(point.is_covered);
}

TEST(Deployment, AnswersOutsideOfWhatWasMeasuredSaySo) {
  Deployment deployment = llama8b();
  deployment.platform = find_platform("dgx-a100");
  deployment.precision = precision_of(deployment.model, "bf16", "auto", deployment.platform.device);
  const ServingPoint point = serve_point(deployment, {});
  EXPECT_FALSE(point.is_covered);
  EXPECT_NE(point.basis.find("none on a100"), std::string::npos) << point.basis;
}

TEST(Deployment, IsCorrectedByMeasuredOnesLikeIt) {
  const ServingPoint before = serve_point(llama8b(), {});
  std::vector<ServeCalibration::Row> rows;
  for (int i = 0; i < 50; ++i) rows.push_back({described(llama8b()), 0, std::log(2)});
  const ServingPoint after = serve_point(llama8b(), ServeCalibration(rows));
  const auto mean = [](const ServingPoint& point) {
    return static_cast<double>(point.latency("tpot")->mean.count());
  };
  EXPECT_NEAR(mean(after) / mean(before), 2, .1);
  EXPECT_EQ(ServeCalibration().of(described(llama8b())).per_token, 0);
}

std::string basis_with(const Deployment& deployment, const ServeCalibration& calibration) {
  const ServingPoint point = serve_point(deployment, calibration);
  EXPECT_EQ(point.is_covered, point.basis.find(", but ") == std::string::npos) << point.basis;
  return point.basis;
}

TEST(Deployment, OneMeasuredDeploymentLikeItCoversWhatItHas) {
  Deployment a100 = llama8b();
  a100.platform = find_platform("dgx-a100");
  const ServeCalibration own({{described(a100), 0, 0}});
  EXPECT_EQ(basis_with(a100, own), "measured deployments like this one were given");
  const auto lacks = [&](const Deployment& deployment, const std::string& what) {
    const std::string basis = basis_with(deployment, own);
    EXPECT_NE(basis.find(what), std::string::npos) << basis;
  };
  Deployment other = a100;
  other.replicas = 4, other.load.concurrency = 64;
  lacks(other, "given, but none with several replicas");
  other = a100, other.prefill_replicas = 2;
  lacks(other, "given, but none with prompts apart");
  other = a100, other.engine.hit_share = .9;
  lacks(other, "given, but none with prompts in the prefix cache");
  other = a100, other.load.rate = 2;
  lacks(other, "none with another load than a closed one");
  other = a100, other.load.concurrency = 400;
  lacks(other, "none on a100");
}

TEST(Deployment, ManyMeasuredDeploymentsUnlikeItCoverNothing) {
  Deployment b200 = llama8b();
  const ServeCalibration others({{described(b200), 0, 0},
                                 {described(b200), 0, 0},
                                 {described(b200), 0, 0},
                                 {described(b200), 0, 0}});
  b200.platform = find_platform("dgx-b200");
  ASSERT_GT(others.of(described(b200)).weight, 1);
  EXPECT_EQ(basis_with(b200, others),
            "constants were fitted to measured deployments, but none with bf16 weights on b200");
}

TEST(Deployment, AnOpenLoadIsLikeAClosedOneWithAsManyAtATime) {
  Deployment open = llama8b();
  open.load.rate = 10;
  Deployment closed = llama8b();
  closed.load.concurrency = std::llround(ServedDeployment(open, {}).typical().concurrency);
  ASSERT_GT(closed.load.concurrency, 5);
  const auto tpot_with = [&](const Deployment& like) {
    return serve_point(open, ServeCalibration({{described(like), 0, .5}})).latency("tpot")->mean;
  };
  EXPECT_GT(tpot_with(closed), tpot_with(llama8b()));
  closed.load.concurrency = 1;
  EXPECT_GT(tpot_with(llama8b()), tpot_with(closed));
}

/// The point with ten measurements of the deployment, whose times are so many times the predicted.
ServingPoint corrected(double first, double per_token) {
  const ServedDeployment served(llama8b(), {});
  MeasuredDeployment row = described(llama8b());
  const auto ms = [point = served.typical()](const char* name) {
    return static_cast<double>(point.latency(name)->mean.count()) * 1e-6;
  };
  row.first_ms = first * ms("ttft"), row.gap_ms = per_token * ms("tpot");
  return serve_point(llama8b(), ServeCalibration(std::vector(10, served.residual(row))));
}

TEST(Deployment, IsCorrectedToBothMeasuredTimes) {
  const ServingPoint before = serve_point(llama8b(), {});
  for (const auto& [first, per_token] : {std::pair(1., 1.5), {2., 1.}, {.5, 1.}, {3., .7}}) {
    const ServingPoint after = corrected(first, per_token);
    const auto expect = [&](const char* name, double factor) {
      const LatencyFigure& figure = *after.latency(name);
      const Nanoseconds measured = scaled(before.latency(name)->mean, factor);
      EXPECT_NEAR(std::chrono::duration<double>(figure.mean) / measured, 1, .15) << name << factor;
      EXPECT_LT(figure.interval->first, measured) << name << factor;
      EXPECT_GT(figure.interval->second, measured) << name << factor;
    };
    expect("ttft", first), expect("tpot", per_token);
  }
  EXPECT_LT(corrected(4, 1).requests_per_second, corrected(1, 1).requests_per_second);
}

TEST(Deployment, MeasurementsThatDisagreeWidenTheInterval) {
  const MeasuredDeployment like = described(llama8b());
  const Correction prior = ServeCalibration().of(like);
  const Correction same = ServeCalibration({{like, .1, .1}, {like, .1, .1}}).of(like);
  EXPECT_LT(same.per_token_error, prior.per_token_error);
  const Correction apart = ServeCalibration({{like, -2, -2}, {like, 2, 2}}).of(like);
  EXPECT_GT(apart.per_token_error, 2);
  EXPECT_GT(apart.first_error, 2);
}

TEST(Deployment, PromptsApartHaveACapacityOfTheirOwn) {
  const auto capacity = [](std::int64_t replicas, std::int64_t prefill, std::int64_t output) {
    Deployment deployment = llama8b();
    deployment.load.input = 2000, deployment.load.output = output;
    deployment.replicas = replicas, deployment.prefill_replicas = prefill;
    return ServedDeployment(deployment, {}).capacity();
  };
  // Answers of one token are bound by prompts, long ones by decoding.
  EXPECT_NEAR(capacity(1, 2, 1), 2 * capacity(1, 1, 1), 1e-6);
  EXPECT_NEAR(capacity(1, 1, 4000), capacity(1, 8, 4000), 1e-6);
  EXPECT_GT(capacity(1, 1, 200), capacity(1, 0, 200));
  EXPECT_LT(capacity(1, 1, 200), capacity(2, 0, 200));
}

// The engine of a small model could take four times as many short requests.
TEST(Deployment, TheServerBeforeTheEngineLimitsTheCapacity) {
  Deployment deployment = llama8b();
  deployment.model = find_model("qwen3-0.6b");
  deployment.load.input = 512, deployment.load.output = 16, deployment.load.range = 1;
  const ServeConstants constants;
  const double each = 1e-6 * (constants.vllm_each + 512 * constants.token);
  EXPECT_DOUBLE_EQ(ServedDeployment(deployment, {}).capacity(), 1 / each);
  deployment.replicas = 3;
  EXPECT_DOUBLE_EQ(ServedDeployment(deployment, {}).capacity(), 3 / each);
  deployment.load.rate = 2.5 / each, deployment.load.requests = 2000;
  const ServingPoint point = serve_point(deployment, {});
  EXPECT_NE(point.bound.find("the server before the engine"), std::string::npos) << point.bound;
  EXPECT_LT(point.latency("ttft")->mean, 150ms);
  deployment.load.rate = 3.1 / each;
  EXPECT_NE(refusal([&] { serve_point(deployment, {}); }).find("below the capacity"),
            std::string::npos);
}

// The typical capacity is above the load, the one at the upper end of the price below it. How many
// requests are replayed does not decide.
TEST(Deployment, AboveItsSlowestCapacityTheUpperEndIsUnbounded) {
  Deployment deployment = llama8b();
  deployment.load.input = 1500, deployment.load.output = 200, deployment.load.rate = 18;
  deployment.slo = {{"ttft_mean", "ttft", &LatencyFigure::mean, 3s},
                    {"tpot_mean", "tpot", &LatencyFigure::mean, 1s}};
  Nanoseconds tpot_end{0};
  for (const std::int64_t requests : {10'000, 200}) {
    deployment.load.requests = requests;
    const ServingPoint point = serve_point(deployment, {});
    EXPECT_LT(point.slo[0].interval.first, point.slo[0].typical);
    EXPECT_LT(point.slo[0].typical, 3s);
    EXPECT_EQ(point.slo[0].interval.second, kUnbounded) << requests;
    EXPECT_EQ(point.latency("ttft")->interval->second, kUnbounded) << requests;
    if (requests == 10'000) tpot_end = point.slo[1].interval.second;
    const double end = static_cast<double>(point.slo[1].interval.second.count());
    EXPECT_NEAR(end / static_cast<double>(tpot_end.count()), 1, .1) << requests;
  }
  deployment.load.rate = 10;
  EXPECT_LT(serve_point(deployment, {}).slo[0].interval.second, 10s);
}

TEST(Deployment, NoLoadIsFasterThanOneRequestAtATime) {
  Deployment deployment = llama8b();
  deployment.load.requests = 100, deployment.load.rate = 4;
  for (const std::int64_t replicas : {1, 3}) {
    deployment.replicas = replicas;
    const ServedDeployment served(deployment, {});
    const ServingPoint alone = served.alone(), typical = served.typical(), slower = served.moved(1);
    for (const char* name : {"ttft", "tpot", "end_to_end"}) {
      EXPECT_LE(alone.latency(name)->p50, typical.latency(name)->p50) << name;
      EXPECT_LE(alone.latency(name)->p99, typical.latency(name)->p99) << name;
      EXPECT_LE(typical.latency(name)->p99, slower.latency(name)->p99) << name;
    }
    EXPECT_GE(typical.running_peak, 1);
  }
}

TEST(Deployment, RefusesWhatCannotBe) {
  Deployment deployment = llama8b();
  deployment.load.rate = 1000;
  EXPECT_NE(refusal([&] { serve_point(deployment, {}); }).find("grows without bound"),
            std::string::npos);
  deployment = llama8b();
  deployment.load.input = 131'000, deployment.load.output = 1000, deployment.load.range = 1;
  EXPECT_EQ(refusal([&] { serve_point(deployment, {}); }),
            "max_model_len: must be at least the request's 132000 tokens, got 131072");
  deployment = llama8b();
  deployment.model = find_model("llama3-70b");
  EXPECT_EQ(refusal([&] { serve_point(deployment, {}); }).substr(0, 41),
            "llama3-70b must fit on h100-sxm5-80gb: of");
  EXPECT_EQ(refusal([&] {
              precision_of(deployment.model, "bf16", "fp8", find_device("a100-sxm4-80gb"));
            }),
            "cache: a100-sxm4-80gb has no FP8; take bf16");
  EXPECT_EQ(refusal([&] { check_placement(deployment.model, {.tensor = 3}); }),
            "tensor_parallel: must divide the model's 64 heads, got 3");
  EXPECT_EQ(refusal([&] { find_model("resnet-50"); }),
            "model: must be a transformer, got resnet-50");
}

}  // namespace
}  // namespace foretrace::serve
