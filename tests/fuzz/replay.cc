// A fuzz target without a fuzzer: runs it on files, and on inputs of a seed that are the same
// everywhere.
//
//     real_transform_replay 300 7 corpus/*       300 inputs of seed 7, then those of the files

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr unsigned kLongest = 600;  // Bytes of an input.

std::vector<std::uint8_t> some_bytes(std::mt19937& random) {
  std::vector<std::uint8_t> bytes(random() % kLongest);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  std::mt19937 random(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
  for (int i = 0; i < count; ++i) {
    const std::vector<std::uint8_t> bytes = some_bytes(random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%d inputs of a seed, %d files\n", count, argc > 3 ? argc - 3 : 0);
}
