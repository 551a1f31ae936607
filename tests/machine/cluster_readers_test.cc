#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "support/clusters.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

Cluster cluster_of(const std::string& name, const std::string& text) {
  const Folder folder;
  return find_cluster(folder.write(name, text));
}

std::string complaint(const std::string& name, const std::string& text) {
  return asked_of_file(name, text,
                       [](const std::string& path) { return text_of(find_cluster(path)); });
}

/// The same machine, written as our JSON and read again.
std::string written_again(const std::string& path) {
  const Folder folder;
  return text_of(find_cluster(folder.write("m.json", cluster_json(path).dump())));
}

// Two V100 with two NVLinks between them and one to a GPU that belongs to another process, on a
// PCIe switch of the third generation with a known width, and a NIC of 200 Gb/s in two ports
// directly below the other CPU.
constexpr auto kXml = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:18:00.0" class="0x060400" link_speed="8 GT/s" link_width="8">
      <pci busid="0000:1a:00.0" class="0x030200" link_speed="" link_width="0">
        <gpu dev="0" sm="70" rank="1"><nvlink target="0000:1b:00.0" count="2" tclass="0x030200"/>
          <nvlink target="0000:3e:00.0" count="1" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="70" rank="0"><nvlink target="0000:1a:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:3f:00.0" class="0x020000" link_speed="" link_width="">
      <nic><net name="mlx5_0" dev="0" speed="100000"/><net name="mlx5_1" dev="1" speed="100000"/></nic>
    </pci>
  </cpu>
</system>)";

TEST(NcclTopology, TakesLinksForWhatNcclDoes) {
  const Cluster cluster = cluster_of("t.xml", kXml);
  EXPECT_EQ(text_of(cluster), R"(node0/gpu1
node0/gpu0
node0/pci-0000:18:00.0 -> node0/cpu0 pcie 6 GB/s 250 ns x1
node0/cpu0 -> node0/pci-0000:18:00.0 pcie 6 GB/s 250 ns x1
node0/gpu0 -> node0/pci-0000:18:00.0 pcie 12 GB/s 250 ns x1
node0/pci-0000:18:00.0 -> node0/gpu0 pcie 12 GB/s 250 ns x1
node0/gpu1 -> node0/pci-0000:18:00.0 pcie 24 GB/s 250 ns x1
node0/pci-0000:18:00.0 -> node0/gpu1 pcie 24 GB/s 250 ns x1
node0/mlx5_0 -> node0/cpu1 pcie 12 GB/s 250 ns x1
node0/cpu1 -> node0/mlx5_0 pcie 12 GB/s 250 ns x1
node0/gpu0 -> node0/gpu1 nvlink 40 GB/s 250 ns x2
node0/gpu1 -> node0/gpu0 nvlink 40 GB/s 250 ns x2
node0/cpu0 -> node0/cpu1 cpu 10 GB/s 100 ns x1
node0/cpu1 -> node0/cpu0 cpu 10 GB/s 100 ns x1
node0/mlx5_0 -> switch0 network 25 GB/s 600 ns x1
switch0 -> node0/mlx5_0 network 25 GB/s 600 ns x1
)");
  EXPECT_EQ(cluster.facts.architecture, 70);
  EXPECT_EQ(cluster.facts.cpu, "intel");
  EXPECT_FALSE(cluster.facts.nvls);
  EXPECT_EQ(
      cluster.notes.count("NVLinks to devices that the file does not contain; they are ignored"),
      1);
}

TEST(NcclTopology, NvswitchesAreOneNode) {
  std::string xml =
      R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" modelid="49">)";
  for (const char* bus : {"0", "1"}) {
    xml +=
        std::string(R"(<pci busid="0000:0)") + bus + R"(:00.0" class="0x030200"><gpu dev=")" + bus +
        R"(" sm="80" rank="0"><nvlink target="0000:c4:00.0" count="12" tclass="0x068000"/></gpu></pci>)";
  }
  const Cluster cluster = cluster_of("t.xml", xml + "</cpu></system>");
  EXPECT_EQ(cluster.facts.devices_per_nvlink_domain, 2);
  EXPECT_NE(text_of(cluster).find("node0/nvswitch -> node0/gpu1 nvlink 240 GB/s 250 ns x12"),
            std::string::npos);
}

