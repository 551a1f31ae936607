// Every defect that was seen in a real file: the readable parts are read, and the rest is counted
// with its place.

#include <gtest/gtest.h>

#include "recorded.h"

namespace foretrace {
namespace {

/// An operator that starts at `at` us and takes 1 us.
std::string op(const std::string& name, int at) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 2, "ts": )" +
         std::to_string(at) + R"(, "dur": 1})";
}

TEST(KinetoDefects, QuotesThatAreNotEscaped) {
  EXPECT_EQ(recorded("[" + op("aten::mm", 1) + ", " + op(R"(lambda "x": "y", z)", 2) + "]"), R"(
op "aten::mm" 1/2 0+1000
op "lambda "x": "y", z" 1/2 1000+1000
! quotes inside a string that are not escaped: 4 (in the event at byte 90)
)");
}

TEST(KinetoDefects, ControlCharactersInNames) {
  EXPECT_EQ(recorded("[" + op("two\nlines", 1) + "]"), R"(
op "two
lines" 1/2 0+1000
! control characters inside a string: 1 (in the event at byte 1)
)");
}

TEST(KinetoDefects, EscapesAreUndone) {
  EXPECT_EQ(recorded("[" + op(R"(a\"b\\c\/\u0041\u00e9\ud83d\ude00\n)", 1) + "]"),
            "\nop \"a\"b\\c/A\xc3\xa9\xf0\x9f\x98\x80\n\" 1/2 0+1000\n");
}

TEST(KinetoDefects, InvalidUtf8) {
  EXPECT_EQ(recorded("[" +
                     op("a\xff"
                        "b",
                        1) +
                     ", " + op("\xc3\xa9", 1) + "]"),
            "\nop \"a\xef\xbf\xbd"
            "b\" 1/2 0+1000\nop \"\xc3\xa9\" 1/2 0+1000\n"
            "! strings that are not valid UTF-8: 1 (at byte 1)\n");
}

TEST(KinetoDefects, CommasInFrontOfBrackets) {
  EXPECT_EQ(
      recorded(
          R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
    "args": {"stream": 7,},},],})"),
      R"(
kernel "k" 0/7 0+1000
! commas before a closing bracket: 2 (in the event at byte 17)
)");
}

TEST(KinetoDefects, NumbersThatAreNone) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 1, "dur": NaN,
     "args": {"memory bandwidth (GB/s)": Infinity, "bytes": 3}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": NaN, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "l", "pid": 0, "tid": 7, "ts": 1e30, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "m", "pid": 0, "tid": 7, "ts": 2, "dur": -Infinity}
  ])x"),
            R"(
copy "Memcpy HtoD" 0/7 0+0 in bytes=3
kernel "m" 0/7 1000+0
! events whose time is not a number, left out: 2 (at byte 172)
! events whose duration is not a number, read as 0: 2 (at byte 6)
! numbers that are NaN or Infinity: 4 (in the event at byte 6)
)");
}

TEST(KinetoDefects, MissingAndNegativeDurations) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1},
    {"ph": "X", "cat": "kernel", "name": "l", "pid": 0, "tid": 7, "ts": 1, "dur": -3},
    {"ph": "X", "cat": "kernel", "name": "m", "pid": 0, "tid": 7}
  ])"),
            R"(
kernel "k" 0/7 0+0
kernel "l" 0/7 0+0
! events without a time, left out: 1 (at byte 169)
! events without a duration, read as 0: 1 (at byte 6)
! events with a negative duration, read as 0: 1 (at byte 82)
)");
}

TEST(KinetoDefects, RecordsThatWereNeverTimed) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 0},
    {"ph": "X", "cat": "kernel", "name": "l", "pid": 0, "tid": 7, "ts": 1669783687464181, "dur": 3}
  ])"),
            R"(
kernel "l" 0/7 0+3000
! events at time 0, which were never timed, left out: 1
)");
}

TEST(KinetoDefects, TimeZeroIsATimeWhereOthersAreNear) {
  EXPECT_EQ(recorded("[" + op("a", 0) + "," + op("b", 100) + "]"), R"(
op "a" 1/2 0+1000
op "b" 1/2 100000+1000
)");
}

TEST(KinetoDefects, KeysThatOccurTwice) {
  EXPECT_EQ(
      recorded(
          R"([{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "dur": 2}])"),
      R"(
kernel "k" 0/7 0+2000
! keys that occur twice in an event; the last one was used: 1 (in the event at byte 1)
)");
}

TEST(KinetoDefects, AnEventThatIsNoJson) {
  EXPECT_EQ(recorded("[" + op("a", 1) + ",\n{\"ph\": \"X\", name: 3, \"args\": {\"x\": 1}},\n" +
                     op("b", 2) + "]"),
            R"(
op "a" 1/2 0+1000
op "b" 1/2 1000+1000
! events that are not JSON, left out: 1 (at byte 83)
)");
}

TEST(KinetoDefects, AnEventWithABracketTooFew) {
  EXPECT_EQ(recorded("[" + op("a", 1) + ", {\"ph\": \"X\", \"args\": {\"x\": [1, 2}}, " +
                     op("b", 2) + "]"),
            R"(
op "a" 1/2 0+1000
op "b" 1/2 1000+1000
! events that are not JSON, left out: 1 (at byte 83)
)");
}

TEST(KinetoDefects, CallsThatShareAnId) {
  const auto call = [](int start) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "c", "pid": 1, "tid": 2, "ts": )" +
           std::to_string(start) + R"(, "dur": 1, "args": {"correlation": 4}})";
  };
  EXPECT_EQ(recorded("[" + call(1) + "," + call(2) + "]"), R"(
runtime "c" 1/2 0+1000 correlation=4
runtime "c" 1/2 1000+1000 correlation=4
! calls with the correlation id of another call: 1
)");
}

