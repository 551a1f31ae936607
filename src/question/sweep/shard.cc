#include "question/sweep/shard.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <string_view>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMaxShards = 1'000'000;

/// The environment variables in which a launcher numbers its processes. Ranks count from 0.
struct Launcher {
  const char* rank;
  const char* size;
  const char* first;   ///< Number of the first process; nullptr means 0.
  const char* stride;  ///< Distance between the numbers of processes; nullptr means 1.
};

constexpr Launcher kLaunchers[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr, nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr, nullptr},
};

std::uint64_t number_in(const Environment& environment, const char* name, std::uint64_t fallback) {
  if (name == nullptr) return fallback;
  const std::string text = environment(name);
  if (text.empty()) return fallback;
  const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text);
  if (!number)
    throw Error(fmt::format("--shard auto: {} must be a whole number, got '{}'", name, text));
  return *number;
}

Shard shard_of_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.rank).empty() || environment(launcher.size).empty()) continue;
    const std::uint64_t rank = number_in(environment, launcher.rank, 0);
    const std::uint64_t size = number_in(environment, launcher.size, 0);
    const std::uint64_t first = number_in(environment, launcher.first, 0);
    const std::uint64_t stride = number_in(environment, launcher.stride, 1);
    const bool fits = rank >= first && stride > 0 && (rank - first) % stride == 0 &&
                      (rank - first) / stride < size && size <= kMaxShards;
    if (fits) return {(rank - first) / stride + 1, size};
    throw Error(
        fmt::format("--shard auto: {} is {} and {} is {}; numbers must run without gaps; otherwise "
                    "give --shard I/N",
                    launcher.rank, rank, launcher.size, size));
  }
  throw Error(
      "--shard auto: found none of SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, PMI_RANK and "
      "SLURM_PROCID (each with its number of processes) in the environment");
}

}  // namespace

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

Shard read_shard(const std::string& text, const Environment& environment) {
  if (text == "auto") return shard_of_launcher(environment);
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const std::string_view view = text;
    const auto number = parse_number<std::uint64_t>(view.substr(0, slash)),
               count = parse_number<std::uint64_t>(view.substr(slash + 1));
    if (number && count && *number >= 1 && *number <= *count && *count <= kMaxShards)
      return {*number, *count};
  }
  throw Error(fmt::format("--shard: must be I/N such as 1/8 or 8/8, or auto, got '{}'", text));
}

std::string path_of_shard(const std::string& path, const Shard& shard) {
  if (shard.count == 1) return path;
  const std::filesystem::path file(path);
  const std::string name = fmt::format("{}.shard-{}-of-{}{}", file.stem().string(), shard.number,
                                       shard.count, file.extension().string());
  return (file.parent_path() / name).string();
}

}  // namespace foretrace
