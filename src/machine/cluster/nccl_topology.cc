// Reads NCCL's topology: CPUs, each with a tree of PCI devices whose leaves are GPUs and NICs, and
// NVLinks from each GPU to other devices, identified by bus id. The file describes one host,
// without latencies and without the network. Bandwidths are in nccl_links.h.

#include <expat.h>

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {
namespace {

// The bandwidths that NCCL 2.30.7 assumes (src/graph/topo.cc and topo.h), in bytes per second per
// direction.

/// Used for devices that are not behind a PCI link.
constexpr double kLocalBandwidth = 5000e9;

constexpr double kGiga = 1e9;

/// Returns 3/4 of the lanes' bandwidth; "" and 0 stand for x16 of the third generation.
double pci_bandwidth(const std::string& speed, double width) {
  // GB/s of eight lanes, times ten.
  constexpr std::pair<std::string_view, double> kSpeeds[] = {
      {"2.5 ", 15}, {"5 ", 30},     {"5.0 ", 30}, {"8 ", 60},     {"8.0 ", 60},
      {"16 ", 120}, {"16.0 ", 120}, {"32 ", 240}, {"32.0 ", 240}, {"64.0 ", 480}};
  constexpr double kUnknown = 60, kUnknownWidth = 16, kPerGigabyte = 80;
  double rate = kUnknown;
  for (const auto& [begin, value] : kSpeeds) {
    if (speed.starts_with(begin)) rate = value;
  }
  return (width > 0 ? width : kUnknownWidth) * rate / kPerGigabyte * kGiga;
}

/// Returns the bandwidth of one NVLink; `architecture` is as in HostFacts.
double nvlink_bandwidth(std::int64_t architecture) {
  constexpr std::pair<std::int64_t, double> kLinks[] = {{100, 40.1}, {90, 20.6}, {86, 12},
                                                        {80, 20},    {70, 20},   {60, 18}};
  for (const auto& [from, rate] : kLinks) {
    if (architecture >= from) return rate * kGiga;
  }
  return kLinks[std::size(kLinks) - 1].second * kGiga;
}

/// `vendor` is as in HostFacts; `model` is the model number of Intel's family 6.
double bandwidth_between_cpus(const std::string& vendor, double model) {
  if (vendor == "amd") return 16 * kGiga;
  if (vendor == "power") return 32 * kGiga;
  if (vendor == "arm") return 6 * kGiga;
  constexpr std::pair<double, double> kIntel[] = {
      {0xCF, 40}, {0x8F, 22}, {0x55, 10}, {0, 6}};  // Emerald, Sapphire Rapids, Skylake, Broadwell
  for (const auto& [from, rate] : kIntel) {
    if (model >= from) return rate * kGiga;
  }
  return kIntel[3].second * kGiga;
}

using Attributes = std::map<std::string, std::string, std::less<>>;

double number(const Attributes& attributes, std::string_view name, double otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || found->second.empty()) return otherwise;
  const auto value = parse_number<double>(found->second);
  if (!value || !(*value >= -1) || *value > 1e15)
    throw Error(fmt::format("{}: must be a number, got \"{}\"", name, found->second));
  return *value;
}

std::string text(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? "" : found->second;
}

std::string vendor_of(const Attributes& cpu) {
  const std::string arch = text(cpu, "arch"), vendor = text(cpu, "vendor");
  if (arch == "arm64") return "arm";
  if (arch == "ppc64") return "power";
  if (vendor == "AuthenticAMD") return "amd";
  return vendor == "GenuineIntel" ? "intel" : "unknown";
}

/// Builds the machine as elements begin and end.
class TopologyReader {
 public:
  void begin(const std::string& element, const Attributes& attributes) {
    if (open_.size() >= kMaxNesting)
      throw Error(fmt::format("must be at most {} elements deep", kMaxNesting));
    Element added{element, {}, attributes};
    if (!open_.empty()) added.node = open_.back().node;
    if (open_.empty()) {
      if (element != "system")
        throw Error(fmt::format("must begin with <system>, as NCCL writes it, got <{}>", element));
    } else if (element == "cpu") {
      add_cpu(attributes, added);
    } else if (element == "gpu") {
      add_gpu(attributes, added);
    } else if (element == "nic") {
      add_nic(added);
    } else if (element == "net") {
      add_net(attributes);
    } else if (element == "nvlink") {
      nvlinks_.push_back({open_.back().node, text(attributes, "target"), text(attributes, "tclass"),
                          count_of(attributes)});
    } else if (element == "c2c") {
      add_c2c(attributes);
    } else if (element == "pci") {
      add_bridge_if_known(attributes, added);
    }
    open_.push_back(std::move(added));
  }

  void end() {
    const Element& last = open_.back();
    // A PCI device is a switch if it contains neither a GPU nor a NIC.
    if (last.name == "nic") finish_nic(last);
    open_.pop_back();
  }

  MachineFile finished() {
    place_devices();
    add_nvlinks();
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus_.size(); ++j)
        add_link(cpus_[i], cpus_[j], bandwidth_between_cpus(vendor_, model_), "cpu");
    }
    if (nic_speed_) join_by_switch();
    machine_.name = "nccl-topology";
    machine_.source = "read from a topology of NCCL; bandwidths: NCCL 2.30.7; latencies recalled";
    machine_.notes.add(Severity::info,
                       "links without a latency; the usual one of their kind is assumed");
    return std::move(machine_);
  }

 private:
  struct Element {
    std::string name;
    std::string node;  ///< Node of the machine: of the element, or of the element around it.
    Attributes attributes;
    std::string parent = {};  ///< The node that a NIC is attached to.
    double link = kLocalBandwidth;
  };
  struct Nvlink {
    std::string from, target, target_class;
    std::int64_t count;
  };
  struct Gpu {
    std::string name;
    double rank;
  };

  static std::int64_t count_of(const Attributes& attributes) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(number(attributes, "count", 1)));
  }

  LinkGroup& add_link(const std::string& from, const std::string& to, double bandwidth,
                      const std::string& kind) {
    LinkGroup& link = machine_.host.links.emplace_back();
    link.from = from;
    link.to = to;
    link.kind = kind;
    link.bandwidth = {bandwidth};
    return link;
  }

  void add_cpu(const Attributes& attributes, Element& added) {
    added.node = "cpu" + std::to_string(cpus_.size());
    cpus_.push_back(added.node);
    vendor_ = machine_.facts.cpu = vendor_of(attributes);
    model_ = number(attributes, "modelid", 0);
    if (cpus_.size() == 1) machine_.host.cpus.clear();
    machine_.host.cpus.push_back(added.node);
  }

  /// PCI devices of class 0x03.. are GPUs and of class 0x02.. are NICs; their inner element
  /// describes them.
  void add_bridge_if_known(const Attributes& attributes, Element& added) {
    const std::string kind = text(attributes, "class");
    added.parent = open_.back().node;
    added.link = pci_bandwidth(text(attributes, "link_speed"), number(attributes, "link_width", 0));
    if (kind.starts_with("0x03") || kind.starts_with("0x02")) return;
    added.node = "pci-" + text(attributes, "busid");
    machine_.host.switches.push_back(added.node);
    require_parent(added.parent);
    add_link(added.node, added.parent, added.link, "pcie");
  }

  static void require_parent(const std::string& parent) {
    if (parent.empty()) throw Error("PCI devices must be below a <cpu>");
  }

  void add_gpu(const Attributes& attributes, Element& added) {
    const Element& pci = open_.back();
    if (pci.name != "pci")
      throw Error(fmt::format("<gpu> must be in a <pci>, got it in <{}>", pci.name));
    require_parent(pci.parent);
    const double dev = number(attributes, "dev", static_cast<double>(gpus_.size()));
    added.node = "gpu" + std::to_string(static_cast<std::int64_t>(dev));
    gpus_.push_back({added.node, number(attributes, "rank", dev)});
    by_bus_[text(pci.attributes, "busid")] = added.node;
    machine_.facts.architecture = static_cast<std::int64_t>(number(attributes, "sm", 0));
    add_link(added.node, pci.parent, pci.link, "pcie");
  }

  void add_nic(Element& added) {
    const Element& enclosing = open_.back();
    added.parent = enclosing.name == "pci" ? enclosing.parent : enclosing.node;
    added.link = enclosing.name == "pci" ? enclosing.link : kLocalBandwidth;
    added.node.clear();
    require_parent(added.parent);
  }

  /// A NIC is named after its first port and has the bandwidth of all its ports.
  void add_net(const Attributes& attributes) {
    Element& nic = open_.back();
    if (nic.name != "nic")
      throw Error(fmt::format("<net> must be in a <nic>, got it in <{}>", nic.name));
    if (nic.node.empty()) nic.node = text(attributes, "name");
    if (nic.node.empty()) throw Error("<net> must have a name");
    constexpr double kBytesPerMegabit = 1e6 / 8;
    speed_ += number(attributes, "speed", 0) * kBytesPerMegabit;
  }

  void finish_nic(const Element& nic) {
    if (!nic.node.empty()) {
      machine_.host.nics.push_back(nic.node);
      add_link(nic.node, nic.parent, nic.link, "pcie");
      if (nic_speed_ && *nic_speed_ != speed_)
        machine_.notes.add(Severity::warning,
                           "NICs with different speeds; all are taken as slow as the slowest",
                           nic.node);
      nic_speed_ = std::min(nic_speed_.value_or(speed_), speed_);
    }
    speed_ = 0;
  }

  void add_c2c(const Attributes& attributes) {
    if (open_.back().name != "gpu" || cpus_.empty()) return;
    constexpr double kMega = 1e6;
    const double rate = number(attributes, "bw", 0) * kMega;
    add_link(open_.back().node, cpus_.back(), rate, "cpu").count = count_of(attributes);
  }

  /// Sorts devices by rank; ranks may all be equal if one process wrote the file.
  void place_devices() {
    if (gpus_.size() < 2)
      throw Error(
          fmt::format("must have at least two <gpu>, got {}: NCCL writes the devices that "
                      "its processes see, so start one on every GPU of the host",
                      gpus_.size()));
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const Gpu& a, const Gpu& b) { return a.rank < b.rank; });
    machine_.host.devices.clear();
    for (const Gpu& gpu : gpus_) machine_.host.devices.push_back(gpu.name);
  }

  void add_nvlinks() {
    for (const Nvlink& link : nvlinks_) {
      const double rate = nvlink_bandwidth(machine_.facts.architecture.value_or(0));
      if (link.target_class.starts_with("0x0680")) {
        const bool to_cpu = link.target_class == "0x068001";
        if (to_cpu && cpus_.empty()) continue;
        if (!to_cpu) add_nvswitch();
        add_link(link.from, to_cpu ? cpus_.front() : "nvswitch", rate, "nvlink").count = link.count;
        continue;
      }
      const auto target = by_bus_.find(link.target);
      if (target == by_bus_.end()) {  // NCCL ignores these as well.
        machine_.notes.add(Severity::warning,
                           "NVLinks to devices that the file does not contain; they are ignored",
                           fmt::format("{} to {}", link.from, link.target));
        continue;
      }
      LinkGroup& added = add_link(link.from, target->second, rate, "nvlink");
      added.count = link.count;
      added.one_way = true;  // The other GPU lists the opposite direction.
    }
  }

  void add_nvswitch() {
    auto& switches = machine_.host.switches;
    if (std::find(switches.begin(), switches.end(), "nvswitch") == switches.end())
      switches.emplace_back("nvswitch");
  }

  void join_by_switch() {
    if (!(*nic_speed_ > 0)) throw Error("speed: must be above 0 for each <net>");
    machine_.use = "switch";
    machine_.network = make_topology(machine_.use);
    nlohmann::json settings = {{"bandwidth", to_exact_text(Bandwidth{*nic_speed_})},
                               {"latency", to_exact_text(usual_latency(LinkKind::network))}};
    read_json(settings, *machine_.network);
    machine_.notes.add(
        Severity::info,
        "network that the file does not describe; one ideal switch between the NICs is assumed");
  }

  MachineFile machine_;
  std::vector<Element> open_;
  std::vector<std::string> cpus_;
  std::vector<Gpu> gpus_;
  std::vector<Nvlink> nvlinks_;
  std::map<std::string, std::string> by_bus_;
  std::string vendor_;
  double model_ = 0, speed_ = 0;
  std::optional<double> nic_speed_;
};