// Ranges count as copies only where calls or kernels show that events were written twice.
TEST(KinetoDefects, ExactCopiesOfEvents) {
  const std::string call =
      R"({"ph": "X", "cat": "cuda_runtime", "name": "c", "pid": 1, "tid": 2, "ts": 1, "dur": 1,
    "args": {"correlation": 4}})";
  const std::string range =
      R"({"ph": "X", "cat": "user_annotation", "name": "r", "pid": 1, "tid": 2, "ts": 1, "dur": 2})";
  EXPECT_EQ(recorded("[" + range + "," + call + "," + range + "," + call + "]"), R"(
annotation "r" 1/2 0+2000
runtime "c" 1/2 0+1000 correlation=4
! exact copies of events, left out: 2
)");
  EXPECT_EQ(recorded("[" + range + "," + range + "]"), R"(
annotation "r" 1/2 0+2000
annotation "r" 1/2 0+2000
)");
}

TEST(KinetoDefects, AMissingComma) {
  EXPECT_EQ(recorded("[" + op("a", 1) + " " + op("b", 2) + "]"), R"(
op "a" 1/2 0+1000
op "b" 1/2 1000+1000
! commas missing between events: 1
)");
}

TEST(KinetoDefects, TextThatEndsInTheMiddleOfAnEvent) {
  const std::string whole = R"({"traceEvents": [)" + op("a", 1) + ", " + op("b", 2);
  EXPECT_EQ(recorded(whole.substr(0, whole.size() - 5)), R"(
op "a" 1/2 0+1000
! the trace is cut off in the middle of an event; everything before that was read: 1 (at byte 99)
)");
}

TEST(KinetoDefects, EveryTruncationIsReadOrRefused) {
  const std::string whole = R"({"schemaVersion": 1, "traceEvents": [)" + op("a", 1) + ", " +
                            op("b", 2) + R"(], "distributedInfo": {"rank": 1, "world_size": 2}})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      const Trace trace = read_text(whole.substr(0, size), 64);
      EXPECT_GE(trace.hosts.size(), 1U) << size;
      EXPECT_FALSE(trace.notes.empty()) << size;
    } catch (const TraceError&) {
      EXPECT_LT(size, whole.find("b")) << size;
    }
  }
}

TEST(KinetoDefects, CompressedDataThatEndsEarlyIsTheReason) {
  EXPECT_EQ(recorded("[" + op("a", 1) + ", {\"ph\"", "the gzip data ends in the middle"), R"(
op "a" 1/2 0+1000
! the trace is cut off in the middle of an event: the gzip data ends in the middle; everything before that was read: 1 (at byte 83)
)");
}

TEST(KinetoDefects, WhatFollowsTheTraceIsNotRead) {
  EXPECT_EQ(recorded("[" + op("a", 1) + "] x"), R"(
op "a" 1/2 0+1000
! text after the end of the trace, not read: 1 (at byte 83)
)");
}

TEST(KinetoDefects, EventsThatATraceHasNoPlaceFor) {
  EXPECT_EQ(recorded(R"([)" + op("a", 1) +
                     R"(, {"ph": "X", "cat": "weather", "name": "rain", "ts": 1, "dur": 1},
    {"ph": "D", "name": "x"}, 17, [1, {"a": "]"}], "text", {"ph": "C", "name": "watts", "ts": 1}])"),
            R"(
op "a" 1/2 0+1000
! events of kinds that a trace has no place for: 2 (at byte 153)
! events of an unknown category, left out: 1 (at byte 83)
! elements of the event list that are not events: 3 (at byte 179)
)");
}

TEST(KinetoDefects, FiftyLevelsAreFineAThousandAreNot) {
  const auto nested = [](std::size_t levels) {
    return R"([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1, "args": {"x": )" +
           std::string(levels, '[') + std::string(levels, ']') + "}}]";
  };
  EXPECT_EQ(recorded(nested(50)), "\nop \"a\" 1/2 0+1000\n");
  EXPECT_EQ(recorded(nested(1000)), "values nest deeper than 64 levels, at byte 1");
}

TEST(KinetoDefects, MoreThreadsThanATraceCanNumber) {
  std::string text = "[";
  for (int i = 0; i < 70000; ++i) {
    text += R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"ts":1,"dur":1,"tid":)" +
            std::to_string(i) + "},";
  }
  const Trace trace = read_text(text + "]");
  EXPECT_EQ(trace.hosts.size(), 70000U);
  EXPECT_EQ(trace.threads.size(), 65535U);
  EXPECT_EQ(
      trace.notes.count("records of more than 65535 threads or streams, all put on the last one"),
      4465);
}

TEST(KinetoDefects, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "must be a trace, but is empty"},
      {" \n", "must be a trace, but is empty"},
      {"hello", "must be JSON, but starts with other bytes"},
      {"{}", "must have \"traceEvents\" or be a list of events, but is an object without keys"},
      {R"({"schema": "1.0.1", "nodes": [{"id": 1}]})",
       "must have \"traceEvents\" or be a list of events, but is an object with schema, nodes"},
      {"{", "must contain events, but ends before the first one"},
      {"[]", "must contain events, but its list of events is empty"},
      {R"({"traceEvents": [)", "must contain events, but ends before the first one"},
      {R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}, 3]})",
       "must contain events of operators, calls or kernels, but none of its 2 elements is one"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(recorded(text), message) << text;
}

}  // namespace
}  // namespace foretrace
