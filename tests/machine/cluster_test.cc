#include "foretrace/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "machine/cluster/name_range.h"
#include "support/clusters.h"

namespace foretrace {
namespace {

std::string found_or_error(const std::string& name, std::int64_t ranks = 0) {
  try {
    return text_of(find_cluster(name, ranks));
  } catch (const Error& error) {
    return error.what();
  }
}

std::string of_file(const std::string& text, std::int64_t ranks = 0) {
  return asked_of_file("m.json", text,
                       [&](const std::string& path) { return text_of(find_cluster(path, ranks)); });
}

TEST(NameRange, NamesManyNodesInOneText) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_names("cpu0"), Names({"cpu0"}));
  EXPECT_EQ(expand_names("gpu[0-2]"), Names({"gpu0", "gpu1", "gpu2"}));
  EXPECT_EQ(expand_names("gpu[0,2,5-4]"), Names({"gpu0", "gpu2", "gpu5", "gpu4"}));
  EXPECT_EQ(expand_names("n[0-1]/x[0-1]"), Names({"n0/x0", "n0/x1", "n1/x0", "n1/x1"}));
  for (const char* wrong :
       {"gpu[", "gpu[]", "gpu[a]", "gpu[0-]", "gpu[0-9999999]", "a[0-999]b[0-9999]"})
    EXPECT_THROW(expand_names(wrong), Error) << wrong;
}

// Two hosts, alike: each device has its own NIC, and both NICs share one switch.
constexpr auto kTwoHosts = R"({"hosts": 2,
  "host": {"devices": ["gpu[0-1]"], "nics": ["nic[0-1]"],
           "links": [{"from": "gpu[0-1]", "to": "nic[0-1]", "kind": "pcie", "bandwidth": "24GB/s", "count": 2}]},
  "network": {"use": "switch", "bandwidth": "100Gb/s", "latency": "2us"}})";

TEST(Cluster, IsOneHostRepeatedAndJoined) {
  EXPECT_EQ(of_file(kTwoHosts), R"(node0/gpu0
node0/gpu1
node1/gpu0
node1/gpu1
node0/gpu0 -> node0/nic0 pcie 48 GB/s 250 ns x2
node0/nic0 -> node0/gpu0 pcie 48 GB/s 250 ns x2
node0/gpu1 -> node0/nic1 pcie 48 GB/s 250 ns x2
node0/nic1 -> node0/gpu1 pcie 48 GB/s 250 ns x2
node1/gpu0 -> node1/nic0 pcie 48 GB/s 250 ns x2
node1/nic0 -> node1/gpu0 pcie 48 GB/s 250 ns x2
node1/gpu1 -> node1/nic1 pcie 48 GB/s 250 ns x2
node1/nic1 -> node1/gpu1 pcie 48 GB/s 250 ns x2
node0/nic0 -> switch0 network 12.5 GB/s 2 us x1
switch0 -> node0/nic0 network 12.5 GB/s 2 us x1
node0/nic1 -> switch0 network 12.5 GB/s 2 us x1
switch0 -> node0/nic1 network 12.5 GB/s 2 us x1
node1/nic0 -> switch0 network 12.5 GB/s 2 us x1
switch0 -> node1/nic0 network 12.5 GB/s 2 us x1
node1/nic1 -> switch0 network 12.5 GB/s 2 us x1
switch0 -> node1/nic1 network 12.5 GB/s 2 us x1
)");
}

TEST(Cluster, LinksFollowTheirPattern) {
  const auto links = [](const std::string& link) {
    const std::string all =
        of_file(R"({"host": {"devices": ["a[0-3]"], "switches": ["b[0-1]"], "links": [{"bandwidth":
        "1GB/s", "one_way": true, )" +
                link + "}]}}");
    std::string pairs;
    for (std::size_t at = 0; (at = all.find(" -> ", at)) != all.npos; ++at)
      pairs += all.substr(at - 2, 2) + all.substr(at + 10, 2) + " ";
    return pairs.empty() ? all : pairs;
  };
  EXPECT_EQ(links(R"("from": "a[0-3]", "to": "b[0-1]")"), "a0b0 a1b0 a2b1 a3b1 ");
  EXPECT_EQ(links(R"("from": "b[0-1]", "to": "a[0-3]")"), "b0a0 b0a1 b1a2 b1a3 ");
  EXPECT_EQ(links(R"("from": "a[0-3]", "to": "b[0-1]", "pattern": "cycle")"),
            "a0b0 a1b1 a2b0 a3b1 ");
  EXPECT_EQ(links(R"("from": "a[0-1]", "to": "b[0-1]", "pattern": "all")"), "a0b0 a0b1 a1b0 a1b1 ");
  EXPECT_EQ(links(R"("from": "a[0-2]", "pattern": "mesh")"), "a0a1 a0a2 a1a2 ");
  EXPECT_EQ(links(R"("from": "a[0-2]", "pattern": "ring")"), "a0a1 a1a2 a2a0 ");
  EXPECT_EQ(links(R"("from": "a[0-1]", "pattern": "ring")"), "a0a1 ");
  EXPECT_EQ(
      links(R"("from": "a[0-2]", "to": "b[0-1]")"),
      "m.json: host: links[0]: must join 3 nodes with the same number or a divisor of it, got 2");
}

