#include "trace/ftrace_section.h"

#include <xxhash.h>
#include <zstd.h>

#include "foretrace/error.h"

namespace foretrace::ftrace {
namespace {

constexpr int kLevel = 1;

}  // namespace

std::uint64_t xxh64(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

std::string pack(std::string_view raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kLevel);
  if (ZSTD_isError(size) != 0 || size >= raw.size()) return std::string(raw);
  packed.resize(size);
  return packed;
}

std::string unpack(std::string_view stored, std::uint64_t raw_size, std::uint64_t hash) {
  std::string raw;
  if (stored.size() == raw_size) {
    raw = stored;
  } else {
    raw.resize(static_cast<std::size_t>(raw_size));
    const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0 || size != raw.size())
      throw TraceError("the compressed bytes are damaged");
  }
  if (xxh64(raw) != hash) throw TraceError("the checksum is wrong");
  return raw;
}

}  // namespace foretrace::ftrace
