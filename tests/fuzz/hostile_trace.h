#pragma once

// A few training steps of a program whose names come from the input: bytes that are no text, escape
// sequences of terminals, commands of continuous integration, markup.

#include <cstdint>
#include <string>
#include <string_view>

#include "foretrace/trace.h"
#include "fuzz/supply.h"

namespace foretrace {

constexpr const char* kHostile[] = {"\n::error file=a.py,line=1::forged",
                                    "::stop-commands::x",
                                    "\r##[group]forged",
                                    "##vso[task.complete]",
                                    "\x1b[31mred\x1b[0m",
                                    "\x1b]0;title\a",
                                    "\xc2\x9b"
                                    "31m",
                                    "\xe2\x80\xae"
                                    "gpj",
                                    "\xe2\x80\xa8::warning::line",
                                    "\xe2\x81\xa6isolated",
                                    "<script>alert(1)</script>",
                                    "</script><img src=x onerror=alert(1)>",
                                    "\"><img src=x onerror=alert(1)>",
                                    "a|b\n|---|\n|forged|",
                                    "[x](javascript:alert(1))",
                                    "`\n# heading\n`",
                                    "=HYPERLINK(\"http://x\")",
                                    "-1+1",
                                    "\xff\xfe\x80",
                                    "\xc3",
                                    "\b\b\b\b",
                                    "\x7f\t\v\f",
                                    "a,b\"c'd;e",
                                    "]]><x/>",
                                    "  ::notice::far from the margin",
                                    "&amp;&#10;::debug::x"};

/// A name like `usual`, or arbitrary bytes.
inline std::string hostile_text(Supply& supply, std::string_view usual) {
  std::string text;
  switch (supply.below(6)) {
    case 0:
      text = usual;
      break;
    case 1:
      text = supply.one_of(kHostile);
      break;
    case 2:
      text = std::string(usual) + supply.one_of(kHostile);
      break;
    case 3:
      text = supply.one_of(kHostile);
      text += std::string(supply.below(3), ' ') + supply.one_of(kHostile);
      break;
    case 4:
      for (std::uint32_t i = supply.below(200); i > 0; --i)
        text += i % 9 == 0 ? "::error::x " : usual;
      break;
    default:
      for (std::uint32_t i = supply.below(24); i > 0; --i) text += static_cast<char>(supply.next());
  }
  return text;
}

/// Writes what each step does: ops on one thread that launch kernels and copies, with blocks of
/// memory that are allocated and freed.
class HostileTrace {
 public:
  explicit HostileTrace(Supply& supply) : supply_(supply) {}

  Trace write() {
    trace_.format = "kineto";
    trace_.threads = {{.process = 1, .id = 1, .name = text("python")}};
    trace_.streams = {{0, 7}, {0, 20}};
    trace_.properties = {{.ordinal = 0, .name = text("Tesla V100-SXM2-16GB")}};
    trace_.metadata = {{text("host_name"), "\"x\""}};
    trace_.notes.add(Severity::warning, "odd records", text("record 7"));
    const std::uint32_t steps = 1 + supply_.below(4);
    for (std::uint32_t step = 0; step < steps; ++step) add_step(step);
    return std::move(trace_);
  }

 private:
  std::string text(std::string_view usual) { return hostile_text(supply_, usual); }
  NameId name(std::string_view usual) { return trace_.names.intern(text(usual)); }

  std::size_t host(HostKind kind, std::string_view usual, std::int64_t duration) {
    HostRecord record{.start_ns = now_, .duration_ns = duration, .name = name(usual)};
    record.kind = kind;
    trace_.hosts.push_back(record);
    return trace_.hosts.size() - 1;
  }

  void device(DeviceKind kind, std::string_view usual, std::int64_t duration) {
    host(HostKind::runtime, kind == DeviceKind::copy ? "cudaMemcpyAsync" : "cudaLaunchKernel",
         2000);
    // A call with another name launches nothing.
    if (supply_.below(8) != 0)
      trace_.hosts.back().name =
          trace_.names.intern(kind == DeviceKind::copy ? "cudaMemcpyAsync" : "cudaLaunchKernel");
    trace_.hosts.back().correlation = ++correlation_;
    DeviceRecord record{.start_ns = now_ + 5000, .duration_ns = duration, .name = name(usual)};
    record.kind = kind, record.correlation = correlation_;
    if (kind == DeviceKind::copy) record.direction = CopyDirection::in, record.bytes = 4096;
    trace_.devices.push_back(record);
    now_ += 4000;
  }

  void op(std::string_view usual, std::int64_t kernel) {
    const std::size_t begun = host(HostKind::op, usual, 20'000);
    OpDetails details;
    details.shapes = trace_.names.intern("[[4, 8], [8, 2]]");
    details.stack =
        trace_.names.intern(text("train.py(12): forward") + ";" + text("main.py(3): f"));
    trace_.hosts[begun].details = static_cast<std::uint32_t>(trace_.op_details.size());
    trace_.op_details.push_back(details);
    memory(1 << 20);
    now_ += 2000;
    device(DeviceKind::kernel, "volta_sgemm_128x64", kernel);
    if (supply_.below(2) == 0) memory(-(1 << 20));
    now_ = trace_.hosts[begun].start_ns + 21'000;
  }

  void memory(std::int64_t bytes) {
    MemoryRecord record;
    record.time_ns = now_ + 500, record.bytes = bytes, record.device = 0;
    record.address = bytes > 0 ? ++address_ << 20 : address_ << 20;
    record.total_allocated = allocated_ += bytes;
    record.total_reserved = 64 << 20;
    record.stack = name("train.py:12 forward;main.py:3 f");
    trace_.memory.push_back(record);
  }

  void add_step(std::uint32_t number) {
    const std::int64_t begin = now_;
    const std::size_t marker = host(HostKind::annotation, "", 0);
    if (supply_.below(8) != 0)
      trace_.hosts[marker].name = trace_.names.intern("ProfilerStep#" + std::to_string(number));
    now_ += 1000;
    host(HostKind::annotation, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 9000);
    now_ += 10'000;
    device(DeviceKind::copy, "Memcpy HtoD (Pageable -> Device)", 3000);
    op("aten::conv2d", 30'000);
    op("aten::relu", 8000);
    op("autograd::engine::evaluate_function: MmBackward0", 25'000);
    host(HostKind::annotation, "Optimizer.step#SGD.step", 22'000);
    op("aten::add_", 4000);
    host(HostKind::runtime, "cudaStreamSynchronize", 40'000);
    now_ += 41'000;
    trace_.hosts[marker].duration_ns = now_ - begin;
    now_ += 500;
  }

  Supply& supply_;
  Trace trace_;
  std::int64_t now_ = 0, allocated_ = 0;
  std::uint64_t address_ = 16;
  std::uint32_t correlation_ = 0;
};

}  // namespace foretrace
