#include "launch/launch.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "support/folder.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

LaunchFile file_of(const std::string& name, const std::string& text) {
  const Folder folder;
  return read_launch_file(folder.write(name, text));
}

/// The layout of a file as it is read back, without settings that have their defaults.
std::string layout_of(const std::string& name, const std::string& text, std::int64_t gpus = 0,
                      const std::string& stated = "") {
  Layout layout;
  read_json(read_assignments(launch_layout(file_of(name, text), stated, gpus), layout), layout);
  return layout_text(layout);
}

std::string refused(const std::string& name, const std::string& text, std::int64_t gpus = 0) {
  try {
    const LaunchFile file = file_of(name, text);
    launch_layout(file, "", gpus);
    launch_model(file, "");
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.substr(message.find(name));
  }
  return "";
}

const char* const kLlama =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 8192 --position-embedding-type rope "
    "--swiglu --untie-embeddings-and-output-weights --disable-bias-linear --attention-dropout 0 "
    "--hidden-dropout 0 --vocab-size 128256 ";

TEST(Launch, ReadsMegatronsArguments) {
  const std::string text = std::string("torchrun --nproc_per_node 8 --nnodes 32 p.py ") + kLlama +
                           "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 "
                           "--num-layers-per-virtual-pipeline-stage 2 --micro-batch-size 1 "
                           "--global-batch-size 1024 --bf16 --sequence-parallel "
                           "--use-distributed-optimizer --overlap-grad-reduce "
                           "--recompute-granularity selective --recompute-modules core_attn mlp\n";
  const LaunchFile file = file_of("p.sh", text);
  EXPECT_EQ(launch_model(file, ""), "llama3-8b");
  EXPECT_EQ(layout_of("p.sh", text),
            "dp=8,global_batch=1024,pp=4,recompute=pointwise,schedule=interleaved,"
            "sequence_parallel=true,tp=8,virtual_stages=4,zero=1");
  // 256 GPUs, tp 8, pp 4: dp 8, and 128 micro-batches.
  Layout layout;
  read_json(read_assignments(launch_layout(file, "", 0), layout), layout);
  EXPECT_EQ(layout.micro_batches(), 128);
  EXPECT_EQ(layout_of("p.sh", text, 512).substr(0, 5), "dp=16");
  // Graphs of parts of layers leave launches to the host.
  const std::string joined = text.substr(0, text.size() - 1);
  EXPECT_TRUE(layout_of("p.sh", joined + " --cuda-graph-impl local\n").starts_with("cuda_graphs"));
  EXPECT_TRUE(layout_of("p.sh", joined + " --cuda-graph-impl local --cuda-graph-scope attn\n")
                  .starts_with("dp="));
  EXPECT_EQ(layout_of("p.sh", text, 0, "tp=4,zero=0").substr(0, 5), "dp=16");
  EXPECT_TRUE(layout_of("p.sh", joined + " --moe-token-dispatcher-type flex "
                                         "--overlap-moe-expert-parallel-comm\n")
                  .starts_with("dispatcher=deepep,dp=8,global_batch=1024,overlap_dispatch=true"));
}

