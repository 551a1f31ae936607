#include <cmath>

#include "foretrace/ask/collective.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostSizes = 1000;

/// Reads the first size of a range, which may lack a unit, because nccl-tests begin at 8 bytes.
Bytes first_size(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return parse_bytes(plain ? text + "B" : text);
}

}  // namespace

std::vector<Bytes> read_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {parse_bytes(text)};
  const std::size_t slash = text.find("/x", dots);
  const Bytes first = first_size(text.substr(0, dots));
  const Bytes last = parse_bytes(text.substr(dots + 2, slash - dots - 2));
  std::int64_t factor = 2;
  if (slash != std::string::npos) {
    const std::string digits = text.substr(slash + 2);
    const bool plain = !digits.empty() && digits.size() < 7 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    factor = plain ? std::stoll(digits) : 0;
    if (factor < 2) throw Error("must end in a factor of at least 2, such as /x2, got " + text);
  }
  if (first.count < 1 || last < first)
    throw Error("must go from a size of at least 1 B to one that is not less, got " + text);
  std::vector<Bytes> sizes;
  for (std::int64_t bytes = first.count; bytes <= last.count && sizes.size() < kMostSizes;
       bytes *= factor)
    sizes.push_back({bytes});
  return sizes;
}

}  // namespace foretrace
