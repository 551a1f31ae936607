#include <algorithm>
#include <cmath>

#include "price/calibration.h"
#include "price/process.h"

namespace foretrace {
namespace {

/// The number of doublings of a size over which the error of a price stays alike. Chosen on
/// vTrain's steps, where tokens and tensor parallel ranks decide which kernels run, while layers,
/// replicas and micro-batches only decide how often.
constexpr double kHidden = 1, kHeads = 2, kLayers = 6, kExperts = 1.5, kTokens = .7, kSequence = 2,
                 kTensor = .7, kPipeline = 3, kData = 5, kMicroBatches = 6, kContext = 1,
                 kExpert = 1.5, kPeak = .7, kKinds = 1;
/// Months over which software changes a step's time.
constexpr double kRelease = 1;
/// One in this many is chosen next to another, to show how much equal steps differ.
constexpr std::size_t kPairEach = 6;
constexpr double kSignal = .15, kNoise = .03;  ///< Only for choosing shapes.

double kind_of(const Layout& layout) {
  const bool narrow = layout.precision == "fp8";
  return (narrow ? 1 : 0) + (layout.precision == "fp4" ? 2 : 0);
}

double recomputed(const Layout& layout) {
  return layout.recompute == "full" ? 1 : layout.recompute == "selective" ? .5 : 0;
}

/// Returns the shape that is most alike among those not taken.
std::size_t nearest_to(const std::vector<std::vector<double>>& shapes, std::size_t to,
                       const std::vector<char>& is_taken) {
  std::size_t best = shapes.size();
  double most = -1;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double score = similarity(shapes[i], shapes[to]);
    if (!is_taken[i] && score > most) most = score, best = i;
  }
  return best;
}

}  // namespace

std::vector<double> shape_of(const MeasuredStep& step) {
  const Layout& layout = step.layout;
  const auto log = [](auto value) { return std::log2(static_cast<double>(value)); };
  const double peak = step.platform.device.fp16.flops_per_second;
  std::vector<double> traits = step.workload->traits();
  const std::int64_t length = step.workload->tokens();
  std::vector<double> shape;
  // The machine's numbers come first: see process.h.
  for (const double one :
       {log(std::max(peak, 1.)) / kPeak, kind_of(layout) / kKinds, step.release / kRelease,
        traits[3] / kExperts, traits[0] / kHidden, traits[1] / kHeads, traits[2] / kLayers,
        log(length * layout.micro_batch) / kTokens, log(length) / kSequence,
        log(layout.tensor) / kTensor, log(layout.pipeline) / kPipeline, log(layout.data) / kData,
        log(layout.micro_batches()) / kMicroBatches, log(layout.context) / kContext,
        log(layout.expert) / kExpert, recomputed(layout) / kKinds,
        static_cast<double>(layout.zero) / 3 / kKinds})
    shape.push_back(one);
  return shape;
}

std::vector<std::size_t> chosen_shapes(const std::vector<std::vector<double>>& shapes,
                                       std::size_t count) {
  const std::size_t n = shapes.size();
  std::vector<std::size_t> chosen;
  std::vector<std::vector<double>> columns;
  std::vector<double> variance(n, kSignal * kSignal);
  std::vector<char> is_taken(n, 0);
  const std::size_t spread = std::min(count, n) - std::min(count, n) / kPairEach;
  while (chosen.size() < spread) {
    std::size_t best = n;
    double most = -1;
    std::vector<double> column(n), best_column;
    for (std::size_t c = 0; c < n; ++c) {
      if (is_taken[c]) continue;
      double gain = 0;
      const double pivot = variance[c] + kNoise * kNoise;
      for (std::size_t i = 0; i < n; ++i) {
        column[i] = kSignal * kSignal * similarity(shapes[i], shapes[c]);
        for (const auto& other : columns) column[i] -= other[i] * other[c];
        gain += column[i] * column[i] / pivot;
      }
      if (gain > most) {
        most = gain, best = c, best_column = column;
        for (double& value : best_column) value /= std::sqrt(pivot);
      }
    }
    for (std::size_t i = 0; i < n; ++i) variance[i] -= best_column[i] * best_column[i];
    is_taken[best] = 1;
    chosen.push_back(best);
    columns.push_back(std::move(best_column));
  }
  for (std::size_t first = 0; chosen.size() < std::min(count, n); ++first) {
    const std::size_t twin = nearest_to(shapes, chosen[first], is_taken);
    is_taken[twin] = 1;
    chosen.push_back(twin);
  }
  return chosen;
}

}  // namespace foretrace
