#pragma once

// Times in microseconds of single operations on one device, and of collectives over a group of
// devices.

#include "price/price.h"

namespace foretrace {

class Rates {
 public:
  Rates(const Platform& platform, const Layout& layout, const Constants& constants);

  /// A matrix product runs in whole waves of tiles over the multiprocessors; a tile takes time for
  /// its inner size and a constant for its start and end, and the product takes no less than its
  /// memory traffic. The time is the best over a few tile shapes and splits of the inner size.
  double product(double rows, double columns, double inner, double count, bool narrow) const;
  double forward(const Gemm& gemm) const;
  double backward(const Gemm& gemm) const;
  double attention(double operations) const;
  double moved(double bytes) const;

  /// The ranks are `stride` apart. Bytes are counted as in collective.h.
  double all_reduce(std::int64_t ranks, std::int64_t stride, double bytes, double chunks = 1) const;
  /// `chunks` is the number of collectives that the bytes are in.
  double all_gather(std::int64_t ranks, std::int64_t stride, double bytes, double chunks = 1) const;
  /// Between `ranks` in a row; the copies are shares of the bytes that ranks, and nodes, receive.
  double all_to_all(std::int64_t ranks, double bytes, double rank_copies, double node_copies) const;
  /// An update of parameters whose optimizer state the host keeps: transfers, and the host's work.
  double offloaded(double parameters) const;
  /// A send from one stage of a pipeline to the next.
  double send(double bytes) const;

 private:
  double unaligned(const Gemm& gemm) const;
  bool is_across(std::int64_t ranks, std::int64_t stride) const;
  /// The time to narrow rows of a product that are `width` wide, where no kernel before does.
  double narrowed(const Gemm& gemm, double width) const;
  /// A device's share of the NICs, if `devices` in a row communicate.
  double nic_rate(std::int64_t devices) const;
  double ring_us(std::int64_t ranks, std::int64_t stride) const;
  double hop_across() const;
  double bandwidth(std::int64_t ranks, std::int64_t stride) const;
  double start(std::int64_t ranks, std::int64_t stride) const;

  const Platform& platform_;
  const Constants& constants_;
  std::int64_t devices_;
  bool lora_;                  ///< Weights have no gradients.
  bool narrows_ = false;       ///< Whether kernels of their own narrow gradients.
  double peak_, narrow_peak_;  ///< Operations per microsecond: of activations, of weights.
  double attention_share_;     ///< Relative to an A100's.
  double memory_;              ///< Bytes per microsecond.
};

}  // namespace foretrace
