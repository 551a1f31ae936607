#include "machine/cluster/nccl_links.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace foretrace {
namespace {

constexpr double kGiga = 1e9;

}  // namespace

double pci_bandwidth(const std::string& speed, double width) {
  // GB/s of eight lanes, times ten.
  constexpr std::pair<std::string_view, double> kSpeeds[] = {
      {"2.5 ", 15}, {"5 ", 30},     {"5.0 ", 30}, {"8 ", 60},     {"8.0 ", 60},
      {"16 ", 120}, {"16.0 ", 120}, {"32 ", 240}, {"32.0 ", 240}, {"64.0 ", 480}};
  constexpr double kUnknown = 60, kUnknownWidth = 16, kPerGigabyte = 80;
  double rate = kUnknown;
  for (const auto& [begin, value] : kSpeeds) {
    if (speed.starts_with(begin)) rate = value;
  }
  return (width > 0 ? width : kUnknownWidth) * rate / kPerGigabyte * kGiga;
}

double nvlink_bandwidth(std::int64_t architecture) {
  constexpr std::pair<std::int64_t, double> kLinks[] = {{100, 40.1}, {90, 20.6}, {86, 12},
                                                        {80, 20},    {70, 20},   {60, 18}};
  for (const auto& [from, rate] : kLinks) {
    if (architecture >= from) return rate * kGiga;
  }
  return kLinks[std::size(kLinks) - 1].second * kGiga;
}

double bandwidth_between_cpus(const std::string& vendor, double model) {
  if (vendor == "amd") return 16 * kGiga;
  if (vendor == "power") return 32 * kGiga;
  if (vendor == "arm") return 6 * kGiga;
  constexpr std::pair<double, double> kIntel[] = {
      {0xCF, 40}, {0x8F, 22}, {0x55, 10}, {0, 6}};  // Emerald, Sapphire Rapids, Skylake, Broadwell
  for (const auto& [from, rate] : kIntel) {
    if (model >= from) return rate * kGiga;
  }
  return kIntel[3].second * kGiga;
}

}  // namespace foretrace