TEST(Launch, ReadsMegatronsDefaults) {
  const auto parameters = [](const std::string& more) {
    return find_workload(
               launch_model(
                   file_of("p.sh",
                           "--num-layers 2 --hidden-size 4096 --num-attention-heads 32 "
                           "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 " +
                               more),
                   ""))
        ->parameters();
  };
  const double h = 4096, tables = (1000 + 64) * h;
  EXPECT_EQ(parameters(""), tables + 2 * h + 2 * (12 * h * h + 13 * h));
  // int(4 h 2 / 3 / 64) 64 = 10,880.
  EXPECT_EQ(parameters("--swiglu --disable-bias-linear"),
            tables + h + 2 * (4 * h * h + 3 * h * 10'880 + 2 * h));
  EXPECT_EQ(refused("p.sh",
                    "--num-layers 61 --hidden-size 64 --num-attention-heads 8 --seq-length 64 "
                    "--vocab-size 1 --num-experts 4 --moe-layer-freq '([0]*3+[1]*57)'"),
            "p.sh: moe_layer_freq: must be 61 layers, dense ones first, got '([0]*3+[1]*57)'");
  const std::string experts = launch_model(
      file_of("p.sh",
              "--num-layers 61 --hidden-size 64 --num-attention-heads 8 --seq-length 64 "
              "--vocab-size 1 --num-experts 4 --moe-layer-freq '([0]*3+[1]*58)'"),
      "");
  EXPECT_NE(experts.find("dense_layers=3"), std::string::npos) << experts;
  EXPECT_NE(experts.find("active_experts=2"), std::string::npos) << experts;
  // Tensor parallel ranks share experts unless the file says otherwise.
  const std::string shared = std::string(kLlama) +
                             "--num-experts 8 --tensor-model-parallel-size 2 "
                             "--expert-model-parallel-size 4 --bf16 ";
  EXPECT_EQ(layout_of("p.sh", shared, 8), "dp=4,ep=4,etp=2,global_batch=4,overlap=false,tp=2");
  EXPECT_EQ(layout_of("p.sh", shared + "--expert-tensor-parallel-size 1", 8),
            "dp=4,ep=4,etp=1,global_batch=4,overlap=false,tp=2");
  EXPECT_EQ(refused("p.sh", shared + "--fp16", 8), "p.sh: bf16 and fp16: must not both be given");
}

/// Megatron-Bridge's sections, and its switches the other way round.
TEST(Launch, ReadsMegatronsYaml) {
  const std::string text =
      "model:\n  num_layers: 32\n  hidden_size: 4096\n  ffn_hidden_size: 14336\n"
      "  num_attention_heads: 32\n  num_query_groups: 8\n  vocab_size: 128256\n  seq_length: 8192\n"
      "  gated_linear_unit: true\n  share_embeddings_and_output_weights: false\n"
      "  add_bias_linear: false\n  attention_dropout: 0.0\n  hidden_dropout: 0.0\n"
      "  position_embedding_type: rope\n  tensor_model_parallel_size: 2\n"
      "  virtual_pipeline_model_parallel_size: 5\n  pipeline_model_parallel_size: 2\n"
      "train:\n  micro_batch_size: 1\n  global_batch_size: 64\nddp:\n"
      "  use_distributed_optimizer: true\nmixed_precision: bf16_with_mxfp8_mixed\n";
  EXPECT_EQ(launch_model(file_of("b.yaml", text), ""), "llama3-8b");
  EXPECT_EQ(layout_of("b.yaml", text, 16),
            "dp=4,global_batch=64,overlap=false,pp=2,precision=fp8,schedule=interleaved,tp=2,"
            "virtual_stages=5,zero=1");
}

TEST(Launch, ReadsTorchtitan) {
  const std::string text =
      "[model]\nname = 'llama3'\nflavor = '70B'\n[training]\nlocal_batch_size = 8\nseq_len = 8192\n"
      "[parallelism]\ntensor_parallel_degree = 8\n[activation_checkpoint]\nmode = 'full'\n";
  EXPECT_EQ(launch_model(file_of("t.toml", text), ""), "llama3-70b:sequence=8192");
  EXPECT_EQ(layout_of("t.toml", text, 64),
            "dp=8,framework=torchtitan,global_batch=64,micro_batch=8,pointwise=eager,"
            "recompute=full,sequence_parallel=true,tp=8,zero=3");
  EXPECT_EQ(layout_of("t.toml", text + "[compile]\nenable = true\n", 64),
            "dp=8,framework=torchtitan,global_batch=64,micro_batch=8,recompute=full,"
            "sequence_parallel=true,tp=8,zero=3");
  EXPECT_EQ(
      refused("t.toml", text),
      "t.toml: does not say on how many GPUs the job runs; give --gpus, or dp=N with --layout");
  // With stages, weights stay gathered between the passes, and a rank's batch is cut.
  EXPECT_EQ(
      layout_of("t.toml",
                "[training]\nlocal_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n"
                "data_parallel_shard_degree = 4\n",
                0),
      "dp=4,framework=torchtitan,global_batch=32,pointwise=eager,pp=2,recompute=full,"
      "recompute_share=0.5,"
      "zero=2");
  // Its pipeline drains after every local batch.
  EXPECT_EQ(
      layout_of("t.toml",
                "[training]\nlocal_batch_size = 8\nglobal_batch_size = 128\n[parallelism]\n"
                "pipeline_parallel_degree = 2\ndata_parallel_shard_degree = 4\n"
                "[activation_checkpoint]\nselective_ac_option = '4'\n"
                "[compile]\nenable = true\ncomponents = ['loss']\n",
                0),
      "dp=4,flushes=4,framework=torchtitan,global_batch=128,pointwise=eager,pp=2,recompute=full,"
      "recompute_share=0.25,zero=2");
  EXPECT_EQ(layout_of("t.toml",
                      "[training]\nlocal_batch_size = 1\n[parallelism]\n"
                      "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
                      "[activation_checkpoint]\nmode = 'none'\n"),
            "dp=8,framework=torchtitan,global_batch=8,pointwise=eager,replicas=2,zero=3");
}

TEST(Launch, ReadsDeepSpeed) {
  const auto text = [](const std::string& batch) {
    return "{" + batch + R"(, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})";
  };
  const std::string of_two = R"("train_batch_size": 512, "train_micro_batch_size_per_gpu": 4)";
  const std::string layout =
      "dp=16,framework=deepspeed,global_batch=512,micro_batch=4,overlap=false,zero=2";
  EXPECT_EQ(layout_of("d.json", text(of_two), 16), layout);
  EXPECT_EQ(layout_of("d.json", text(of_two + R"(, "gradient_accumulation_steps": 8)")), layout);
  EXPECT_EQ(refused("d.json", text(R"("train_batch_size": 512, "train_micro_batch_size_per_gpu": 3,
                                      "gradient_accumulation_steps": 8)"),
                    16),
            "d.json: the batch of a step must be micro-batch x accumulation x ranks, 3 x 8 x 16, "
            "got 512");
  // The micro-batch is what the others leave.
  const std::string of_one = R"("train_batch_size": 512)";
  EXPECT_EQ(layout_of("d.json", text(of_one), 16),
            "dp=16,framework=deepspeed,global_batch=512,micro_batch=32,overlap=false,zero=2");
  EXPECT_EQ(layout_of("d.json", text(of_one + R"(, "gradient_accumulation_steps": 8)"), 16),
            layout);
  EXPECT_EQ(
      refused("d.json", text(of_one + R"(, "gradient_accumulation_steps": 5)"), 16),
      "d.json: the batch of a step must be a multiple of accumulation x ranks, 5 x 16, got 512");
  EXPECT_EQ(refused("d.json", text(of_one + R"(, "fp16": {"enabled": true})"), 16),
            "d.json: fp16.enabled: must be false if bf16.enabled is true");
  EXPECT_EQ(refused("d.json", text(R"("train_micro_batch_size_per_gpu": "auto")"), 8),
            "d.json: train_micro_batch_size_per_gpu: is \"auto\", which a trainer fills in; write "
            "the value that it fills in");
  EXPECT_EQ(refused("d.json", text(of_two), 16), "d.json: names no model; give MODEL as well");
}

TEST(Launch, ReadsAccelerate) {
  const std::string text =
      "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
      "  fsdp_activation_checkpointing: true\n";
  EXPECT_EQ(layout_of("a.yaml", text + "  fsdp_sharding_strategy: SHARD_GRAD_OP\n"),
            "dp=8,framework=fsdp,global_batch=8,recompute=full,zero=2");
  EXPECT_EQ(layout_of("a.yaml", "dynamo_config:\n  dynamo_backend: INDUCTOR\n" + text),
            "dp=8,framework=fsdp,global_batch=8,pointwise=fused,recompute=full,zero=3");
  EXPECT_EQ(layout_of("a.yaml", text, 16, "micro_batch=4"),
            "dp=16,framework=fsdp,global_batch=64,micro_batch=4,recompute=full,zero=3");
  EXPECT_EQ(layout_of("a.yaml", text + "  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"),
            "dp=8,framework=fsdp,global_batch=8,recompute=full,zero=2");
  EXPECT_EQ(layout_of("a.yaml", text + "  fsdp_sharding_strategy: 4\nnum_machines: 2\n"),
            "dp=8,framework=fsdp,global_batch=8,recompute=full,replicas=2,zero=3");
  EXPECT_EQ(refused("a.yaml", "distributed_type: DEEPSPEED\nx: 1\n").substr(0, 69),
            "a.yaml: distributed_type: must be FSDP, MULTI_GPU or NO, got 'DEEPSPE");
}

TEST(Launch, ReadsNanotron) {
  const std::string text =
      "model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 4096\n    num_hidden_layers: "
      "32\n"
      "    num_attention_heads: 32\n    num_key_value_heads: 8\n    intermediate_size: 14336\n"
      "    vocab_size: 128256\nparallelism:\n  dp: 4\n  tp: 2\n  pp: 2\n"
      "tokens:\n  sequence_length: 8192\n  micro_batch_size: 2\n  batch_accumulation_per_replica: "
      "8\n";
  EXPECT_EQ(launch_model(file_of("n.yaml", text), ""), "llama3-8b");
  EXPECT_EQ(layout_of("n.yaml", text),
            "dp=4,framework=nanotron,global_batch=64,micro_batch=2,overlap=false,pp=2,"
            "schedule=gpipe,tp=2");
  std::string unstated = text;
  unstated.erase(unstated.find("  sequence_length"),
                 std::string("  sequence_length: 8192\n").size());
  EXPECT_EQ(refused("n.yaml", unstated),
            "n.yaml: tokens.sequence_length: must be in the file, the tokens of a sample");
  // A model of its own brings its own samples.
  EXPECT_EQ(
      launch_model(file_of("n.yaml", "parallelism:\n  dp: 4\ntokens:\n  micro_batch_size: 1\n"),
                   "llama3-8b"),
      "llama3-8b");
}

TEST(Launch, SaysWhatIsWrong) {
  EXPECT_EQ(
      refused("x.json", R"({"learning_rate": 1, "seed": 2})"),
      "x.json: is no configuration of Megatron-LM, torchtitan, Accelerate, DeepSpeed, nanotron; "
      "its settings are learning_rate, seed");
  EXPECT_EQ(refused("p.sh", std::string(kLlama) + "--tensor-model-parallel-size $TP"),
            "p.sh: tensor_model_parallel_size: '$TP' is known only when the script runs; give the "
            "command that it runs (`bash -x` prints it)");
  EXPECT_EQ(refused("p.sh", std::string(kLlama) + "--tensor-model-parallel-size 8", 12),
            "p.sh: 12 GPUs must be a multiple of tp x pp x cp, 8 x 1 x 1; --gpus gives another "
            "number");
  EXPECT_EQ(refused("p.sh", "--num-layers 2 --hidden-size 8 --vocab-size 1"),
            "p.sh: seq_length: must be in the file, the tokens of a sample");
  EXPECT_EQ(
      refused("p.sh", "--num-layers 2 --hidden-size 8 --tensor-model-parallel-size 0"),
      "p.sh: vocab_size: must be in the file, because the tokenizer, which has it, is not read");
}

/// What a program is told runs the layout: a file with these settings is read back as the layout.
TEST(Launch, WritesWhatItReads) {
  Layout layout;
  layout.data = 4, layout.micro_batch = 2, layout.global_batch = 64;
  layout.overlaps_gradients = true;
  const auto round_trip = [&](const LaunchProgram& program, const std::string& name,
                              const std::string& text) {
    ASSERT_TRUE(program.runs(layout)) << program.name;
    const Folder folder;
    const LaunchFile before = read_launch_file(folder.write(name, text));
    EXPECT_EQ(before.program->name, program.name);
    const std::string after = changed_text(before.config, program.changes(layout));
    Layout read;
    read_json(
        read_assignments(
            launch_layout(read_launch_file(folder.write(name, after)), "", layout.devices()), read),
        read);
    layout.framework = read.framework, read.overlaps_gradients = layout.overlaps_gradients;
    EXPECT_EQ(layout_text(read), layout_text(layout)) << after;
  };
  const auto& programs = launch_programs();
  const std::string megatron = std::string(kLlama) + "--tensor-model-parallel-size 1 --fp16";
  const std::string titan = "[training]\nseq_len = 8\n[parallelism]\n";
  const std::string nanotron =
      "parallelism:\n  dp: 1\n  pp: 1\ntokens:\n  micro_batch_size: 1\n  sequence_length: 8\n";
  const std::string deepspeed =
      R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}})";
  layout.zero = 1;
  round_trip(programs[0], "p.sh", megatron);
  round_trip(programs[3], "d.json", deepspeed);
  round_trip(programs[4], "n.yaml", nanotron);
  layout.zero = 3, layout.tensor = 2, layout.sequence_parallel = true, layout.recompute = "full";
  round_trip(programs[0], "p.sh", megatron);
  round_trip(programs[1], "t.toml", titan);
  layout.replicas = 2;
  round_trip(programs[1], "t.toml", titan);
  layout.replicas = 1, layout.zero = 0, layout.pipeline = 2, layout.schedule = "1f1b";
  round_trip(programs[0], "p.sh", megatron);
  round_trip(programs[1], "t.toml", titan);
  round_trip(programs[4], "n.yaml", nanotron);
  layout.schedule = "interleaved", layout.virtual_stages = 4, layout.zero = 1;
  round_trip(programs[0], "p.sh", megatron);
}

