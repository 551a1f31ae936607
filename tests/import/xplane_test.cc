#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "foretrace/import.h"
#include "import/files.h"
#include "import/protobuf_bytes.h"
#include "import/recorded.h"

namespace foretrace {
namespace {

/// An entry of a plane's map of names: of events (field 4) or of stats (5).
std::string named(int field, std::uint64_t id, std::string_view name) {
  return proto_text(field,
                    proto_number(1, id) + proto_text(2, proto_number(1, id) + proto_text(2, name)));
}
/// A stat with a number, or with a text.
std::string stat(std::uint64_t id, std::uint64_t number) {
  return proto_number(1, id) + proto_number(3, number);
}
std::string stat(std::uint64_t id, std::string_view text) {
  return proto_number(1, id) + proto_text(5, text);
}
/// An event at a time in nanoseconds.
std::string event(std::uint64_t name, std::uint64_t start, std::uint64_t length,
                  const std::vector<std::string>& stats = {}) {
  std::string bytes =
      proto_number(1, name) + proto_number(2, start * 1000) + proto_number(3, length * 1000);
  for (const std::string& one : stats) bytes += proto_text(4, one);
  return proto_text(4, bytes);
}
std::string line(std::uint64_t id, std::string_view name, const std::string& events,
                 std::uint64_t start = 100) {
  return proto_text(3, proto_number(1, id) + proto_text(2, name) + proto_number(3, start) + events);
}
std::string plane(std::string_view name, const std::string& rest) {
  return proto_text(1, proto_number(1, 1) + proto_text(2, name) + rest);
}

const std::string kStatNames = named(5, 1, "correlation_id") + named(5, 2, "kernel_details") +
                               named(5, 3, "step_num") + named(5, 4, "gpu_device_name") +
                               named(5, 5, "memory_size") + named(5, 6, "process_id") +
                               named(5, 7, "profile_start_time") + named(5, 8, "memcpy_details");

std::string device_plane(std::string_view name = "/device:GPU:0") {
  return plane(name,
               proto_text(6, stat(4, "H200")) + proto_text(6, stat(5, 1 << 30)) +
                   line(14, "Stream #14(Compute)",
                        event(1, 50, 10, {stat(1, 8), stat(2, "regs:9 grid:4,2,1 block:64,1,1")}) +
                            event(2, 70, 5, {stat(1, 9), stat(8, "kind_src:device size:64")})) +
                   line(15, "XLA Ops", event(3, 50, 10)) + named(4, 1, "fusion") +
                   named(4, 2, "MemcpyD2H") + named(4, 3, "fusion.1") + kStatNames);
}
std::string host_plane() {
  return plane("/host:CPU", proto_text(6, stat(6, 863)) +
                                line(7, "python",
                                     event(1, 0, 90, {stat(3, 5)}) + event(2, 20, 4, {stat(1, 8)}) +
                                         event(3, 10, 2)) +
                                named(4, 1, "train") + named(4, 2, "cuLaunchKernel") +
                                named(4, 3, "$train.py:3 step") + kStatNames);
}

class XPlanes : public testing::Test {
 protected:
  std::string read(const std::string& bytes, const std::string& name = "vm.xplane.pb") const {
    const std::string path = folder_.write(name, bytes);
    std::string text;
    const std::string error = failure([&] { text = describe(import_trace(path)); });
    return error == "no error" ? text : error.substr(path.size() + 2);
  }
  Folder folder_;
};

const std::string kBoth =
    "annotation \"ProfilerStep#5\" 863/7 0+90\n"
    "runtime \"cuLaunchKernel\" 863/7 20+4 correlation=8\n"
    "python \"$train.py:3 step\" 863/7 10+2\n"
    "kernel \"fusion\" 0/14 50+10 correlation=8 grid=8 block=64\n"
    "copy \"MemcpyD2H\" 0/14 70+5 out bytes=64 correlation=9\n";

TEST_F(XPlanes, ReadsStreamsHostThreadsStepsAndLaunches) {
  const std::string bytes = device_plane() + host_plane() +
                            plane("Task Environment", proto_text(6, stat(7, 1000)) + kStatNames);
  EXPECT_EQ(read(bytes), kBoth);
  EXPECT_EQ(read(gzip(bytes), "vm.xplane.pb.gz"), kBoth);
  const Trace trace = import_trace(folder_ / "vm.xplane.pb");
  EXPECT_EQ(trace.format, "xplane");
  EXPECT_EQ(trace.origin_ns, 1100);
  EXPECT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads[0].name, "python");
  ASSERT_EQ(trace.properties.size(), 1U);
  EXPECT_EQ(trace.properties[0].name, "H200");
  EXPECT_EQ(trace.properties[0].memory_bytes, 1 << 30);
}

TEST_F(XPlanes, RoundsPicosecondsSoThatNeighboursStillMeet) {
  const auto exact = [](std::uint64_t start, std::uint64_t length) {
    return proto_text(4, proto_number(1, 1) + proto_number(2, start) + proto_number(3, length));
  };
  EXPECT_EQ(read(plane("/device:TPU:0",
                       line(1, "XLA Ops", exact(0, 1900) + exact(1900, 1200) + exact(3100, 900)) +
                           named(4, 1, "op")) +
                 plane("/host:CPU", "")),
            "kernel \"op\" 0/1 0+1\nkernel \"op\" 0/1 1+2\nkernel \"op\" 0/1 3+1\n");
}

TEST_F(XPlanes, SaysWhatIsMissing) {
  EXPECT_EQ(read(host_plane()),
            "annotation \"ProfilerStep#5\" 863/7 0+90\n"
            "runtime \"cuLaunchKernel\" 863/7 20+4 correlation=8\n"
            "python \"$train.py:3 step\" 863/7 10+2\n"
            "! no device was recorded, only the host: there was none, or its profiler (libcupti, "
            "rocprofiler) was not found: 1\n");
  const std::string cut = (device_plane() + host_plane()).substr(0, device_plane().size() + 60);
  EXPECT_EQ(read(cut),
            "kernel \"fusion\" 0/14 0+10 correlation=8 grid=8 block=64\n"
            "copy \"MemcpyD2H\" 0/14 20+5 out bytes=64 correlation=9\n"
            "! the trace is cut off in a plane; everything before that was read: 1 (at byte " +
                std::to_string(device_plane().size() + 3) + ")\n");
  EXPECT_EQ(read(device_plane()),
            "kernel \"fusion\" 0/14 0+10 correlation=8 grid=8 block=64\n"
            "copy \"MemcpyD2H\" 0/14 20+5 out bytes=64 correlation=9\n"
            "! there is no plane of the host: the file is cut off between two planes, or only "
            "devices were recorded: 1\n");
  EXPECT_EQ(read(device_plane().substr(0, 80)),
            "must contain planes, but ends or is damaged within the first one");
  EXPECT_EQ(read(plane("/host:CPU", "")), "must contain events, but its 1 planes have none");
  EXPECT_EQ(read(device_plane() + host_plane() + device_plane()),
            "must be the profile of one host, but has /device:GPU:0 twice, as files of several "
            "hosts in one do; give the folder with one .xplane.pb file a host");
}

TEST_F(XPlanes, AnyCutOrFlippedByteIsAnErrorOrATrace) {
  const std::string bytes = device_plane() + host_plane();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    read(bytes.substr(0, i));
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    read(flipped);
  }
}

}  // namespace
}  // namespace foretrace
