#include "base/sha256.h"

#include <gtest/gtest.h>

#include <utility>

namespace foretrace {
namespace {

TEST(Sha256, AgreesWithFips180) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [bytes, hex] : cases) EXPECT_EQ(hex_of(sha256_of(bytes)), hex);
}

TEST(Sha256, PiecesOfAnyLengthComeToTheSame) {
  const std::string bytes(200, 'x');
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Sha256 sha;
    sha.add(std::string_view(bytes).substr(0, cut));
    sha.add(std::string_view(bytes).substr(cut));
    EXPECT_EQ(sha.digest(), sha256_of(bytes)) << cut;
    EXPECT_EQ(sha256_of(bytes.substr(cut)).size(), 32u);
  }
}

}  // namespace
}  // namespace foretrace
