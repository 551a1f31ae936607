#include <gtest/gtest.h>

#include "foretrace/machine.h"

namespace foretrace {
namespace {

/// "compute tensor half", as far as it applies.
std::string described(std::string_view name) {
  const KernelClass kind = classify_kernel(name);
  std::string text = kind.bound == Boundness::compute  ? "compute"
                     : kind.bound == Boundness::memory ? "memory"
                                                       : "latency";
  if (kind.tensor_cores) text += " tensor";
  if (kind.half_precision) text += " half";
  if (kind.double_precision) text += " double";
  return text;
}

TEST(KernelClass, KnowsMatrixProducts) {
  const std::pair<const char*, const char*> cases[] = {
      {"volta_sgemm_128x64_nt", "compute"},
      {"ampere_sgemm_64x64_tn", "compute"},
      {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "compute tensor half"},
      {"volta_h884gemm_64x64_ldg8_nn", "compute tensor half"},
      {"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_stages_32x1_tn", "compute tensor half"},
      {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn", "compute tensor half"},
      {"ampere_bf16_s16816gemm_bf16_256x128_ldg8_relu_f2f_stages_32x3_tn", "compute tensor half"},
      {"cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1", "compute tensor"},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nt_align1>(int)", "compute"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "compute tensor half"},
      {"sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32", "compute tensor"},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_aligna4", "compute"},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "compute tensor half"},
      {"nvjet_sss_64x64_32x4_v_bz_TNN", "compute tensor"},
      {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "compute tensor half"},
      {"nvjet_sm100_qqtst_128x256_128x4_2x1_v_bz_coopA_TNN", "compute tensor half"},
      {"nvjet_sm90_sss_64x64_32x4_v_bz_TNN", "compute tensor"},
      {"Cijk_Ailk_Bljk_SB_MT64x64x16_SN_K1", "compute"},
      {"Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1_SN_K1", "compute tensor"},
      {"Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN", "compute tensor half"},
      {"Cijk_Alik_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN", "compute tensor half"},
      {"triton_tem_fused_addmm_6", "compute tensor"},
      {"scaled_2_bias_matmul_kernel_with_block_pointers_0d1d2d3d", "compute half"},
      {"_ZN2ck16tensor_operation6device12kernel_batched_gemm_xdlops_bwd_weight", "compute tensor"},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(described(name), kind) << name;
}

TEST(KernelClass, KnowsConvolutions) {
  const std::pair<const char*, const char*> cases[] = {
      {"cudnn_volta_scudnn_128x64_relu_xregs_large_nn_v1", "compute"},
      {"volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "compute"},
      {"void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false>(int)", "compute"},
      {"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", "compute"},
      {"void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int)", "compute"},
      {"turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1",
       "compute tensor half"},
      {"void cutlass_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128>",
       "compute tensor"},
      {"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32", "compute tensor half"},
      {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)", "memory"},
      {"void conv_depthwise2d_forward_kernel<float, 3>(int)", "memory"},
      {"cudnn::cnn::im2col4d_kernel<float, long>", "memory"},
      {"cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)", "latency"},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(described(name), kind) << name;
}

TEST(KernelClass, KnowsAttention) {
  const std::pair<const char*, const char*> cases[] = {
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, "
       "cutlass::bfloat16_t>>",
       "compute tensor half"},
      {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>",
       "compute tensor half"},
      {"void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>", "memory half"},
      {"fmha_cutlassF_f32_aligned_64x64_rf_sm80(Params)", "compute"},
      {"fmha_cutlassB_f16_aligned_64x64_k64_dropout_sm80(Params)", "compute tensor half"},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>", "memory"},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(described(name), kind) << name;
}

TEST(KernelClass, TakesTheRestForMemoryBound) {
  const std::pair<const char*, const char*> cases[] = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
       "memory"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<c10::Half>>",
       "memory half"},
      {"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float>>(int)", "memory"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
       "memory"},
      {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(int)", "memory"},
      {"void gemv2T_kernel_val<int, int, float, float, float, float, 128>(int)", "memory"},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)", "memory"},
      {"triton_poi_fused_addmm_relu_mm_0", "memory"},
      {"triton_red_fused__log_softmax_mm_backward_1", "memory"},
      {"void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "memory"},
      {"my_kernel", "memory"},
      {"", "memory"},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "latency"},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(described(name), kind) << name;
}

TEST(KernelClass, TellsWhatACompilerCouldJoin) {
  const std::pair<const char*, Pattern> cases[] = {
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>",
       Pattern::pointwise},
      {"void at::native::index_elementwise_kernel<128, 4, index_put_kernel_impl>", Pattern::other},
      {"fused_dropout_kernel_vec", Pattern::pointwise},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", Pattern::reduction},
      {"softmax_warp_forward", Pattern::normalization},
      {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", Pattern::normalization},
      {"multi_tensor_apply_kernel", Pattern::other},
      {"volta_scudnn_128x64_relu_interior_nn_v1", Pattern::other},
      {"my_kernel", Pattern::other},
  };
  for (const auto& [name, expected] : cases) {
    EXPECT_EQ(classify_kernel(name).pattern, expected) << name;
  }
}

TEST(KernelClass, TellsWhoWroteIt) {
  const std::pair<const char*, Origin> cases[] = {
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>",
       Origin::framework},
      {"volta_sgemm_128x64_nt", Origin::framework},
      {"input_multiply_reduce_fusion_3", Origin::framework},
      {"triton_poi_fused_mm_relu_3", Origin::compiler},
      {"triton_red_fused_native_layer_norm_0", Origin::compiler},
      {"triton__0d1d2d3de", Origin::compiler},
      {"void clover::par_ranged2d_kernel<ideal_gas_kernel>", Origin::unknown},
      {"scaled_2_bias_matmul_kernel_with_block_pointers_0d1d2d", Origin::unknown},
      {"void kDequantizeBlockwise<float, 512, 64, 8, 2>(float*)", Origin::unknown},
  };
  for (const auto& [name, expected] : cases)
    EXPECT_EQ(classify_kernel(name).origin, expected) << name;
}

TEST(KernelClass, KnowsDoublePrecision) {
  EXPECT_EQ(described("void at::native::vectorized_elementwise_kernel<4, F<double>>"),
            "memory double");
  EXPECT_EQ(described("ampere_dgemm_128x64_nn"), "compute double");
  EXPECT_EQ(described("volta_sgemm_128x64_nn"), "compute");
}

TEST(KernelClass, AreNotMisledByTheNameOfALibrary) {
  std::string name;
  for (int i = 0; i < 200'000; ++i) name += "fbgemm";
  EXPECT_EQ(described(name), "memory");
  EXPECT_EQ(described(name + "::gemm"), "compute");
}

// vLLM's enumerator 0 is "auto": the cache is as wide as the model.
TEST(KernelClass, ACacheAsWideAsTheModelIsNotNarrow) {
  const std::string name =
      "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "
      "(vllm::Fp8KVCacheDataType)";
  EXPECT_FALSE(classify_kernel(name + "0>(__nv_bfloat16 const*)").narrow);
  EXPECT_TRUE(classify_kernel(name + "1>(__nv_bfloat16 const*)").narrow);
}

TEST(KernelClass, ItsWordsAloneGiveTheSameClass) {
  for (const char* name : {
           "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
           "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
           "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32",
           "Cijk_Ailk_Bljk_SB_MT64x64x16",
           "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT",
           "nvjet_sss_64x64",
           "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
           "nvjet_sm100_qqtst_128x256_128x4_2x1_v_bz_coopA_TNN",
           "marlin::Marlin<256, 4, 16>",
           "multi_tensor_apply_kernel<TensorListMetadata<2>, TernaryOpScalarFunctor<float, 2, 2, "
           "0>>",
           "vectorized_elementwise_kernel<4, F, std::array<char*, 3ul>>",
           "cudnn::engines_precompiled::nchwToNhwcKernel<float, float>",
           "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
           "triton_poi_fused_mm_relu_3",
           "fbgemm_gpu_split_embedding_forward",
           "volta_scudnn_128x64_relu_interior_nn_v1",
           "my_own_kernel",
           "void hydro::flux_kernel<double>(int, double const*)",
           "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8>",
           "void at::native::index_elementwise_kernel<128, 4, at::native::index_put_kernel_impl>",
           "fused_dropout_kernel_vec",
           "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor>>",
       }) {
    EXPECT_EQ(described(class_words(name) + "-bdghjkvzbdghjk"), described(name)) << name;
    EXPECT_EQ(classify_kernel(class_words(name) + "-bdghjkvzbdghjk").pattern,
              classify_kernel(name).pattern)
        << name;
    const KernelClass by_words = classify_kernel(class_words(name) + "-bdghjkvzbdghjk");
    EXPECT_EQ(by_words.narrow, classify_kernel(name).narrow) << name;
    EXPECT_EQ(by_words.tensors, classify_kernel(name).tensors) << name;
    EXPECT_EQ(by_words.keeps_precision, classify_kernel(name).keeps_precision) << name;
    EXPECT_EQ(classify_kernel(class_words(name) + "-bdghjkvzbdghjk").origin,
              classify_kernel(name).origin)
        << name;
  }
}

}  // namespace
}  // namespace foretrace
