#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "outcome.h"

namespace ns3_check {

Outcome by_ns3(std::uint32_t hosts, const Pairs& pairs) {
  using namespace ns3;
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayload));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64 << 20));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
  NodeContainer nodes(hosts), center(1);
  InternetStackHelper().Install(nodes);
  InternetStackHelper().Install(center);
  PointToPointHelper cable;
  cable.SetDeviceAttribute("DataRate",
                           DataRateValue(DataRate(static_cast<uint64_t>(kBitsPerSecond))));
  cable.SetChannelAttribute("Delay", TimeValue(MicroSeconds(1)));
  cable.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
  std::vector<Ipv4Address> address;
  for (std::uint32_t i = 0; i < hosts; ++i) {
    const NetDeviceContainer ends = cable.Install(nodes.Get(i), center.Get(0));
    Ipv4AddressHelper subnet(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    address.push_back(subnet.Assign(ends).GetAddress(0));
    TrafficControlHelper::Default().Uninstall(ends);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  double last = 0;
  std::vector<std::uint64_t> got(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto port = static_cast<std::uint16_t>(5000 + i);
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer receiver = sink.Install(nodes.Get(pairs[i].second));
    receiver.Start(Seconds(0));
    receiver.Get(0)->TraceConnectWithoutContext(
        "Rx", Callback<void, Ptr<const Packet>, const Address&>(
                  [&last, &got, i](Ptr<const Packet> packet, const Address&) {
                    got[i] += packet->GetSize();
                    if (got[i] == kBytes) last = std::max(last, Simulator::Now().GetSeconds());
                  }));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(address[pairs[i].second], port));
    bulk.SetAttribute("MaxBytes", UintegerValue(kBytes));
    bulk.SetAttribute("SendSize", UintegerValue(1 << 20));
    bulk.Install(nodes.Get(pairs[i].first)).Start(Seconds(0));
  }
  const double begin = now();
  Simulator::Stop(Seconds(10));
  Simulator::Run();
  Outcome outcome{last, now() - begin,
                  2.0 * static_cast<double>(pairs.size()) * std::ceil(double{kBytes} / kPayload)};
  Simulator::Destroy();
  return outcome;
}

}  // namespace ns3_check
