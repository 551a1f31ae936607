// Measures the cost of recording: reading a record of CUPTI's (off the program's threads), an NVTX
// range (on them), and turning ten million kernels and their calls into a trace.
//
//     collect_bench [kernels]

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "arguments.h"
#include "collect/spool/spool_writer.h"
#include "collect/standin/records.h"
#include "collect/standin/standin.h"
#include "foretrace/import.h"
#include "foretrace/trace.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// 600 names of 210 characters on average, as long as names of templates.
std::vector<std::string> kernel_names() {
  std::mt19937 random(1);
  std::vector<std::string> names;
  for (int i = 0; i < 600; ++i) {
    std::string name = "void at::native::vectorized_elementwise_kernel<" + std::to_string(i) + ", ";
    const std::size_t size = 120 + random() % 180;
    while (name.size() < size)
      name += "at::native::detail::Functor<" + std::to_string(random() % 50) + ">, ";
    names.push_back(name + ">(int)");
  }
  return names;
}

/// A step is 2,500 kernels, always in the same order.
constexpr std::size_t kStep = 2500;
std::vector<std::uint32_t> order_of_step() {
  std::mt19937 random(2);
  std::vector<std::uint32_t> order(kStep);
  for (std::uint32_t& name : order) name = static_cast<std::uint32_t>(random() % 600);
  return order;
}

void measure_records(const char* library, const char* cupti, std::uint64_t count) {
  setenv("FORETRACE_CUPTI", cupti, 1);
  void* collector = dlopen(library, RTLD_NOW);
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(collector, "InitializeInjection"));
  if (initialize == nullptr) std::abort();
  initialize();
  const auto* driver =
      static_cast<const standin::Driver*>(dlsym(dlopen(cupti, RTLD_NOW), standin::kDriverSymbol));
  driver->init(1);
  static const std::vector<std::string> names = kernel_names();
  const std::vector<std::uint32_t> order = order_of_step();
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    const standin::Launch launch{
        names[order[i % kStep]].c_str(), 0, 7, 20, false, {100, 1, 1}, {128, 1, 1}};
    driver->launch(&launch);
  }
  const double launching = seconds_since(start);
  driver->synchronize_device(0);
  const auto records = [&](auto member) {
    return driver->counts(standin::kConcurrentKernel).*member +
           driver->counts(standin::kRuntime).*member;
  };
  while (records(&standin::Counts::delivered) < records(&standin::Counts::written)) usleep(1000);
  const std::uint64_t delivered = records(&standin::Counts::delivered);
  std::printf(
      "read records       %.1f ns a record, %lu records, %lu dropped; played launch %.0f ns\n",
      static_cast<double>(driver->client_ns()) / static_cast<double>(delivered), delivered,
      records(&standin::Counts::dropped), launching * 1e9 / static_cast<double>(count));
}

void measure_ranges(const char* library, std::uint64_t count) {
  setenv("NVTX_INJECTION64_PATH", library, 1);
  nvtxRangePushA("first");
  nvtxRangePop();
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    nvtxRangePushA("aten::addmm");
    nvtxRangePop();
  }
  std::printf("NVTX push and pop  %.1f ns a range\n",
              seconds_since(start) * 1e9 / static_cast<double>(count));
}

/// Kernels of a busy stream, each with its call.
std::string write_spool(const std::string& folder, std::uint64_t count) {
  using namespace foretrace;
  static collect::SpoolWriter writer;  // Static, because it is large.
  if (writer.open(folder.c_str()) != 0) std::abort();
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : kernel_names()) numbers.push_back(writer.texts.number(name));
  const std::vector<std::uint32_t> order = order_of_step();
  std::mt19937 random(3);
  std::vector<char> rows;
  std::uint32_t used = 0;
  std::uint64_t device_time = 1'000'000;
  std::uint64_t host_time = 900'000;
  const auto put = [&](const auto& row) {
    const auto* bytes = reinterpret_cast<const char*>(&row);
    rows.insert(rows.end(), bytes, bytes + sizeof row);
    ++used;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t name = order[i % kStep];
    spool::Call call;
    call.domain = 2;
    call.callback = 211;
    call.thread = 4711;
    call.correlation = static_cast<std::uint32_t>(i + 1);
    call.start = host_time += 2500 + random() % 900;
    call.end = host_time += 2300 + random() % 700;
    put(call);
    spool::ShapedKernel kernel;
    kernel.correlation = call.correlation;
    kernel.start = device_time += 700 + random() % 400;
    kernel.end = device_time += 2000 + 97 * name + random() % 600;
    kernel.name = numbers[name];
    kernel.context = 1;
    kernel.stream = 7;
    kernel.grid_x = 100 + name;
    kernel.block_x = 128;
    kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
    put(kernel);
    if (rows.size() < std::size_t{256} << 10 && i + 1 < count) continue;
    writer.write_rows(rows.data(), rows.size(), used, collect::SpoolWriter::Timeout::recorder);
    rows.clear();
    used = 0;
  }
  writer.finish();
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".spool") return entry.path().string();
  }
  std::abort();
}

void measure_files(std::uint64_t count) {
  std::string folder = (fs::temp_directory_path() / "foretrace-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  auto start = Clock::now();
  const std::string spool = write_spool(folder, count);
  const auto records = static_cast<double>(2 * count);
  std::printf("write rows         %.1f ns a row, %.0f MB\n", seconds_since(start) * 1e9 / records,
              static_cast<double>(fs::file_size(spool)) / 1e6);
  start = Clock::now();
  const foretrace::Trace trace = foretrace::import_trace(spool);
  const double reading = seconds_since(start);
  start = Clock::now();
  foretrace::write_ftrace(trace, folder + "/out.ftrace");
  const double writing = seconds_since(start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "spool to .ftrace   %.2f M records/s (read %.2f s, write %.2f s), %.0f MB for %lu kernels "
      "and their calls, peak %.0f MB\n",
      records / 1e6 / (reading + writing), reading, writing,
      static_cast<double>(fs::file_size(folder + "/out.ftrace")) / 1e6, count,
      static_cast<double>(usage.ru_maxrss) / 1e3);
  fs::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[kernels]");
  const auto count = arguments.number<std::uint64_t>(1, 10'000'000);
  std::string folder = (fs::temp_directory_path() / "foretrace-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  setenv("FORETRACE_SPOOL", folder.c_str(), 1);
  measure_records(COLLECT_LIBRARY, STANDIN_LIBRARY, std::min<std::uint64_t>(count, 1'000'000));
  measure_ranges(COLLECT_LIBRARY, std::min<std::uint64_t>(count, 2'000'000));
  measure_files(count);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return 0;
}
