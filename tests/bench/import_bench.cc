// How fast traces are read: Kineto JSON plain and compressed, and our own file; and how much memory
// that takes beside the records themselves.
//
//     import_bench [trace.json[.gz]] [megabytes]
//
// The events of the trace are repeated until the JSON has this many megabytes (250 by default).
// Without a trace it is hta-ddp-v100-mem of FORETRACE_CORPUS, or a made-up one. Each reading runs
// in a process of its own; the best of five counts. For comparison: the fastest reader known (ISA-L
// and simdjson, fields of each event by name, names interned) reads 950 MB/s of the same trace,
// compressed, on one core.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "arguments.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {
namespace {

constexpr double kMega = 1e6;

struct Measured {
  double wall = 0;
  double cpu = 1e9;
  double peak_bytes = 0;  ///< Peak of the whole process.
  double record_bytes = 0;
  double records = 0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

template <class Row>
double bytes_of(const std::vector<Row>& rows) {
  return static_cast<double>(rows.size() * sizeof(Row));
}

/// Runs in a process of its own, so that the peak memory is that of one reading.
Measured measure_once(const std::function<Trace()>& read) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const auto begin = std::chrono::steady_clock::now();
    const Trace trace = read();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const Measured measured{wall.count(), seconds(usage.ru_utime) + seconds(usage.ru_stime),
                            static_cast<double>(usage.ru_maxrss) * 1024,
                            bytes_of(trace.hosts) + bytes_of(trace.devices) +
                                bytes_of(trace.syncs) + bytes_of(trace.memory) +
                                bytes_of(trace.links) + bytes_of(trace.op_details) +
                                bytes_of(trace.collectives),
                            static_cast<double>(trace.record_count())};
    const bool sent = write(ends[1], &measured, sizeof measured) == sizeof measured;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  const bool received = ::read(ends[0], &measured, sizeof measured) == sizeof measured;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!received) throw Error("the reading process failed");
  return measured;
}

Measured measure(const std::function<Trace()>& read) {
  Measured best;
  for (int i = 0; i < 5; ++i) {
    const Measured one = measure_once(read);
    if (one.cpu < best.cpu) best = one;
  }
  return best;
}

/// Three operators, each with a call and a kernel, as PyTorch writes them.
std::string made_up_events() {
  std::string events;
  for (int i = 0; i < 3; ++i) {
    const std::string id = std::to_string(1000 + i);
    const std::string at = std::to_string(1669783687464100 + 100 * i);
    events +=
        (i == 0 ? "" : ",") + std::string(R"(
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 783658, "tid": 785244,
    "ts": )") +
        at + R"(, "dur": 63,
    "args": { "External id": )" +
        id +
        R"(,"Ev Idx": 15, "Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"] }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 783658, "tid": 785244,
    "ts": )" +
        at + R"(, "dur": 9,
    "args": { "External id": )" +
        id + R"(, "cbid": 211, "correlation": )" + id + R"( }
  },
  {
    "ph": "X", "cat": "kernel", "name": "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128>", "pid": 0, "tid": 7,
    "ts": )" +
        at + R"(, "dur": 51,
    "args": { "External id": )" +
        id + R"(, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": )" + id +
        R"(, "registers per thread": 122, "shared memory": 65536, "blocks per SM": 0.2, "warps per SM": 1.6, "grid": [4, 4, 1], "block": [256, 1, 1] }
  })";
  }
  return events;
}

std::string events_of(const std::string& path) {
  if (path.empty()) return made_up_events();
  const auto source = TraceFile(path).open();
  std::string text;
  std::string chunk(1 << 20, '\0');
  while (const std::size_t got = source->read(chunk.data(), chunk.size()))
    text.append(chunk, 0, got);
  const std::size_t list = text.find('[', text.find("\"traceEvents\""));
  return text.substr(list + 1, text.rfind(']') - list - 1);
}

/// Writes both files at once; returns the size of the JSON.
double write_traces(const std::string& events, double size, const std::string& plain,
                    const std::string& packed) {
  std::FILE* json = std::fopen(plain.c_str(), "wb");
  const gzFile gz = gzopen(packed.c_str(), "wb6");
  double written = 0;
  const auto put = [&](const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), json) != text.size())
      throw Error("the disk is full");
    gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
    written += static_cast<double>(text.size());
  };
  put("{\"schemaVersion\": 1, \"traceEvents\": [");
  for (bool first = true; written < size; first = false) {
    if (!first) put(",");
    put(events);
  }
  put("]}");
  std::fclose(json);
  gzclose(gz);
  return written;
}

void print(const char* what, const Measured& measured, double json_bytes) {
  std::printf("%-22s %7.3f s %7.3f s %9.0f %9.0f %9.2f %9.1f MB %9.1f MB %6.2f\n", what,
              measured.wall, measured.cpu, json_bytes / kMega / measured.wall,
              json_bytes / kMega / measured.cpu, measured.records / kMega / measured.cpu,
              measured.peak_bytes / kMega, measured.record_bytes / kMega,
              measured.peak_bytes / measured.record_bytes);
}

void run(const std::string& path, double megabytes) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("foretrace-bench-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string json = folder / "trace.json";
  const std::string gz = folder / "trace.json.gz";
  const std::string own = folder / "trace.ftrace";
  const double size = write_traces(events_of(path), megabytes * kMega, json, gz);
  std::printf("%s, repeated to %.0f MB of JSON (%.1f MB as .gz)\n",
              path.empty() ? "made-up events" : path.c_str(), size / kMega,
              static_cast<double>(std::filesystem::file_size(gz)) / kMega);
  std::printf("%-22s %9s %9s %9s %9s %9s %12s %12s %6s\n", "", "wall", "cpu", "MB/s wall",
              "MB/s cpu", "M rec/s", "peak memory", "records", "ratio");
  print("Kineto .json", measure([&] { return import_trace(json); }), size);
  print("Kineto .json.gz", measure([&] { return import_trace(gz); }), size);
  print("writing .ftrace, too", measure([&] {
          Trace trace = import_trace(gz);
          write_ftrace(trace, own);
          return trace;
        }),
        size);
  print(".ftrace", measure([&] { return read_ftrace(own); }), size);
  std::printf(".ftrace has %.1f MB\n",
              static_cast<double>(std::filesystem::file_size(own)) / kMega);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[trace] [megabytes]");
  const auto megabytes = arguments.number<std::uint32_t>(2, 250);
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  const std::string usual =
      corpus == nullptr ? "" : std::string(corpus) + "/hta-ddp-v100-mem/df_index_resolver.json.gz";
  try {
    foretrace::run(arguments.path(1, usual.c_str()), megabytes);
  } catch (const foretrace::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
