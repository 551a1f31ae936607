#include "foretrace/question/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string refusal_of_generate(const GenerateQuestion& question) {
  try {
    generate_step(question);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Generate, AnswersWithPartsThatSum) {
  const GenerationReport report =
      generate_step({.model = "gpt3-175b",
                     .machine = "dgx-a100",
                     .layout = "tp=8,pp=12,dp=16,global_batch=1536,recompute=full"});
  ASSERT_TRUE(report.step);
  Nanoseconds sum{0};
  for (const auto& [name, time] : report.step->breakdown) sum += time;
  EXPECT_EQ(sum, report.step->time);
  EXPECT_EQ(report.step->devices, 1536);
  EXPECT_LT(report.step->lower, report.step->time);
  EXPECT_LT(report.step->utilization, .6);
  EXPECT_FALSE(report.step->is_covered);
  EXPECT_LT(report.step->reserved, report.step->device_memory);
}

TEST(Generate, ReadsDescriptions) {
  const Folder folder;
  const std::string path =
      folder.write("model.json", R"({"use": "llama3-8b", "layers": 12, "sequence": 4096})");
  const GenerationReport report = generate_step({.model = path, .machine = "dgx-h100"});
  EXPECT_NEAR(report.step->parameters, 3.67e9, .01e9);
  folder.write("model.json", R"({"use": "llama3-8b", "layer": 12})");
  EXPECT_NE(refusal_of_generate({.model = path, .machine = "dgx-h100"})
                .find("(did you mean \"layers\"?)"),
            std::string::npos);
}

TEST(Generate, PricesEverySchedule) {
  const auto time_with = [](const std::string& schedule) {
    return generate_step(
               {.model = "llama3-8b",
                .machine = "dgx-h100",
                .layout = "tp=2,pp=4,global_batch=16,recompute=full,schedule=" + schedule})
        .step->time;
  };
  EXPECT_LT(time_with("zb_h1"), time_with("1f1b"));
  EXPECT_LT(time_with("zb_h2"), time_with("zb_h1"));
  EXPECT_LT(time_with("1f1b,virtual_stages=2"), time_with("1f1b"));
}

TEST(Generate, RefusesWhatItCannotPrice) {
  EXPECT_EQ(refusal_of_generate({.model = "llama3-8b"}),
            "--machine: must be given; see `foretrace list machines`");
  EXPECT_EQ(refusal_of_generate({}),
            "MODEL: must be given, or --against a table that names models");
}

TEST(Generate, PricesWhatDoesNotFitAndSaysSo) {
  const GenerationReport report =
      generate_step({.model = "gpt3-175b", .machine = "dgx-a100", .layout = "tp=8"});
  EXPECT_GT(report.step->time, 1s);
  EXPECT_GT(report.step->out_of_memory, .99);
  EXPECT_NE(report.assumptions.back().find(
                "memory does not fit, even with recompute=full: a device has 85.9 GB"),
            std::string::npos)
      << report.assumptions.back();
  for (const std::string& assumed : report.assumptions)
    EXPECT_EQ(assumed.find("fits only with"), std::string::npos) << assumed;
}

