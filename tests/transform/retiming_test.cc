// Values of a setting that share a structure must give the same results as each value alone.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/transform.h"
#include "support/random_steps.h"

namespace foretrace {
namespace {

/// A step of a transform, one of its settings that changes only durations, and two values of the
/// setting.
struct Case {
  const char* step;
  const char* setting;
  nlohmann::json one, other;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"scale:where.kind=kernel", "factor", 0.3, 2.75},
      {"scale:where.kind=kernel,factor=0", "by", "-200ns", "1us"},
      {"scale:where.kind=launch", "factor", 1e-4, 3e6},
      {"set_duration:where.kind=copy_in", "duration", "0ns", "7us"},
      {"amp", "compute_factor", 0.5, 1.5},
      {"amp", "memory_factor", 0.1, 1.25},
      {"amp", "tf32_factor", 0.2, 1},
      {"amp", "shortest", "0ns", "700ns"},
      {"pin_memory:least=1kB", "bandwidth", "20MB/s", "12GB/s"},
      {"pin_memory:least=1kB", "host_copy", "0B/s", "3GB/s"},
  };
  return all;
}

std::unique_ptr<Transform> made(const Case& one, const nlohmann::json& value) {
  auto transform = read_transform_text(one.step);
  read_json({{one.setting, value}}, *transform);
  return transform;
}

/// Steps on an H100 with what autocast would change in some of their kernels.
Graph random_recording(std::mt19937& random) {
  Graph graph = random_steps(random);
  graph.device_names() = {"NVIDIA H100 80GB HBM3"};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind != TaskKind::kernel || random() % 3 != 0) continue;
    graph.autocast().push_back({.task = TaskId{i},
                                .narrow = static_cast<float>(random() % 5) / 4,
                                .casts = static_cast<std::uint32_t>(random() % 2)});
  }
  return graph;
}

std::string without_durations(Graph graph) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) graph.task(TaskId{i}).duration = 0ns;
  return to_text(graph);
}

TEST(Retiming, IsWhatApplyingDoesTaskByTask) {
  std::mt19937 random(3);
  std::vector<int> compared(cases().size(), 0);
  for (int run = 0; run < 600; ++run) {
    const Graph graph = random_recording(random);
    for (std::size_t i = 0; i < cases().size(); ++i) {
      const Case& one = cases()[i];
      SCOPED_TRACE(std::string(one.step) + " " + one.setting + " " + std::to_string(run));
      const auto first = made(one, one.one), second = made(one, one.other);
      ASSERT_TRUE(first->retimes()->only_retimes(one.setting));
      Graph structure = graph.clone(), expected = graph.clone();
      try {
        first->apply(structure, {});
      } catch (const Error&) {
        EXPECT_THROW(second->apply(expected, {}), Error);
        continue;
      }
      second->apply(expected, {});
      const std::vector<RetimedTask> tasks = first->retimes()->retimed(graph);
      std::vector<Nanoseconds> before, after(tasks.size());
      for (const RetimedTask& task : tasks) before.push_back(graph.task(task.task).duration);
      second->retimes()->retime(tasks, before, after);
      for (std::size_t at = 0; at < tasks.size(); ++at)
        structure.task(tasks[at].task).duration = after[at];
      ASSERT_EQ(to_text(structure), to_text(expected));
      compared[i] += tasks.empty() ? 0 : 1;
    }
  }
  for (std::size_t i = 0; i < compared.size(); ++i)
    EXPECT_GT(compared[i], 100) << cases()[i].step << " " << cases()[i].setting;
}

// A setting that changes more than durations must not claim that it only retimes.
TEST(Retiming, ChangesNothingElse) {
  std::mt19937 random(4);
  for (int run = 0; run < 100; ++run) {
    const Graph graph = random_recording(random);
    for (const Case& one : cases()) {
      Graph first = graph.clone(), second = graph.clone();
      try {
        made(one, one.one)->apply(first, {});
        made(one, one.other)->apply(second, {});
      } catch (const Error&) {
        continue;
      }
      EXPECT_EQ(without_durations(std::move(first)), without_durations(std::move(second)))
          << one.step;
    }
  }
}

TEST(Retiming, IsNotWhatAddsTasksWhereTimesSay) {
  EXPECT_FALSE(read_transform_text("amp:cast_time=5us")->retimes()->only_retimes("compute_factor"));
  EXPECT_FALSE(
      read_transform_text("amp:scaler_time=5us")->retimes()->only_retimes("memory_factor"));
  EXPECT_FALSE(read_transform_text("amp")->retimes()->only_retimes("optimizer"));
  EXPECT_EQ(read_transform_text("loader")->retimes(), nullptr);
}

TEST(Scaling, IsScaled) {
  std::mt19937_64 random(5);
  const double factors[] = {0,      1,   0.5,    0.1,       1.0 / 3, 3,  1e-9,    0x1p-10,
                            0x1p20, 1e9, 0.9999, 1 - 1e-16, 1e300,   -2, 123.456, 0x1p-11};
  for (const double factor : factors) {
    const Scaling scaling(factor);
    for (int i = 0; i < 2000; ++i) {
      const Nanoseconds value(static_cast<std::int64_t>(random() >> (random() % 64)));
      ASSERT_EQ(scaling(value), scaled(value, factor)) << value.count() << " x " << factor;
    }
    for (int i = 0; i < 2000; ++i) {
      const double near = factor * (1 + static_cast<double>(random() % 1000) * 1e-6);
      const Nanoseconds value(static_cast<std::int64_t>(random() % 5'000'000));
      ASSERT_EQ(Scaling(near)(value), scaled(value, near)) << value.count() << " x " << near;
    }
  }
}

}  // namespace
}  // namespace foretrace