TEST(Cluster, RanksArePlacedInTheOrderGiven) {
  const std::string placed =
      R"({"hosts": 2, "placement": ["node[0-1]/gpu0"], "host": {"devices": ["gpu[0-1]"]}})";
  EXPECT_EQ(of_file(placed), "node0/gpu0\nnode1/gpu0\n");
  EXPECT_EQ(of_file(placed, 1), "node0/gpu0\n");
  EXPECT_EQ(of_file(placed, 3),
            "m.json: must have a device for each of 3 ranks, but has 2 (2 hosts of 2)");
}

TEST(Cluster, PresetsGrowByWholeHosts) {
  EXPECT_EQ(find_cluster("dgx-h100", 17).hosts, 3);
  EXPECT_EQ(find_cluster("dgx-h100", 17).placement.size(), 17U);
  EXPECT_EQ(find_cluster("dgx-h100:hosts=4").placement.size(), 32U);
  EXPECT_EQ(find_cluster("ring", 20).hosts, 20);
  EXPECT_EQ(found_or_error("dgx-h100:hosts=2", 17),
            "dgx-h100:hosts=2: must have a device for each of 17 ranks, but has 16 (2 hosts of 8)");
  EXPECT_EQ(found_or_error("torus:shape=4x4", 17),
            "torus:shape=4x4: must have a device for each of 17 ranks, but has 16 (16 hosts of 1)");
}

TEST(Cluster, PresetsHaveWhatTheirMakersSay) {
  struct Case {
    const char* name;
    std::int32_t per_host, domain;
    double nics, nvlink;  // GB/s of NCCL 2.30.7: 12 per 100 Gb/s of the NICs of a host, all NVLinks
                          // of a device
  };
  const Case cases[] = {{"dgx-1v", 8, 8, 48, 6 * 20},       {"dgx-a100", 8, 8, 192, 12 * 20},
                        {"dgx-h100", 8, 8, 384, 18 * 20.6}, {"dgx-h200", 8, 8, 384, 18 * 20.6},
                        {"dgx-b200", 8, 8, 384, 18 * 40.1}, {"gb200-nvl72", 4, 72, 192, 18 * 40.1},
                        {"aws-p3", 8, 8, 3, 6 * 20},        {"aws-p4d", 8, 8, 48, 12 * 20},
                        {"aws-p5", 8, 8, 384, 18 * 20.6},   {"alps", 4, 4, 96, 18 * 20.6},
                        {"perlmutter", 4, 4, 96, 12 * 20},  {"pcie-box", 8, 8, 12, 0},
                        {"jean-zay", 8, 8, 48, 12 * 20}};
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.name);
    const Cluster cluster = find_cluster(expected.name);
    EXPECT_EQ(cluster.facts.devices_per_host, expected.per_host);
    EXPECT_EQ(cluster.facts.devices_per_nvlink_domain, expected.domain);
    EXPECT_NEAR(cluster.facts.nic_bandwidth->bytes_per_second / 1e9, expected.nics, 1e-6);
    for (const std::uint32_t device : cluster.placement) {
      double nvlink = 0;
      for (const ClusterLink& link : cluster.links) {
        if (link.from == device && link.kind == LinkKind::nvlink)
          nvlink += link.bandwidth.bytes_per_second;
      }
      EXPECT_NEAR(nvlink / 1e9, expected.nvlink, 1e-6);
    }
    EXPECT_NO_THROW(find_device(cluster.device));
    EXPECT_FALSE(cluster.source.empty());
  }
}

TEST(Cluster, EveryNameIsReadAndWrittenAgain) {
  for (const ClusterEntry& entry : clusters()) {
    SCOPED_TRACE(entry.name);
    const Cluster cluster = find_cluster(entry.name);
    EXPECT_EQ(of_file(cluster_json(entry.name).dump()), text_of(cluster));
    EXPECT_GT(cluster.placement.size(), 1U);
    EXPECT_FALSE(entry.summary.empty());
  }
}

/// The names of settings that the schema does not know.
std::string unknown_to(const nlohmann::json& schema, const nlohmann::json& value) {
  std::string unknown;
  for (const auto& [key, inner] : value.items()) {
    if (!schema.at("properties").contains(key)) unknown += key + " ";
  }
  return unknown;
}

