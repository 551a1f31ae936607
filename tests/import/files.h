#pragma once

// Bytes for tests, compressed and packed as the usual tools do it.

#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "import/recorded.h"
#include "support/folder.h"

namespace foretrace {

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

inline std::string tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out;
  for (const auto& [name, bytes] : members) {
    char header[512] = {};
    std::snprintf(header, 100, "%s", name.c_str());
    std::snprintf(header + 100, 8, "0000644");
    std::snprintf(header + 124, 12, "%011zo", bytes.size());
    std::snprintf(header + 136, 12, "%011o", 0);
    header[156] = '0';
    std::memcpy(header + 257, "ustar\00000", 8);
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 8, "%06o", sum);
    out.append(header, 512);
    out += bytes;
    out.resize((out.size() + 511) / 512 * 512, '\0');
  }
  return out + std::string(1024, '\0');
}

/// The message of the TraceError that `action` throws, or "no error".
template <class Action>
std::string failure(Action&& action) {
  try {
    action();
  } catch (const TraceError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace foretrace
