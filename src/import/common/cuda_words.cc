#include "import/common/cuda_words.h"

#include <algorithm>
#include <limits>

#include "base/contains.h"

namespace foretrace {
namespace {

constexpr CopyKind kCopyKinds[] = {
    {"", CopyDirection::none},
    {"HtoD", CopyDirection::in},
    {"DtoH", CopyDirection::out},
    {"HtoA", CopyDirection::in},
    {"AtoH", CopyDirection::out},
    {"AtoA", CopyDirection::on_device},
    {"AtoD", CopyDirection::on_device},
    {"DtoA", CopyDirection::on_device},
    {"DtoD", CopyDirection::on_device},
    {"HtoH", CopyDirection::on_host},
    {"PtoP", CopyDirection::peer},
    // Nsight Systems' own names, for unified memory.
    {"HtoD", CopyDirection::in},
    {"DtoH", CopyDirection::out},
    {"DtoD", CopyDirection::peer},
};

constexpr std::string_view kMemoryKinds[] = {"Unknown",       "Pageable",      "Pinned",
                                             "Device",        "Array",         "Managed",
                                             "Device Static", "Managed Static"};

template <class Entry, std::size_t size>
const Entry& entry(const Entry (&table)[size], std::int64_t number) {
  return table[number >= 0 && number < static_cast<std::int64_t>(size) ? number : 0];
}

/// Removes a suffix such as "_v7000". Versions are 1000 times CUDA's major version, so they have at
/// least four digits.
std::string_view without_number(std::string_view call) {
  const std::size_t at = call.rfind("_v");
  if (at == std::string_view::npos || call.size() - at < 6) return call;
  const bool digits = call.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return digits ? call.substr(0, at) : call;
}

}  // namespace

const CopyKind& copy_kind(std::int64_t number) { return entry(kCopyKinds, number); }

std::string_view memory_kind(std::int64_t number) { return entry(kMemoryKinds, number); }

std::string_view without_version(std::string_view call) {
  call = without_number(call);
  for (const std::string_view mark : {"_ptsz", "_ptds"}) {
    if (call.ends_with(mark)) call.remove_suffix(mark.size());
  }
  return call;
}

std::uint32_t volume(std::int64_t x, std::int64_t y, std::int64_t z) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t all = 1;
  for (const std::int64_t size : {x, y, z})
    all = std::min(
        kMax, all * std::min(kMax, static_cast<std::uint64_t>(std::max(size, std::int64_t{0}))));
  return static_cast<std::uint32_t>(all);
}

CopyDirection copy_direction(std::string_view name) {
  struct Spelling {
    std::string_view text;
    CopyDirection direction;
  };
  static constexpr Spelling kSpellings[] = {
      {"HtoD", CopyDirection::in},
      {"DtoH", CopyDirection::out},
      {"DtoD", CopyDirection::on_device},
      {"PtoP", CopyDirection::peer},
      {"HtoH", CopyDirection::on_host},
      {"HtoA", CopyDirection::in},
      {"AtoH", CopyDirection::out},
      {"AtoA", CopyDirection::on_device},
      {"AtoD", CopyDirection::on_device},
      {"DtoA", CopyDirection::on_device},
      {"HostToDevice", CopyDirection::in},
      {"DeviceToHost", CopyDirection::out},
      {"DeviceToDevice", CopyDirection::on_device},
      {"HostToHost", CopyDirection::on_host},
      {"PeerToPeer", CopyDirection::peer},
      {"Host -> Device", CopyDirection::in},
      {"Device -> Host", CopyDirection::out},
      {"H2D", CopyDirection::in},
      {"D2H", CopyDirection::out},
      {"D2D", CopyDirection::on_device},
      {"M2D", CopyDirection::in},
      {"D2M", CopyDirection::out},
      {"P2P", CopyDirection::peer},
  };
  for (const Spelling& spelling : kSpellings) {
    if (contains(name, spelling.text)) return spelling.direction;
  }
  return CopyDirection::none;
}

}  // namespace foretrace
