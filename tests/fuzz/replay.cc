// Runs a fuzz target without a fuzzer: on inputs made from a seed, which are the same everywhere,
// and on inputs from files and archives.
//
//     fuzz_replay kineto 300 7 corpus/kineto.tar.xz      300 inputs of seed 7, then the kept ones

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/files/source.h"

#define TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.def"
#undef TARGET

namespace {

using namespace foretrace;
using Input = std::vector<std::uint8_t>;

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

constexpr Target kTargets[] = {
#define TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.def"
#undef TARGET
};

constexpr unsigned kLongest = 600;  // Bytes of an input made from a seed.

Input some_bytes(std::mt19937& random) {
  Input bytes(random() % kLongest);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

template <class Reader>
Input all_of(Reader& reader) {
  Input bytes;
  char part[4096];
  while (const std::size_t size = reader.read(part, sizeof part))
    bytes.insert(bytes.end(), part, part + size);
  return bytes;
}

/// The members of an archive, or the file itself.
std::vector<Input> inputs_in(const char* path) {
  constexpr std::size_t kHeadOfATar = 512;
  std::vector<Input> inputs;
  auto bytes = decompressed(open_file(path));
  if (!is_archive(path, bytes->peek(kHeadOfATar))) {
    const auto plain = open_file(path);
    inputs.push_back(all_of(*plain));
    return inputs;
  }
  ArchiveReader archive(*bytes);
  while (archive.next()) inputs.push_back(all_of(archive));
  return inputs;
}

const Target* target_called(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const Target* target = argc > 1 ? target_called(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "fuzz_replay TARGET [COUNT [SEED [FILE...]]]; targets:");
    for (const Target& known : kTargets)
      std::fprintf(stderr, " %.*s", static_cast<int>(known.name.size()), known.name.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  std::mt19937 random(argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1);
  for (int i = 0; i < count; ++i) {
    const Input bytes = some_bytes(random);
    target->run(bytes.data(), bytes.size());
  }
  std::size_t kept = 0;
  for (int i = 4; i < argc; ++i) {
    try {
      for (const Input& bytes : inputs_in(argv[i])) {
        target->run(bytes.data(), bytes.size());
        ++kept;
      }
    } catch (const TraceError& error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
      return 2;
    }
  }
  std::printf("%d inputs of a seed, %zu of files\n", count, kept);
}
