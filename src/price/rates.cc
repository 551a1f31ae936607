#include "price/rates.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "machine/operation_rates.h"
#include "price/stages.h"

namespace foretrace {
namespace {

constexpr double kMicro = 1e-6;

struct Tile {
  double rows, columns;
  double speed;  ///< Relative to the best, from cuBLAS's kernels on A100 and H100: recalled.
};
constexpr Tile kTiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, .95},
                           {128, 64, .8}, {64, 128, .8}, {64, 64, .6}};
constexpr double kSplits[] = {1, 2, 4, 8};
constexpr double kMinSplit = 512;  ///< Least inner size of a split, in elements.
/// Elements of 2 bytes: the sizes that tensor core loads must be a multiple of, and that fill a
/// whole cache line.
constexpr double kLoad = 8, kLine = 64;
/// Each doubling of the ranks of a collective lengthens its start by this share.
constexpr double kStartPerDoubling = .25;
/// A step of a ring between nodes, and within one: NCCL's latencies for large messages, us.
constexpr double kHopAcross = 14, kHopWithin = 3.4;
/// NCCL adds the latency of slower networks to a hop with protocol Simple twice.
constexpr double kExtraHops = 2;

/// An element that Transformer Engine narrows, for a product and for its transpose: read in 2
/// bytes, written in 1 twice.
constexpr double kNarrowBytes = 4;

std::optional<Arithmetic> narrow_type(const std::string& precision) {
  if (precision == "fp8") return Arithmetic::fp8;
  if (precision == "fp4") return Arithmetic::nvfp4;
  return std::nullopt;
}

/// Narrow products are as much faster than those in half precision as single ones were measured to
/// be, with the kernels that narrow their inputs; what Megatron's Transformer Engine narrows is
/// counted apart, so that the ratio is that of the peaks.
double product_peak(const DeviceModel& device, const Layout& layout) {
  const double peak = sheet_peak(device, layout.precision);
  if (peak <= 0)
    throw Error(fmt::format("precision: must be one that {} supports, got {}", device.name,
                            layout.precision));
  const auto narrow = narrow_type(layout.precision);
  if (!narrow || uses_engine(layout)) return peak;
  const double half = rate_of(device, OperationKind::product, Arithmetic::half).flops_per_second;
  const double rate = rate_of(device, OperationKind::product, *narrow).flops_per_second;
  return peak_of(device, Arithmetic::half).flops_per_second * rate / half;
}

double attention_share(const Platform& platform, const Layout& layout) {
  if (layout.attention_kernel == "flash_attention_2") return platform.flash2_share;
  const bool is_new = layout.attention_kernel == "flash_attention_3" || uses_engine(layout);
  return is_new ? platform.engine_share : platform.attention_share;
}

bool divides(double step, double columns, double inner) {
  return std::fmod(columns, step) == 0 && std::fmod(inner, step) == 0;
}

}  // namespace

double sheet_peak(const DeviceModel& device, const std::string& precision) {
  if (precision == "fp16") return device.fp16.flops_per_second;
  if (precision == "bf16") return device.bf16.flops_per_second;
  if (precision == "fp32") return peak_of(device, Arithmetic::fp32).flops_per_second;
  if (precision == "tf32") return peak_of(device, Arithmetic::tf32).flops_per_second;
  const auto narrow = narrow_type(precision);
  return narrow ? peak_of(device, *narrow).flops_per_second : 0;
}

Rates::Rates(const Platform& platform, const Layout& layout, const Constants& constants)
    : platform_(platform), constants_(constants), devices_(layout.devices()), lora_(layout.lora) {
  narrow_peak_ = product_peak(platform.device, layout) * kMicro;
  const bool is_narrow = narrow_type(layout.precision).has_value();
  narrows_ = is_narrow && uses_engine(layout);
  attention_share_ = attention_share(platform, layout);
  peak_ = is_narrow ? peak_of(platform.device, Arithmetic::half).flops_per_second * kMicro
                    : narrow_peak_;
  memory_ = platform.device.memory_bandwidth.bytes_per_second * constants.moved * kMicro;
}

double Rates::product(double rows, double columns, double inner, double count, bool narrow) const {
  const double peak = (narrow ? narrow_peak_ : peak_) * constants_.gemm * platform_.product_share /
                      platform_.multiprocessors;
  double best = 1e300;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns) * count;
    for (const double split : kSplits) {
      if (split > 1 && inner / split < kMinSplit) break;
      const double waves = std::ceil(tiles * split / platform_.multiprocessors);
      double us = waves * 2 * tile.rows * tile.columns * (inner / split + constants_.inner_half) /
                  (peak * tile.speed);
      if (split > 1) us += moved(rows * columns * count * 8);
      best = std::min(best, us);
    }
  }
  const double bytes = 2 * (rows * inner + inner * columns + rows * columns) * count;
  return std::max(best, moved(bytes));
}

/// How many times as long products take because rows of their operands do not fill loads or lines.
/// The three operands are the same in all passes: rows of `inner` and of `columns` elements, never
/// of as many as there are tokens.
double Rates::unaligned(const Gemm& gemm) const {
  if (!divides(kLoad, gemm.columns, gemm.inner)) return constants_.misaligned;
  return divides(kLine, gemm.columns, gemm.inner) ? 1 : constants_.ragged;
}