// Measured by processes that saw one device each.
TEST(NcclTopology, CorpusOfOneDeviceIsNoMachine) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  for (const char* name : {"dgx1_v100_1ib_topo-n1.xml", "titanxp_topo-n1.xml"}) {
    try {
      find_cluster(std::string(corpus) + "/../data/measured/nccl_topology/" + name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("must have at least two <gpu>, got 1"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(NcclTopology, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "t.xml: line 1: must be XML, got no element found"},
      {"<graphs/>", "t.xml: line 1: must begin with <system>, as NCCL writes it, got <graphs>"},
      {"<system>\n</cpu>", "t.xml: line 2: must be XML, got mismatched tag"},
      {"<system/>",
       "t.xml: must have at least two <gpu>, got 0: NCCL writes the devices that its processes "
       "see, so start "
       "one on every GPU of the host"},
      {"<system><gpu/></system>", "t.xml: line 1: <gpu> must be in a <pci>, got it in <system>"},
      {"<system><pci><gpu/></pci></system>", "t.xml: line 1: PCI devices must be below a <cpu>"},
      {R"(<system><cpu modelid="x"/></system>)",
       "t.xml: line 1: modelid: must be a number, got \"x\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(complaint("t.xml", text), message);
  std::string deep = "<system>";
  for (int i = 0; i < 100; ++i) deep += "<cpu>";
  EXPECT_EQ(complaint("t.xml", deep), "t.xml: line 1: must be at most 64 elements deep");
}

TEST(AstraNetwork, DimensionsAreJoinedInsideOfEachOther) {
  EXPECT_EQ(text_of(cluster_of("n.yml", R"(# inputs/network/analytical
topology: [ FullyConnected, Switch ]  # dimensions
npus_count: [ 2, 2 ]
bandwidth: [ 200.0, 50 ]  # GB/s
latency: [ 936.25, 2000.0 ]  # ns
)")),
            R"(node0/npu0
node0/npu1
node1/npu0
node1/npu1
node0/npu0 -> node0/npu1 nvlink 200 GB/s 936 ns x1
node0/npu1 -> node0/npu0 nvlink 200 GB/s 936 ns x1
node1/npu0 -> node1/npu1 nvlink 200 GB/s 936 ns x1
node1/npu1 -> node1/npu0 nvlink 200 GB/s 936 ns x1
node0/npu0 -> level2.0/switch0 network 50 GB/s 2 us x1
level2.0/switch0 -> node0/npu0 network 50 GB/s 2 us x1
node1/npu0 -> level2.0/switch0 network 50 GB/s 2 us x1
level2.0/switch0 -> node1/npu0 network 50 GB/s 2 us x1
node0/npu1 -> level2.1/switch0 network 50 GB/s 2 us x1
level2.1/switch0 -> node0/npu1 network 50 GB/s 2 us x1
node1/npu1 -> level2.1/switch0 network 50 GB/s 2 us x1
level2.1/switch0 -> node1/npu1 network 50 GB/s 2 us x1
)");
}

TEST(AstraNetwork, ExamplesAreReadAndWrittenAgain) {
  const char* cases[] = {
      "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
      "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]  # GB/s\nlatency: [ 936.25 ]  "
      " # ns\n",
      "topology:\n  - Ring\n  - FullyConnected\n  - Switch\nnpus_count: [ 2, 8, 4 ]\nbandwidth: [ "
      "200.0, 100.0, 50.0 ]\n"
      "latency: [ 50.0, 500.0, 2000.0 ]\n"};
  const std::size_t sizes[] = {8, 8, 64};
  for (std::size_t i = 0; i < 3; ++i) {
    const Folder folder;
    const std::string path = folder.write("n.yml", cases[i]);
    EXPECT_EQ(find_cluster(path).placement.size(), sizes[i]);
    EXPECT_EQ(written_again(path), text_of(find_cluster(path)));
  }
}

TEST(AstraNetwork, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "n.yml: must be a mapping with settings such as topology: [ Ring ]"},
      {"topology: [ Ring", "n.yml: line 2: must be YAML, got did not find expected ',' or ']'"},
      {"topology: [ Ring ]", "n.yml: npus_count: must be given, with a value per dimension"},
      {"topology: [ Mesh2D ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\nlatency: [ 1 ]",
       "n.yml: topology: must be Ring, FullyConnected or Switch, got \"Mesh2D\""},
      {"topology: [ Ring ]\nnpus_count: [ 4, 2 ]",
       "n.yml: npus_count: must have 1 values, as topology has, got 2"},
      {"topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 0 ]\nlatency: [ 1 ]",
       "n.yml: bandwidth: must be above 0"},
      {"topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ fast ]\nlatency: [ 1 ]",
       "n.yml: bandwidth: must be a number of at least 0, got \"fast\""},
      {"topolgy: [ Ring ]",
       "n.yml: there is no setting \"topolgy\"; the settings are bandwidth, latency, npus_count, "
       "topology"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(complaint("n.yml", text), message);
  EXPECT_EQ(complaint("n.yml", "topology: " + std::string(200'000, '[')),
            "n.yml: line 1: must nest at most 64 deep");
  EXPECT_EQ(complaint("n.yml", "topology: {a: 1}"),
            "n.yml: topology: must be a list of plain values");
}

// However a file is damaged, it gives a machine or an Error, and neither takes long.
TEST(MachineFiles, DamagedOnesAreMachinesOrErrors) {
  const std::pair<const char*, std::string> files[] = {
      {"m.xml", kXml},
      {"m.yml",
       "topology: [ Ring, Switch ]\nnpus_count: [ 2, 4 ]\nbandwidth: [ 50.0, 10 ]\nlatency: [ 5.0, "
       "7 ]\n"},
      {"m.json", cluster_json("gb200-nvl72").dump()},
      {"m.json", cluster_json("alps:hosts=2").dump()}};
  std::mt19937 random(3);
  int machines = 0, errors = 0;
  const Folder folder;
  for (int run = 0; run < 1500; ++run) {
    auto [name, text] = files[random() % 4];
    for (std::size_t times = 1 + random() % 3; times > 0; --times) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 4);
          break;
        case 1:
          text[at] = static_cast<char>('!' + random() % 90);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
        default:
          text.insert(at, std::to_string(random() % 3 == 0 ? random() : random() % 9));
          break;
      }
      if (text.empty()) text = " ";
    }
    try {
      find_cluster(folder.write(name, text));
      ++machines;
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      ++errors;
    }
  }
  EXPECT_GT(machines, 50);
  EXPECT_GT(errors, 200);
}

TEST(MachineFiles, TooLargeOnesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"host": {"devices": ["a[0-99999]"], "links": [{"from": "a[0-99999]", "pattern": "mesh", "bandwidth": "1B/s"}]}})",
       "m.json: host: links[0]: must join at most 4,000,000 pairs of nodes"},
      {R"({"hosts": 99999, "network": {"use": "fully_connected"}})",
       "m.json: network: must have at most 8,000,000 links"},
      {R"({"hosts": 99999, "network": {"use": "fat_tree", "ports": 1, "spines": 1000000, "leaves": 1}})",
       "m.json: network: must have at most 4,000,000 nodes"},
      {R"({"hosts": 99999, "host": {"devices": ["a[0-9999]"]}})",
       "m.json: must have at most 4,000,000 nodes"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(complaint("m.json", text), message);
}

}  // namespace
}  // namespace foretrace
