// Checks that the example in traces/README.md is the output of write_ftrace().

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "foretrace/error.h"
#include "trace/ftrace_bytes.h"

namespace foretrace {
namespace {

/// One kernel of 3 us on stream 7 of device 0.
Trace example() {
  Trace trace;
  trace.format = "kineto";
  trace.origin_ns = 1000000;
  trace.streams.push_back({.device = 0, .id = 7});
  trace.devices.push_back({.start_ns = 0,
                           .duration_ns = 3000,
                           .name = trace.names.intern("gemm"),
                           .correlation = 12,
                           .grid = 64,
                           .block = 256});
  return trace;
}

std::string hex_dump(const std::string& bytes) {
  std::string dump;
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    char text[32];
    std::snprintf(text, sizeof text, "%04zx ", line);
    dump += text;
    std::string readable;
    for (std::size_t i = line; i < line + 16; ++i) {
      if (i >= bytes.size()) {
        dump += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[i]);
      std::snprintf(text, sizeof text, " %02x", byte);
      dump += text;
      readable += byte >= 0x20 && byte < 0x7f ? bytes[i] : '.';
    }
    dump += "  " + readable + "\n";
  }
  return dump;
}

TEST(FtraceExample, IsTheOneInTheDocumentation) {
  std::ifstream file(FORETRACE_SOURCE_DIR "/traces/README.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const std::string dump = hex_dump(to_ftrace(example()));
  EXPECT_NE(document.find(dump), std::string::npos) << "traces/README.md should contain\n" << dump;
}

}  // namespace
}  // namespace foretrace