TEST(Launch, ReadsAModelOfHuggingFace) {
  const Folder folder;
  const auto parameters = [&](const std::string& text) {
    return find_workload(folder.write("config.json", text))->parameters();
  };
  EXPECT_EQ(parameters(R"({"model_type": "deepseek_v3", "auto_map": {"AutoModel": "m.M"},
      "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "vocab_size": 129280,
      "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
      "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1})"),
            671'026'419'200);
  EXPECT_EQ(parameters(R"({"text_config": {"model_type": "qwen3_next", "hidden_size": 2048,
      "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
      "intermediate_size": 5120, "vocab_size": 151936, "num_experts": 512, "num_experts_per_tok": 10,
      "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
      "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
      "linear_value_head_dim": 128}})"),
            79'674'391'296);
  EXPECT_EQ(parameters(R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
      "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
      "attention_bias": true})"),
            20'914'757'184);
  EXPECT_EQ(parameters(R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
      "vocab_size": 152064})"),
            7'615'616'512);
  EXPECT_EQ(parameters(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
      "vocab_size": 50257, "n_positions": 1024})"),
            124'439'808);
  EXPECT_THROW(parameters(R"({"model_type": "bloom", "auto_map": {}})"), Error);
  EXPECT_THROW(parameters(R"({"model_type": "llama", "hidden_size": 8})"), Error);
  const std::string path = folder.write("config.json", R"({"model_type": "llama", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
      "max_position_embeddings": 512})");
  EXPECT_EQ(find_workload(path)->tokens(), 512);
  EXPECT_EQ(find_workload(path + ":sequence=64,layers=1")->tokens(), 64);
}

}  // namespace
}  // namespace foretrace
