#pragma once

// How engines that serve models name the ranges of their steps:
//
//     execute_context_2(14721)_generation_30(30)               vLLM: requests (tokens)
//     execute_8192_context_9(sq8155sk8430...)_generation_37(sq37sk34489...)
//                                                              with sums over requests of
//                                                              tokens q and context k
//     step[EXTEND bs=2 toks=14721], step[DECODE bs=64]         SGLang
//     prefill[bs=6 tok=17408 ...], decode[bs=117/128 ...]      ATOM
//     [Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs      TensorRT-LLM

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretrace {

/// Numbers that a name does not tell are -1.
struct ServingStep {
  std::int64_t prompts = 0, prompt_tokens = 0;  ///< Requests whose prompts it computes.
  std::int64_t sequences = 0, new_tokens = 0;   ///< Requests that it gives further tokens.
  std::int64_t context = -1;                    ///< Positions that the sequences attend to, in all.
  std::int64_t padded = -1;                     ///< The size of the batch that is computed.

  /// Tokens of the whole step; -1 if not known.
  std::int64_t tokens() const {
    return prompt_tokens < 0 || new_tokens < 0 ? -1 : prompt_tokens + new_tokens;
  }
};

/// Returns nullopt for any other name.
std::optional<ServingStep> serving_step(std::string_view name);

/// "decode of 64", "prefill of 8,155 tokens", "mixed, 8,155 tokens and decode of 37".
std::string kind_of(const ServingStep& step);

}  // namespace foretrace
