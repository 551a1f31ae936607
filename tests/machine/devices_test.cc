#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string recorded_as(std::string_view name) {
  const DeviceModel* device = device_recorded_as(name);
  return device ? device->name : "none";
}

std::string error_of(std::string_view name) {
  try {
    find_device(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Devices, AreSortedAndNamedOnce) {
  const auto names = device_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_GE(names.size(), 40u);
}

TEST(Devices, HaveSensibleFigures) {
  for (const std::string_view name : device_names()) {
    SCOPED_TRACE(name);
    const DeviceModel device = find_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_GT(device.fp32.flops_per_second, 5e12);
    EXPECT_LE(device.fp64, device.fp32);
    EXPECT_GT(device.memory_bandwidth.bytes_per_second, 2e11);
    EXPECT_GE(device.memory.count, 8LL << 30);
    EXPECT_GE(device.host_link.bytes_per_second, 1e10);
    EXPECT_LT(device.host_link, device.memory_bandwidth);
    EXPECT_GT(device.launch_latency, 0ns);
    EXPECT_TRUE(device.source.starts_with("recalled: ")) << device.source;
    // If a device has bf16 units, its fp16 units are at least as fast.
    EXPECT_LE(device.bf16, device.fp16);
    EXPECT_EQ(recorded_as(name), name);
  }
}

TEST(Devices, AreFoundByNameInAnySpelling) {
  EXPECT_EQ(find_device("a100-sxm4-40gb").name, "a100-sxm4-40gb");
  EXPECT_EQ(find_device("A100 SXM4 40GB").name, "a100-sxm4-40gb");
  EXPECT_EQ(find_device("NVIDIA A100-SXM4-40GB").name, "a100-sxm4-40gb");
  EXPECT_EQ(find_device("h200").name, "h200-sxm5-141gb");
  EXPECT_EQ(find_device("v100-sxm2-16gb").fp16, parse_throughput("125TFLOP/s"));
  EXPECT_EQ(find_device("v100-sxm2-16gb").bf16, Throughput{});
}

TEST(Devices, AreKnownAsTracesRecordThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"},
      {"A100-SXM4-80GB", "a100-sxm4-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA PG509-210", "a100-pg509-40gb"},
      {"A100-PG509-200", "a100-pg509-40gb"},
      {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"Tesla V100-DGXS-32GB", "v100-sxm2-32gb"},
      {"Tesla V100-SXM2-32GB-LS", "v100-sxm2-32gb"},
      {"Tesla V100-PCIE-32GB", "v100-pcie-32gb"},
      {"Tesla V100S-PCIE-32GB", "v100s-pcie-32gb"},
      {"NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"},
      {"NVIDIA H100 PCIe", "h100-pcie-80gb"},
      {"NVIDIA H200", "h200-sxm5-141gb"},
      {"NVIDIA B200", "b200"},
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI300X VF", "mi300x"},
      {"AMD Instinct MI250X / MI250", "mi250x"},
      {"AMD Instinct(TM) MI210", "mi210"},
      {"NVIDIA GeForce RTX 3060", "rtx-3060-12gb"},
      {"GeForce RTX 2080 Ti", "rtx-2080-ti"},
      {"Quadro GP100", "quadro-gp100"},
      {"Quadro P4000", "quadro-p4000"},
      {"Tesla T4", "t4"},
  };
  for (const auto& [recorded, name] : cases) EXPECT_EQ(recorded_as(recorded), name) << recorded;
}

TEST(Devices, OtherOnesAreNotTakenForThem) {
  for (const char* name :
       {"", "AMD Radeon Graphics", "NVIDIA", "NVIDIA GeForce RTX 3060 Laptop GPU",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H200 MIG 1g.18gb", "GRID A100-10C",
        "GRID T4-8Q", "NVIDIA H1000", "AMD Instinct MI60", "cpu"}) {
    EXPECT_EQ(recorded_as(name), "none") << name;
  }
}

TEST(Devices, SayWhichAreNear) {
  EXPECT_EQ(error_of("v100-pcie"),
            "must be a built-in device or a JSON file with one, got \"v100-pcie\" (did you mean "
            "\"v100-pcie-16gb\" or \"v100-pcie-32gb\"?)");
  EXPECT_EQ(error_of("mi300y"),
            "must be a built-in device or a JSON file with one, got \"mi300y\" (did you mean "
            "\"mi300a\"?)");
  EXPECT_EQ(
      error_of("abacus-2000-x"),
      "must be a built-in device or a JSON file with one, got \"abacus-2000-x\"; `foretrace list "
      "devices` shows all");
  EXPECT_EQ(error_of(""),
            "must be a built-in device or a JSON file with one, got \"\"; `foretrace list "
            "devices` shows all");
}

TEST(Devices, AreReadFromFiles) {
  const Folder folder;
  const std::string path = folder.write(
      "mine.json",
      R"({"name": "mine", "fp32": "10TFLOP/s", "memory": "16GiB", "launch_latency": "3us"})");
  const DeviceModel device = find_device(path);
  EXPECT_EQ(device.name, "mine");
  EXPECT_EQ(device.fp32, parse_throughput("10TFLOP/s"));
  EXPECT_EQ(device.memory.count, 16LL << 30);
  EXPECT_EQ(device.launch_latency, 3us);
}

TEST(Devices, FilesSayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must be a device file that can be read"},
      {"{\"name\": ", "must be JSON, but is not"},
      {"{}", "name: must not be empty"},
      {R"({"name": "x", "fp32": 10})",
       "fp32: must be a string with a unit, such as \"312TFLOP/s\", got 10"},
      {R"({"name": "x", "fp31": "1TFLOP/s"})",
       "there is no setting \"fp31\"; the settings are bf16, fp16, fp32, fp64, host_link, int8, "
       "launch_latency, memory, memory_bandwidth, name, source, tf32 (did you mean \"fp32\"?)"},
  };
  const Folder folder;
  for (const auto& [text, message] : cases) {
    const std::string path = folder.write("mine.json", text);
    EXPECT_EQ(error_of(path), path + ": " + message);
  }
  EXPECT_EQ(error_of("/nowhere/x.json"), "/nowhere/x.json: must be a device file that can be read");
  EXPECT_EQ(error_of("/"), "/: must be a device file that can be read");
}

TEST(Devices, RoundTripAsSettings) {
  for (const std::string_view name : device_names()) {
    DeviceModel device = find_device(name);
    DeviceModel copy;
    read_json(write_json(device), copy);
    EXPECT_EQ(write_json(copy), write_json(device));
    EXPECT_EQ(copy.fp16, device.fp16);
    EXPECT_EQ(copy.memory_bandwidth, device.memory_bandwidth);
  }
}

}  // namespace
}  // namespace foretrace
