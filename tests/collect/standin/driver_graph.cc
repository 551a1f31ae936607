// CUDA graphs of the played driver. Handles are pointers to ids.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "collect/standin/device.h"

namespace standin {

namespace {

struct Graph;

struct Node {
  std::uint64_t id;  ///< First: a handle is a pointer to its id.
  Graph* graph;
  std::string kernel;
  std::uint64_t duration;
  Node* original;
  std::vector<Node*> before;
};

struct Graph {
  std::uint64_t id;
  std::deque<Node> nodes;
};

struct ResourceData {
  void* context;
  void* handle;
  void* descriptor;
};

struct GraphData {
  void* graph = nullptr;
  void* original_graph = nullptr;
  void* node = nullptr;
  void* original_node = nullptr;
  std::uint32_t node_type = 0;
  void* dependency = nullptr;
  void* executable = nullptr;
};

void tell_graph(std::uint32_t id, GraphData data) {
  const ResourceData resource{nullptr, nullptr, &data};
  library().call_back(kResourceDomain, id, &resource);
}

enum GraphCallback : std::uint32_t {
  kGraphCreated = 9,
  kNodeCreated = 13,
  kDependencyCreated = 15,
  kExecutableCreated = 18,
  kNodeCloned = 20
};

}  // namespace

void* create_graph() {
  auto* graph = new Graph{next_id(), {}};
  tell_graph(kGraphCreated, {.graph = graph});
  return graph;
}

void* add_node(void* to, const char* kernel, std::uint64_t duration) {
  auto* graph = static_cast<Graph*>(to);
  graph->nodes.push_back({next_id(), graph, kernel, duration, nullptr, {}});
  Node& node = graph->nodes.back();
  tell_graph(kNodeCreated, {.graph = graph, .node = &node});
  return &node;
}

void add_dependency(void* before, void* after) {
  auto* node = static_cast<Node*>(after);
  node->before.push_back(static_cast<Node*>(before));
  tell_graph(kDependencyCreated, {.graph = node->graph, .node = node, .dependency = before});
}

void* instantiate(void* of) {
  auto* graph = static_cast<Graph*>(of);
  auto* copy = new Graph{next_id(), {}};
  std::map<Node*, Node*> copies;
  for (Node& node : graph->nodes) {
    copy->nodes.push_back({next_id(), copy, node.kernel, node.duration, &node, {}});
    copies[&node] = &copy->nodes.back();
    tell_graph(kNodeCloned, {.graph = copy,
                             .original_graph = graph,
                             .node = &copy->nodes.back(),
                             .original_node = &node});
  }
  for (Node& node : graph->nodes) {
    for (Node* before : node.before) copies[&node]->before.push_back(copies[before]);
  }
  tell_graph(kExecutableCreated, {.graph = copy, .executable = copy});
  return copy;
}

std::uint32_t launch_graph(void* executable, std::uint32_t device, std::uint32_t stream) {
  const auto& graph = *static_cast<Graph*>(executable);
  const Call call(kRuntimeDomain, 311);
  for (const Node& node : graph.nodes) {
    const Launch launch{node.kernel.c_str(), device,    stream, node.duration, false,
                        {8, 1, 1},           {64, 1, 1}};
    run_kernel(launch, {call.correlation(), static_cast<std::uint32_t>(graph.id), node.id});
  }
  return call.correlation();
}

std::uint64_t node_id(void* node) { return static_cast<Node*>(node)->id; }

}  // namespace standin