double Rates::narrowed(const Gemm& gemm, double width) const {
  return narrows_ && gemm.has_weights ? moved(kNarrowBytes * gemm.rows * width * gemm.count) : 0;
}

double Rates::forward(const Gemm& gemm) const {
  return unaligned(gemm) *
         product(gemm.rows, gemm.columns, gemm.inner, gemm.count, gemm.has_weights);
}

double Rates::backward(const Gemm& gemm) const {
  const double longer = unaligned(gemm);
  const double inputs =
      longer * product(gemm.rows, gemm.inner, gemm.columns, gemm.count, gemm.has_weights) +
      narrowed(gemm, gemm.columns);
  if (lora_ && gemm.has_weights) return inputs;
  return inputs +
         longer * product(gemm.inner, gemm.columns, gemm.rows, gemm.count, gemm.has_weights);
}

double Rates::attention(double operations) const {
  return operations / (peak_ * constants_.attention * attention_share_);
}

double Rates::moved(double bytes) const { return bytes / memory_; }

bool Rates::is_across(std::int64_t ranks, std::int64_t stride) const {
  return ranks * stride > platform_.per_node;
}

double Rates::nic_rate(std::int64_t devices) const {
  const std::int64_t hosts = (devices + platform_.per_host - 1) / platform_.per_host;
  return platform_.across.bytes_per_second * constants_.across * kMicro *
         fabric_share(platform_.tiers, hosts);
}

/// The members of a group on one node share the node's NICs with the groups beside them.
double Rates::bandwidth(std::int64_t ranks, std::int64_t stride) const {
  const double within = platform_.within.bytes_per_second * constants_.within * kMicro;
  if (!is_across(ranks, stride)) return within;
  const double members = std::max(1., static_cast<double>(platform_.per_node / stride));
  return std::min(within, members * nic_rate(ranks * stride));
}

double Rates::start(std::int64_t ranks, std::int64_t stride) const {
  return constants_.exchange * (1 + kStartPerDoubling * std::log2(static_cast<double>(ranks))) +
         (is_across(ranks, stride) ? constants_.exchange_across : 0);
}

double Rates::all_reduce(std::int64_t ranks, std::int64_t stride, double bytes,
                         double chunks) const {
  if (ranks <= 1 || bytes <= 0) return 0;
  const auto n = static_cast<double>(ranks);
  // NCCL's trees pass nodes in a logarithm of their number, up and down.
  const double nodes = n / std::max(1., static_cast<double>(platform_.per_node / stride));
  const double tree = is_across(ranks, stride) ? 2 * hop_across() * std::log2(nodes) : 0;
  return 2 * (n - 1) / n * bytes / bandwidth(ranks, stride) + start(ranks, stride) +
         (chunks - 1) * tree;
}

double Rates::all_gather(std::int64_t ranks, std::int64_t stride, double bytes,
                         double chunks) const {
  if (ranks <= 1 || bytes <= 0) return 0;
  const auto n = static_cast<double>(ranks);
  return (n - 1) / n * bytes / bandwidth(ranks, stride) + start(ranks, stride) +
         chunks * ring_us(ranks, stride);
}

/// Gathers and scatters go around a ring, so that data passes all ranks one after the other.
double Rates::ring_us(std::int64_t ranks, std::int64_t stride) const {
  if (!is_across(ranks, stride)) return 0;
  const auto n = static_cast<double>(ranks);
  const double members = std::max(1., static_cast<double>(platform_.per_node / stride));
  const double nodes = n / members;
  return (nodes - 1) * hop_across() + (n - nodes) * kHopWithin;
}

double Rates::hop_across() const { return kHopAcross + kExtraHops * platform_.extra_latency_us; }

/// Only the data for ranks on other nodes leaves a node.
double Rates::all_to_all(std::int64_t ranks, double bytes, double rank_copies,
                         double node_copies) const {
  if (ranks <= 1 || bytes <= 0) return 0;
  const auto n = static_cast<double>(ranks);
  const double within = platform_.within.bytes_per_second * constants_.within * kMicro;
  double us = rank_copies * (n - 1) / n * bytes / within;
  if (is_across(ranks, 1)) {
    const auto members = static_cast<double>(platform_.per_node);
    us = std::max(us, node_copies * (n - members) / n * bytes / nic_rate(ranks));
  }
  return us + start(ranks, 1);
}

double Rates::offloaded(double parameters) const {
  // Gradients go down in 2 bytes and weights come up in 2. The host reads gradients, states and
  // weights and writes the last two: 4 + 12 + 12 + 2 bytes.
  constexpr double kEachWay = 2, kHostBytes = 30;
  /// Memory bandwidth of a host, recalled: 8 channels of DDR4 to 12 of DDR5.
  constexpr double kHostMemory = 200e9;
  const double link = platform_.device.host_link.bytes_per_second * kMicro;
  const double host = kHostMemory * kMicro / static_cast<double>(platform_.per_host);
  return parameters * ((link > 0 ? 2 * kEachWay / link : 0) + kHostBytes / host);
}

double Rates::send(double bytes) const {
  // The slowest of all neighbors decides, and some pair of a large job is in different tiers.
  const double rate = devices_ > platform_.per_node
                          ? nic_rate(devices_)
                          : platform_.within.bytes_per_second * constants_.within * kMicro;
  return bytes / rate + constants_.send;
}

}  // namespace foretrace
