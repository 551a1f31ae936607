#pragma once

// Shared by questions about serving: their settings, made into a deployment and into words.

#include <string>
#include <vector>

#include "foretrace/question/serve.h"
#include "foretrace/question/training.h"
#include "serve/deployment.h"

namespace foretrace {

/// Reads "vllm:max_num_seqs=64"; what is not given is 0. Throws Error.
serve::EngineSettings engine_settings_of(const std::string& text);
/// Reads "ttft_p99=2s,tpot_p99=50ms". Throws Error.
std::vector<serve::SloPart> slo_of(const std::string& text);
/// Leaves `vary` aside. Throws Error.
serve::Deployment deployment_of(const ServeQuestion& question);
/// Reads measured deployments; no path: nothing to correct by. Adds what was used.
serve::ServeCalibration serve_calibration_of(const std::string& path,
                                             std::vector<std::string>& assumptions);

/// The price of a million tokens, each of which takes `seconds` of a GPU.
double price_of_a_million(double seconds, const GpuPrice& price);

/// "tensor 4, 2 replicas"
std::string placement_text(const ServeQuestion& question);
/// "32 requests at a time, prompts of 1024 tokens, answers of 128"
std::string load_text(const serve::Load& load);
void add_serve_assumptions(const ServeQuestion& question, const serve::Deployment& deployment,
                           std::vector<std::string>& assumptions);

}  // namespace foretrace
