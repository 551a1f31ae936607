#pragma once

// Times of single operations on one device, and of collectives over a group of them, in
// microseconds.

#include "foretrace/price.h"

namespace foretrace {

class Rates {
 public:
  Rates(const Platform& platform, const Layout& layout, const Constants& constants);

  /// A matrix product: whole waves of tiles over the multiprocessors, each tile as long as its
  /// inner size and a constant for its start and end; not less than its bytes take. The best of a
  /// few shapes of tiles, and of splits of the inner size.
  double product(double rows, double columns, double inner, double count, bool narrow) const;
  double forward(const Gemm& gemm) const;
  double backward(const Gemm& gemm) const;
  double attention(double operations) const;
  double moved(double bytes) const;

  /// Ranks that are `stride` apart. Bytes as in collective.h.
  double all_reduce(std::int64_t ranks, std::int64_t stride, double bytes) const;
  double all_gather(std::int64_t ranks, std::int64_t stride, double bytes) const;
  double all_to_all(std::int64_t ranks, std::int64_t stride, double bytes) const;
  /// Between two devices that are `stride` apart.
  double send(std::int64_t stride, double bytes) const;

 private:
  bool is_across(std::int64_t ranks, std::int64_t stride) const;
  double bandwidth(std::int64_t ranks, std::int64_t stride) const;
  double start(std::int64_t ranks, std::int64_t stride) const;

  const Platform& platform_;
  const Constants& constants_;
  bool lora_;                  ///< Weights have no gradients.
  double peak_, narrow_peak_;  ///< Operations in a microsecond: of activations, of weights.
  double memory_;              ///< Bytes in a microsecond.
};

}  // namespace foretrace
