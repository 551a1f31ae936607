#include "base/numbers/simplex.h"

#include <algorithm>

namespace foretrace {
namespace {

struct Vertex {
  double cost = 0;
  std::vector<double> point;
};

bool is_less(const Vertex& a, const Vertex& b) { return a.cost < b.cost; }

}  // namespace

std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& start, const SimplexSearch& search) {
  const std::size_t size = start.size();
  std::vector<Vertex> vertices(size + 1);
  for (std::size_t i = 0; i <= size; ++i) {
    vertices[i].point = start;
    if (i > 0) vertices[i].point[i - 1] += search.edge;
    vertices[i].cost = cost(vertices[i].point);
  }
  for (int step = 0; step < search.steps; ++step) {
    std::ranges::stable_sort(vertices, is_less);
    if (vertices[size].cost - vertices[0].cost <= search.tolerance * vertices[0].cost) break;
    std::vector<double> center(size, 0);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t k = 0; k < size; ++k)
        center[k] += vertices[i].point[k] / static_cast<double>(size);
    }
    Vertex& worst = vertices[size];
    const auto along = [&](double part) {
      Vertex moved{.point = center};
      for (std::size_t k = 0; k < size; ++k) moved.point[k] += part * (worst.point[k] - center[k]);
      moved.cost = cost(moved.point);
      return moved;
    };
    const Vertex mirrored = along(-1);
    if (mirrored.cost < vertices[0].cost) {
      const Vertex farther = along(-2);
      worst = farther.cost < mirrored.cost ? farther : mirrored;
    } else if (mirrored.cost < vertices[size - 1].cost) {
      worst = mirrored;
    } else if (const Vertex nearer = along(.5); nearer.cost < worst.cost) {
      worst = nearer;
    } else {
      for (std::size_t i = 1; i <= size; ++i) {
        for (std::size_t k = 0; k < size; ++k)
          vertices[i].point[k] = (vertices[i].point[k] + vertices[0].point[k]) / 2;
        vertices[i].cost = cost(vertices[i].point);
      }
    }
  }
  return std::ranges::min_element(vertices, is_less)->point;
}

}  // namespace foretrace
