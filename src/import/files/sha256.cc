#include "base/sha256.h"

#include <vector>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/source.h"

namespace foretrace {

std::string sha256_of_file(const std::string& path) {
  return within(path, [&] {
    const auto file = open_file(path);
    Sha256 sha;
    std::vector<char> chunk(1 << 16);
    while (const std::size_t got = file->read(chunk.data(), chunk.size()))
      sha.add(std::string_view(chunk.data(), got));
    return hex_of(sha.digest());
  });
}

}  // namespace foretrace
