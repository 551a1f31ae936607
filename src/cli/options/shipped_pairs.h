#pragma once

#include <string>
#include <vector>

namespace foretrace {

struct ShippedPairs {
  std::string path;
  bool recorded_elsewhere = false;  ///< Its recordings are not shipped with it.
};

/// The lists of pairs in ./traces, or of the installed program. Throws Error if there are none.
std::vector<ShippedPairs> shipped_pairs();

}  // namespace foretrace
