// From the throughput of one GPU to that of several, against what NVIDIA published for DGX machines
// (DeepLearningExamples). A series is used where the model's number of parameters is known below.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "base/files/csv_rows.h"
#include "base/statistics.h"
#include "foretrace/ask/scale.h"
#include "foretrace/error.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

using CsvRow = std::vector<std::string>;

/// Millions of parameters, by a part of the path; the first that fits. From the papers.
constexpr std::pair<std::string_view, double> kParameters[] = {
    {"se-resnext", 49},
    {"resnext101", 44.2},
    {"RN50", 25.6},
    {"resnet50", 25.6},
    {"efficientnet", 12},
    {"BERT", 336},
    {"ELECTRA", 110},
    {"GNMT", 160},
    {"Transformer-XL", 192},
    {"Translation/Transformer", 210},
    {"PyTorch/Detection/SSD", 23},
    {"Detection/SSD", 34},
    {"nnUNet", 31},
    {"UNet_Medical", 31},
    {"UNet_Industrial", 1.9},
    {"MaskRCNN", 44},
    {"Tacotron", 28},
    {"FastPitch", 46},
    {"Jasper", 333},
    {"QuartzNet", 19},
    {"NCF", 32},
    {"TFT", 2},
    {"BART", 406},
};

std::string machine_of(const std::string& section) {
  const std::string end =
      section.substr(section.size() - std::min<std::size_t>(section.size(), 60));
  const auto has = [&](const char* text) { return end.find(text) != std::string::npos; };
  if (has("DGX-2") || has("16x V100") || has("16xV100")) return "dgx-2";
  if (has("A100")) return "dgx-a100";
  return has("V100") || has("DGX-1") ? "dgx-1v" : "";
}

/// "Batch size / GPU (FP32 and FP16)=8 and 16": the last for mixed precision.
double batch_of(const std::string& text, bool is_mixed) {
  const std::string values = text.substr(text.rfind('=') + 1);
  std::vector<double> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(values[i])) == 0) continue;
    std::string number;
    for (; i < values.size() &&
           (std::isdigit(static_cast<unsigned char>(values[i])) != 0 || values[i] == ',');
         ++i)
      if (values[i] != ',') number += values[i];
    found.push_back(std::stod(number));
  }
  if (found.empty()) return 0;
  return is_mixed ? found.back() : found.front();
}

struct PublishedSeries {
  std::string machine;
  double megaparameters = 0, batch = 0;
  std::map<std::int64_t, double> throughput;  ///< By GPUs.
};

std::vector<PublishedSeries> published(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::map<CsvRow, std::map<std::int64_t, double>> series;
  while (std::getline(file, line)) {
    const CsvRow cells = csv_cells(line);
    if (cells.size() < 9 || cells[8].empty()) continue;
    try {
      series[{cells[1], cells[3], cells[5], cells[6], cells[7]}][std::stoll(cells[4])] =
          std::stod(cells[8]);
    } catch (const std::exception&) {  // A dash in place of a number.
    }
  }
  std::vector<PublishedSeries> found;
  for (const auto& [key, throughput] : series) {
    const auto model = std::ranges::find_if(
        kParameters, [&](const auto& one) { return key[0].find(one.first) != std::string::npos; });
    std::string quantity = key[4];
    std::ranges::transform(quantity, quantity.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto has = [&](const char* text) { return quantity.find(text) != std::string::npos; };
    PublishedSeries one{.machine = machine_of(key[1]),
                        .batch = batch_of(key[2], has("mixed") || has("amp") || has("fp16")),
                        .throughput = throughput};
    constexpr double kTokens = 1000;  // Fewer are samples, in throughputs of tokens.
    if (model == std::end(kParameters) || one.machine.empty() || one.batch <= 0 ||
        !throughput.contains(1) || throughput.size() < 2 || (has("tok") && one.batch < kTokens))
      continue;
    one.megaparameters = model->second;
    found.push_back(std::move(one));
  }
  return found;
}

TEST(PublishedScaling, ThroughputOfSeveralGpusFollowsFromThatOfOne) {
  const char* const corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  const std::string path = std::string(corpus) + "/../data/measured/data_parallel_scaling.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " does not exist";
  std::vector<double> errors, multiplied;
  std::size_t inside = 0;
  for (const PublishedSeries& series : published(path)) {
    const double alone = series.batch / series.throughput.at(1) * 1e9;
    if (alone < 1e6 || alone > 60e9) continue;  // Not a step: another unit.
    ScaleQuestion question;
    question.step_time = Nanoseconds(std::llround(alone));
    question.machine = series.machine;
    question.schemes = {"data_parallel:gradient_bytes=" +
                        std::to_string(std::llround(series.megaparameters * 4e6)) + "B"};
    for (const auto& [gpus, throughput] : series.throughput) {
      if (gpus > 1) question.gpus.push_back(gpus);
    }
    for (const ScalePoint& point : scale(question).points) {
      if (!point.refused.empty()) continue;
      const double measured = series.throughput.at(point.gpus) / series.throughput.at(1);
      const auto gpus = static_cast<double>(point.gpus);
      errors.push_back(std::abs(point.throughput / measured - 1));
      multiplied.push_back(std::abs(gpus / measured - 1));
      const auto step = Nanoseconds(std::llround(alone * gpus / measured));
      inside += point.lower <= step && step <= point.upper ? 1U : 0U;
    }
  }
  ASSERT_GE(errors.size(), 100U);
  std::ranges::sort(errors);
  std::ranges::sort(multiplied);
  const double share = static_cast<double>(inside) / static_cast<double>(errors.size());
  std::printf(
      "%zu points: median error %.1f %%, p90 %.1f %%; times the GPUs %.1f %% and %.1f %%; "
      "%.0f %% inside\n",
      errors.size(), 100 * interpolated_quantile(errors, .5),
      100 * interpolated_quantile(errors, .9), 100 * interpolated_quantile(multiplied, .5),
      100 * interpolated_quantile(multiplied, .9), 100 * share);
  EXPECT_LE(interpolated_quantile(errors, .5), .04);
  EXPECT_LE(interpolated_quantile(errors, .9), .15);
  EXPECT_LT(interpolated_quantile(errors, .5), interpolated_quantile(multiplied, .5) / 2);
  EXPECT_GE(share, .75);
  EXPECT_LE(share, .92);
}

}  // namespace
}  // namespace foretrace