TEST(Generate, ChoosesTheLeastRecomputationThatFits) {
  const auto asked = [](const std::string& layout, std::optional<Bytes> limit) {
    return generate_step({.model = "llama3-8b",
                          .machine = "dgx-h100",
                          .layout = "dp=8,zero=1,micro_batch=2,global_batch=16" + layout,
                          .memory_limit = limit});
  };
  const GenerationReport unstated = asked("", {});
  EXPECT_NE(unstated.step->layout.find("recompute="), std::string::npos);
  EXPECT_LT(unstated.step->out_of_memory, .5);
  const GenerationReport none = asked(",recompute=none", {});
  EXPECT_GT(none.step->out_of_memory, .5);
  EXPECT_LT(none.step->time, unstated.step->time);
  EXPECT_EQ(asked("", Bytes{300'000'000'000}).step->layout.find("recompute="), std::string::npos);
}

TEST(Generate, ShareOfThePeakIsOfThePrecision) {
  const auto used = [](const char* precision) {
    return generate_step(
               {.model = "llama3-70b",
                .machine = "gb300-nvl72",
                .layout = std::string("dp=8,zero=3,global_batch=8,precision=") + precision})
        .step->utilization;
  };
  EXPECT_LT(used("fp8"), used("bf16"));
  EXPECT_LT(used("fp4"), used("fp8"));
}

TEST(Generate, ScaleCosts) {
  const auto step = [](int devices) {
    const std::string n = std::to_string(devices);
    return *generate_step({.model = "llama3-8b",
                           .machine = "dgx-h100",
                           .layout = "zero=1,recompute=full,dp=" + n + ",global_batch=" + n})
                .step;
  };
  const GeneratedStep small = step(8), large = step(512), larger = step(65'536);
  EXPECT_GT(large.time, small.time);
  EXPECT_GT(larger.time, large.time);
  const auto width = [](const GeneratedStep& one) { return ratio(one.upper, one.lower); };
  EXPECT_GT(width(larger), width(small));
}

TEST(Generate, ReadsTablesOfLayoutsThatFailed) {
  const Folder folder;
  const std::string table = folder.write(
      "ultrascale.csv",
      "model,params,layers,hidden,heads,ffn,vocab,seq_len,gpu,gpus,dp,pp,tp,zero,micro_batch,"
      "grad_accum,global_batch,status,iteration_ms,memory_gb\n"
      "1B,1342177280,16,2048,32,8192,131072,4096,H100-80GB,8,8,1,1,1,2,16,256,measured,3000,35\n"
      "1B,1342177280,16,2048,32,8192,131072,4096,H100-80GB,8,8,1,1,1,16,2,256,failed,,\n"
      "1B,1342177280,16,2048,32,8192,131072,4096,H100-80GB,16,1,16,1,0,1,256,256,failed,,\n");
  const GenerationReport report = generate_step({.against = table});
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.score->ran_out, 2U);
  EXPECT_EQ(report.score->found, 2U);
  EXPECT_EQ(report.score->alarms, 0U);
  EXPECT_LT(*report.score->memory_median, .13);
  EXPECT_NE(report.rows[0].name.find("tied=true"), std::string::npos) << report.rows[0].name;
}

TEST(Generate, ReadsTablesAsTheyArePublished) {
  const Folder folder;
  const std::string table = folder.write(
      "steps.csv",
      "\xef\xbb\xbfmodel,gpu,gpus,tp,pp,micro_batch,global_batch,precision,recompute,iteration_ms\n"
      "Llama 3.1 8B,H100-SXM,8,2,1,1,32,bf16,full,3900\n"
      "Llama 3.1 8B,H100-SXM,8,1,1,64,512,bf16,False,OOM\n"
      "Llama 3.1 8B,H100-SXM,8,1,1,1,32,float8,full,\n"
      "A model nobody knows,H100-SXM,8,1,1,1,32,bf16,full,900\n");
  const GenerationReport report = generate_step({.layout = "zero=1", .against = table});
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].name, "llama3-8b tp2 dp4 mb1 gb32");
  EXPECT_EQ(report.rows[0].measured, 3900ms);
  EXPECT_TRUE(report.rows[1].ran_out);
  EXPECT_TRUE(report.rows[1].runs_out);
  EXPECT_EQ(report.score->found, 1U);
  EXPECT_EQ(report.notes.count("rows of measured steps were left out"), 2);
}

TEST(Generate, FillsInWhatRowsLeaveOut) {
  const Folder folder;
  const std::string table = folder.write(
      "steps.csv",
      "model,layers,hidden,gpu,gpus,tp,pp,dp,vpp,micro_batch,global_batch,variant,iteration_ms\n"
      "GPT 182B,78,13824,A100-80GB,384,8,6,8,,4,2048,,120000\n"   // Heads of 144, 96 of them.
      "GPT 182B,78,13824,A100-80GB,384,8,12,8,,4,2048,,120000\n"  // 768 GPUs.
      "Llama 3.1 405B,,,H100-SXM,512,8,8,8,,32,256,Interleaved 1F1B,32000\n");
  const GenerationReport report = generate_step({.layout = "zero=1", .against = table});
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_NE(report.rows[0].name.find("layers=78,hidden=13824,heads=96"), std::string::npos)
      << report.rows[0].name;
  EXPECT_EQ(report.rows[1].name, "llama3-405b tp8 pp8 dp8 vp2 mb4 gb256");
  ASSERT_EQ(report.notes.count("rows of measured steps were left out"), 1);
  const auto left_out = std::ranges::find(report.notes.all(), Severity::warning, &Note::severity);
  EXPECT_NE(left_out->example.find("tp x pp x dp x cp, 768, got 384"), std::string::npos);
}

TEST(Generate, KnowsDevicesByTheNamesThatDriversGiveThem) {
  const Folder folder;
  const auto row = [](const char* gpu, const char* gpus, const char* recompute) {
    return fmt::format("Qwen3-4B,{},{},1,1,1,16,bf16,{},rl flash_attention_2,90000\n", gpu, gpus,
                       recompute);
  };
  const std::string table = folder.write(
      "steps.csv",
      "model,gpu,gpus,tp,pp,micro_batch,global_batch,precision,recompute,variant,iteration_ms\n" +
          row("NVIDIA B200", "8", "full") + row("NVIDIA A100-SXM4-80GB", "8", "full") +
          row("NVIDIA RTX A6000", "1", "full") + row("NVIDIA H100 PCIe", "1", "full") +
          row("NVIDIA RTX A6000", "4", "full") + row("NVIDIA H100 PCIe", "8", "full") +
          row("NVIDIA B200", "8", "offload") +
          "Qwen3-4B,NVIDIA RTX A6000,1,2,1,1,16,bf16,full,,90000\n");
  const GenerationReport report = generate_step({.layout = "zero=1", .against = table});
  ASSERT_EQ(report.rows.size(), 5U);
  EXPECT_EQ(report.notes.count("rows of measured steps were left out"), 3);
  const auto left_out = std::ranges::find(report.notes.all(), Severity::warning, &Note::severity);
  EXPECT_NE(left_out->example.find("row 5: gpu: must be one whose host is known"),
            std::string::npos);
  // The host keeps the inputs from which everything is recomputed.
  EXPECT_EQ(report.rows[4].time, report.rows[0].time);
  EXPECT_LT(report.rows[4].allocated, report.rows[0].allocated);
}

TEST(Generate, KnowsWhereASourceRan) {
  const Folder folder;
  const std::string row = ",GPT 182B,84,13312,A100-80GB,384,8,6,8,2,2048,135000\n";
  const std::string table = folder.write(
      "steps.csv",
      "source,model,layers,hidden,gpu,gpus,tp,pp,dp,micro_batch,global_batch,iteration_ms\n"
      "somebody" +
          row + "bigscience-workshop/bigscience" + row);
  const auto times = [&](const std::string& machine, const std::string& layout) {
    const GenerationReport report =
        generate_step({.machine = machine, .layout = layout, .against = table});
    return std::pair(report.rows.at(0).time, report.rows.at(1).time);
  };
  const auto [elsewhere, there] = times("", "zero=1");
  EXPECT_EQ(elsewhere, times("dgx-a100", "zero=1").first);
  EXPECT_EQ(there, times("jean-zay", "zero=1,blocking_launches=true").first);
  EXPECT_GT(there, elsewhere);
}

TEST(Generate, SaysWhatSharingThatIsNotStatedWouldChange) {
  const Folder folder;
  const auto table = [&](const std::string& source) {
    return folder.write(
        "steps.csv",
        "source,model,gpu,gpus,tp,pp,micro_batch,global_batch,recompute,memory_gb,iteration_ms\n" +
            source + ",Llama 3.1 8B,H100-SXM,8,1,1,1,64,full,60,20000\n");
  };
  const auto notes = [](const GenerationReport& report) {
    std::string texts;
    for (const Note& note : report.notes.all()) texts += note.text + "\n";
    return texts;
  };
  const GenerationReport open = generate_step({.against = table("somebody")});
  EXPECT_NE(notes(open).find("rows do not say what replicas share"), std::string::npos);
  // SimuMax shards the optimizer: 7 of 8 parts of 12 bytes a parameter.
  const GenerationReport known = generate_step({.against = table("MooreThreads/SimuMax")});
  EXPECT_EQ(notes(known).find("replicas share"), std::string::npos);
  EXPECT_NEAR(static_cast<double>((open.rows[0].allocated - known.rows[0].allocated).count),
              8.03e9 * 12 * 7 / 8, 2e9);
}

TEST(Generate, RowsKeepTheirDevicesWhateverMachineIsAsked) {
  const Folder folder;
  const std::string table =
      folder.write("steps.csv",
                   "model,gpu,gpus,tp,pp,micro_batch,global_batch,recompute,iteration_ms\n"
                   "Llama 3.1 8B,H100-SXM,8,1,1,1,64,full,20000\n");
  const auto step = [&](const std::string& machine, const std::string& calibrate) {
    return *generate_step({.model = "llama3-8b",
                           .machine = machine,
                           .layout = "dp=8,global_batch=64,recompute=full",
                           .calibrate = calibrate,
                           .calibrate_rows = 0})
                .step;
  };
  EXPECT_NEAR(ratio(step("dgx-h100", table).time, 20s), 1, .05);
  EXPECT_TRUE(step("dgx-h100", table).is_covered);
  EXPECT_FALSE(step("dgx-b200", table).is_covered);
  EXPECT_LT(step("dgx-b200", table).time, step("dgx-h100", table).time);
  const std::string open =
      folder.write("open.csv",
                   "model,gpu,gpus,tp,pp,micro_batch,global_batch,iteration_ms\n"
                   "Llama 3.1 8B,A100,8,8,1,1,64,20000\n");
  const auto time = [&](const std::string& machine) {
    return generate_step({.machine = machine, .against = open}).rows.at(0).time;
  };
  EXPECT_NE(time("aws-p4d"), time("dgx-a100"));  // 40 and 80 GB of memory, and its bandwidth.
  EXPECT_EQ(time("dgx-h100"), time("dgx-a100"));
}

TEST(Generate, RowsThatContradictEachOtherWidenTheInterval) {
  const Folder folder;
  std::string text = "model,gpu,gpus,tp,pp,micro_batch,global_batch,recompute,iteration_ms\n";
  for (const char* time : {"8000", "16000", "8000", "16000"})
    text += std::string("Llama 3.1 8B,H100-SXM,8,1,1,1,64,full,") + time + "\n";
  const GenerationReport report = generate_step({.model = "llama3-8b",
                                                 .machine = "dgx-h100",
                                                 .layout = "dp=8,global_batch=64,recompute=full",
                                                 .calibrate = folder.write("steps.csv", text),
                                                 .calibrate_rows = 0});
  EXPECT_LT(report.step->lower, 8500ms);
  EXPECT_GT(report.step->upper, 15000ms);
}

TEST(Generate, CountsRepeatedRowsAsOneLayout) {
  const auto regret = [](const std::string& rows) {
    const Folder folder;
    const std::string table = folder.write(
        "steps.csv", "model,gpu,gpus,tp,pp,micro_batch,global_batch,iteration_ms\n" + rows);
    return generate_step({.against = table}).score->regret;
  };
  const std::string slow = "Llama 3.1 8B,H100-SXM,8,1,8,1,32,9000\n",
                    fast = "Llama 3.1 8B,H100-SXM,8,1,8,1,32,6000\n",
                    other = "Llama 3.1 8B,H100-SXM,8,8,1,1,32,5000\n";
  EXPECT_FALSE(regret(slow + fast));
  // The pipeline was measured twice, and is predicted to be faster.
  EXPECT_NEAR(regret(slow + fast + other).value_or(0), .5, 1e-9);
}

TEST(Generate, JudgesNoRowThatItWasFittedTo) {
  std::string text = "model,gpu,gpus,tp,pp,micro_batch,global_batch,iteration_ms\n";
  for (const int batch : {8, 16, 32, 64, 128, 256, 512})
    text += "Llama 3.1 8B,H100-SXM,8,8,1,1," + std::to_string(batch) + "," +
            std::to_string(100 * batch) + "\n";
  const Folder folder;
  const std::string table = folder.write("steps.csv", text);
  const GenerationReport report = generate_step({.against = table, .calibrate = table});
  std::size_t fitted = 0;
  for (const GeneratedRow& row : report.rows) fitted += row.was_fitted;
  EXPECT_EQ(fitted, 5U);
  EXPECT_EQ(report.score->rows, 2U);
  EXPECT_LT(report.score->median, .05);
}

/// Errors reached on published steps. The rows to fit to are chosen by shape alone: at most 5 % of
/// a source, or 5 rows; to none if `fitted` is 0.
struct Reached {
  const char *table, *only, *layout;
  std::int64_t fitted;
  double mean, median;
};

TEST(Generate, PredictsPublishedSteps) {
  if (std::getenv("FORETRACE_CORPUS") == nullptr) GTEST_SKIP() << "needs FORETRACE_CORPUS";
  const std::string folder = std::string(std::getenv("FORETRACE_CORPUS")) + "/../data/";
  const char* megatron = "precision=fp16,recompute=full,overlap=false,fused_attention=false";
  const Reached all[] = {
      {"vtrain/single_node.csv", "", megatron, -1, .035, .03},
      {"vtrain/multi_node.csv", "", megatron, -1, .09, .06},
      {"measured/training.csv", "gpu=A100-80GB", "zero=1,overlap=false,fused_attention=false", -1,
       .08, .06},
      {"measured/training.csv", "source=bigscience", "zero=1,overlap=false,fused_attention=false",
       -1, .15, .07},
      {"measured/training.csv", "source=SimuMax", "zero=1,sequence_parallel=true", -1, .06, .05},
      {"measured/training.csv", "source=llm-foundry", "zero=3", -1, .07, .055},
      {"measured/training.csv", "source=Megatron-Bridge", "zero=1,sequence_parallel=true", -1, .16,
       .15},
      {"measured/mlperf_v4.1.csv", "benchmark=llama2",
       "zero=1,sequence_parallel=true,precision=fp8,tp=4", 2, .05, .04},
      {"measured/mlperf_v5.csv", "benchmark=llama31_405b", "", 0, .08, .05},
      {"measured/mlperf_v5.csv", "benchmark=llama31_8b", "", 0, .16, .15},
      {"measured/mlperf_v5.csv", "benchmark=bert", "", 0, .15, .14},
  };
  for (const Reached& one : all) {
    SCOPED_TRACE(std::string(one.table) + " " + one.only);
    GenerateQuestion question{.machine = one.only[0] == '\0' ? "dgx-a100" : "",
                              .layout = one.layout};
    question.against = folder + one.table;
    if (one.fitted != 0) question.calibrate = question.against;
    question.calibrate_rows = one.fitted;
    if (one.only[0] != '\0') question.only = {one.only};
    const GenerationReport report = generate_step(question);
    ASSERT_TRUE(report.score);
    EXPECT_LE(report.score->mean, one.mean);
    EXPECT_LE(report.score->median, one.median);
    if (std::string_view(one.only) == "source=SimuMax") {
      EXPECT_LE(report.score->memory_median.value_or(1), .02);
    }
    if (std::string_view(one.only) == "source=bigscience") {
      EXPECT_GE(report.score->ran_out, 2U);
      EXPECT_EQ(report.score->found, report.score->ran_out);
      EXPECT_LE(report.score->alarms * 20, report.score->fitting);  // At most 5 %.
    }
  }
}

TEST(Generate, DoesNotScoreRowsThatLeaveTheirLayoutOpen) {
  const Folder folder;
  const std::string table = folder.write(
      "steps.csv",
      "model,gpu,gpus,tp,pp,dp,micro_batch,global_batch,grad_accum,precision,iteration_ms\n"
      "Llama 3.1 8B,H100-SXM,8,,,,,64,,bf16,9000\n"     // Nothing is stated.
      "Llama 3.1 8B,H100-SXM,8,8,1,1,,64,,bf16,9000\n"  // Not how large a micro-batch is.
      "Llama 3.1 8B,H100-SXM,8,8,1,1,1,64,,bf16,9000\n"
      "Llama 3.1 8B,H100-SXM,8,,,,2,64,4,bf16,9000\n");  // Replicas, as batches say.
  const GenerationReport report = generate_step({.layout = "zero=1", .against = table});
  std::vector<bool> guessed;
  for (const GeneratedRow& row : report.rows) guessed.push_back(row.is_guessed);
  EXPECT_EQ(guessed, (std::vector<bool>{true, true, false, false}));
}

TEST(Generate, SaysWhatAPrecisionThatIsNotStatedWouldChange) {
  const Folder folder;
  const std::string heading =
      "source,model,gpu,gpus,nodes,tp,pp,dp,micro_batch,global_batch,iteration_ms\n";
  const std::string rest = ",Llama 3.1 8B,H100-SXM,8,1,8,1,1,1,64,4000\n";
  const auto time = [&](const std::string& source, const std::string& layout, Notes* notes) {
    const std::string table = folder.write("steps.csv", heading + source + rest);
    GenerationReport report = generate_step({.layout = layout, .against = table});
    if (notes != nullptr) *notes = report.notes;
    return report.rows.at(0).time;
  };
  Notes notes;
  const Nanoseconds published = time("mlcommons/training_results_v5.1", "", &notes);
  EXPECT_LT(published, time("somebody", "", nullptr));
  const auto found = std::ranges::find_if(notes.all(), [](const Note& note) {
    return note.text.starts_with("rows without a precision are off by");
  });
  ASSERT_NE(found, notes.all().end());
  EXPECT_NE(found->text.find("if they ran in FP8"), std::string::npos) << found->text;
  time("somebody", "precision=bf16", &notes);  // Stated for all rows.
  EXPECT_TRUE(std::ranges::none_of(notes.all(), [](const Note& note) {
    return note.text.find("precision") != std::string::npos;
  }));
}

TEST(Generate, HostsOfARackAreJoinedByNVLink) {
  const Folder folder;
  const std::string heading =
      "model,gpu,gpus,nodes,tp,pp,dp,micro_batch,global_batch,precision,iteration_ms\n";
  const auto time = [&](int nodes) {
    const std::string table =
        folder.write("steps.csv", heading + "Llama 3.1 8B,GB200,16," + std::to_string(nodes) +
                                      ",16,1,1,1,64,bf16,4000\n");
    return generate_step({.against = table}).rows.at(0).time;
  };
  EXPECT_EQ(time(4), time(1));
  EXPECT_GT(time(8), time(4));  // Two devices a host: not a rack.
}

TEST(Generate, DoesNotScoreGuessedLayoutsOrWhatNoDeviceCanDo) {
  const Folder folder;
  const std::string table =
      folder.write("steps.csv",
                   "model,gpu,gpus,tp,pp,global_batch,grad_accum,precision,recompute,iteration_ms\n"
                   "Llama 3.1 8B,H100-SXM,8,1,1,32,8,bf16,full,9000\n"  // 4 replicas on 8 devices.
                   "Llama 3.1 8B,H100-SXM,8,8,1,32,32,bf16,full,4000\n"
                   "Llama 3.1 8B,H100-SXM,8,8,1,32,32,bf16,full,1000\n");
  const GenerationReport report = generate_step({.layout = "zero=1", .against = table});
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_TRUE(report.rows[0].is_guessed);
  EXPECT_EQ(report.score->rows, 1U);
  const auto left_out = std::ranges::find(report.notes.all(), Severity::warning, &Note::severity);
  ASSERT_NE(left_out, report.notes.all().end());
  EXPECT_NE(left_out->example.find("row 3: time: must be at least"), std::string::npos)
      << left_out->example;
}

}  // namespace
}  // namespace foretrace
