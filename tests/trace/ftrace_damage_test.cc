// A damaged or incomplete file is refused with its place, and never read as something else.

#include <gtest/gtest.h>

#include <random>

#include "foretrace/error.h"
#include "trace/ftrace_bytes.h"
#include "trace/random_trace.h"

namespace foretrace {
namespace {

std::string small_file() {
  Trace trace;
  trace.streams.push_back({.device = 0, .id = 7});
  for (int i = 0; i < 40; ++i) {
    trace.devices.push_back(
        {.start_ns = i * i, .duration_ns = 5, .name = trace.names.intern("kernel")});
  }
  return to_ftrace(trace);
}

std::string refusal(const std::string& bytes) {
  try {
    from_ftrace(bytes);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "read";
}

TEST(FtraceDamage, EveryTruncationIsRefused) {
  const std::string whole = small_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size)), "read") << size;
  }
}

TEST(FtraceDamage, EveryFlippedBitIsRefused) {
  const std::string whole = small_file();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    if (bit / 8 >= 12 && bit / 8 < 16) continue;  // Reserved.
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(refusal(damaged), "read") << "bit " << bit;
  }
}

TEST(FtraceDamage, NoiseBehindTheMagicIsRefused) {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    std::string bytes = small_file();
    for (std::size_t i = 16; i < bytes.size() - 8; ++i) {
      if (random() % 50 == 0) bytes[i] = static_cast<char>(random());
    }
    EXPECT_TRUE(bytes == small_file() || refusal(bytes) != "read") << run;
  }
}

TEST(FtraceDamage, SaysWhatIsWrong) {
  const std::string whole = small_file();
  std::string newer = whole;
  newer[8] = 2;
  std::string section = whole;
  section[20] = static_cast<char>(section[20] ^ 1);
  const std::pair<std::string, std::string> cases[] = {
      {"", "must be a .ftrace file, but starts with other bytes"},
      {"{\"traceEvents\": []}", "must be a .ftrace file, but starts with other bytes"},
      {whole.substr(0, whole.size() - 1), "must be a whole .ftrace file, but is cut off"},
      {newer, "must be version 1 of .ftrace, but is version 2, written by a newer Foretrace"},
      {section, "names.text at byte 17: the checksum is wrong"},
  };
  for (const auto& [bytes, message] : cases) EXPECT_EQ(refusal(bytes), message);
}

TEST(FtraceDamage, ARecordThatRefersToNothingIsRefused) {
  Trace trace;
  trace.devices.push_back({});
  EXPECT_EQ(refusal(to_ftrace(trace)), "devices, row 0: the stream is impossible");
  trace.streams.push_back({});
  trace.devices[0].duration_ns = -1;
  EXPECT_EQ(refusal(to_ftrace(trace)), "devices, row 0: the duration is impossible");
}

}  // namespace
}  // namespace foretrace