/// expat is a C library, so an Error must not propagate through it.
struct ParserState {
  TopologyReader reader;
  XML_Parser parser;
  std::optional<std::string> error;

  template <class Action>
  void run_guarded(Action&& action) {
    if (error) return;
    try {
      action();
    } catch (const std::exception& found) {
      error = fmt::format("line {}: {}", XML_GetCurrentLineNumber(parser), found.what());
      XML_StopParser(parser, XML_FALSE);
    }
  }
};

void on_begin(void* user, const char* name, const char** attributes) {
  auto& state = *static_cast<ParserState*>(user);
  state.run_guarded([&] {
    Attributes all;
    for (; *attributes != nullptr; attributes += 2) all[attributes[0]] = attributes[1];
    state.reader.begin(name, all);
  });
}

void on_end(void* user, const char*) {
  auto& state = *static_cast<ParserState*>(user);
  state.run_guarded([&] { state.reader.end(); });
}

}  // namespace

MachineFile read_nccl_topology(std::string_view xml) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  if (!parser) throw Error("there is not enough memory to read it");
  ParserState state{.reader = {}, .parser = parser.get(), .error = {}};
  XML_SetUserData(parser.get(), &state);
  XML_SetElementHandler(parser.get(), on_begin, on_end);
  const bool good =
      XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), XML_TRUE) == XML_STATUS_OK;
  if (state.error) throw Error(*state.error);
  if (!good) {
    throw Error(fmt::format("line {}: must be XML, got {}", XML_GetCurrentLineNumber(parser.get()),
                            XML_ErrorString(XML_GetErrorCode(parser.get()))));
  }
  return state.reader.finished();
}

}  // namespace foretrace