TEST(Cluster, TheSchemaKnowsWhatIsWritten) {
  const nlohmann::json schema = cluster_schema();
  const nlohmann::json& settings = schema["properties"];
  for (const ClusterEntry& entry : clusters()) {
    const nlohmann::json file = cluster_json(entry.name);
    EXPECT_EQ(unknown_to(schema, file), "") << entry.name;
    EXPECT_EQ(unknown_to(settings["host"], file["host"]), "") << entry.name;
    const auto& kinds = settings["network"]["oneOf"];
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const nlohmann::json& one) {
      return one["properties"]["use"]["const"] == file["network"]["use"];
    });
    ASSERT_NE(kind, kinds.end()) << entry.name;
    EXPECT_EQ(unknown_to(*kind, file["network"]), "") << entry.name;
    for (const auto& link : file["host"].value("links", nlohmann::json::array()))
      EXPECT_EQ(unknown_to(settings["links"]["items"], link), "") << entry.name;
  }
}

TEST(Cluster, FilesExtendPresets) {
  EXPECT_EQ(of_file(R"({"extends": "dgx-a100", "hosts": 3, "network": {"bandwidth": "12GB/s"}})"),
            text_of(find_cluster("dgx-a100:hosts=3,network.bandwidth=12GB/s")));
  EXPECT_EQ(of_file(R"({"extends": "dgx-a10"})"),
            "m.json: extends: must be a built-in machine, got \"dgx-a10\"");
}

TEST(Cluster, WhatIsUnknownIsNotSet) {
  const Cluster cluster = find_cluster("torus");
  EXPECT_FALSE(cluster.facts.architecture || cluster.facts.nvls || cluster.facts.sharp);
  EXPECT_EQ(cluster.facts.cpu, "");
  EXPECT_EQ(find_cluster("dgx-h100").facts.architecture, 90);
  EXPECT_TRUE(*find_cluster("dgx-h100").facts.nvls);
}

TEST(Cluster, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> files[] = {
      {R"({"host": {"devices": ["a[0-1]"], "links": [{"from": "a0", "to": "a1", "bandwidth": "0GB/s"}]}})",
       "m.json: host: links[0]: bandwidth: must be above 0 for the link from a0 to a1"},
      {R"({"host": {"devices": ["a[0-1]"], "links": [{"from": "a0", "to": "a1"}]}})",
       "m.json: host: links[0]: bandwidth: must be given, such as \"25GB/s\""},
      {R"({"host": {"devices": ["a[0-1]"], "links": [{"from": "a0", "to": "a1", "bandwidth": 25}]}})",
       "m.json: host: links[0]: bandwidth: must be a string with a unit, such as \"25GB/s\", got "
       "25"},
      {R"({"host": {"devices": ["gpu[0-1]"], "links": [{"from": "gpu0", "to": "gpu2", "bandwidth": "1GB/s"}]}})",
       "m.json: host: links[0]: to: there is no node \"gpu2\" (did you mean \"gpu0\"?)"},
      {R"({"host": {"devices": ["gpu0", "gpu0"]}})", "m.json: host: two nodes are named \"gpu0\""},
      {R"({"host": {"devices": []}})", "m.json: host: devices: must name at least one device"},
      {R"({"hosts": 2, "network": {"use": "rign"}})",
       "m.json: network: use: must be one of dragonfly, fat_tree, fully_connected, hierarchical, "
       "ring, switch, "
       "torus, got \"rign\" (did you mean \"ring\"?)"},
      {R"({"hosts": 2, "network": {"use": "ring", "latency": 5}})",
       "m.json: network: latency: must be a string with a unit, such as \"5us\", got 5"},
      {R"({"hosts": 3, "network": {"use": "torus", "shape": "2x2"}})",
       "m.json: network: shape: must have 3 ports, as many as there are, got 2x2"},
      {R"({"hosts": 3, "network": {"use": "hierarchical", "levels": ["2*hierarchical"]}})",
       "m.json: network: levels[0]: must not be hierarchical itself"},
      {R"({"placement": ["node0/gpu0", "node0/gpu0"]})",
       "m.json: placement: must name devices, each once, got node0/gpu0"},
  };
  for (const auto& [text, message] : files) EXPECT_EQ(of_file(text), message);
  EXPECT_EQ(
      found_or_error("dgx-h10"),
      "dgx-h10: must be one of alps, aws-p3, aws-p4d, aws-p5, dgx-1v, dgx-2, dgx-a100, dgx-b200, "
      "dgx-b300, dgx-h100, dgx-h200, dragonfly, fat_tree, fully_connected, gb200-nvl72, "
      "gb300-nvl72, hierarchical, jean-zay, pcie-box, "
      "perlmutter, ring, switch, "
      "torus, or a file (.json, .xml of NCCL, .yml of ASTRA-sim), got \"dgx-h10\" (did you "
      "mean \"dgx-h100\"?)");
  EXPECT_EQ(found_or_error("ring:bandwidth=5"),
            "ring: bandwidth: must be a bandwidth with its unit (GB/s for bytes, Gb/s for bits "
            "...), got \"5\"");
}

}  // namespace
}  // namespace foretrace
