#include "trace/xxh64.h"

#include <xxhash.h>

namespace foretrace {

std::uint64_t xxh64(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace foretrace
