#pragma once

// SHA-256: says which file a result came from, and which scripts a page may run. By libcrypto,
// which uses the instructions that processors have for it.

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // EVP_MD_CTX of OpenSSL.

namespace foretrace {

/// Hashes bytes that come in pieces. Throws Error where libcrypto refuses to (no memory, or a
/// configuration that forbids it).
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// The 32 bytes. Call it once, behind the last add().
  std::string digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// The 32 bytes.
std::string sha256_of(std::string_view bytes);

/// Lower-case hex, two digits a byte.
std::string hex_of(std::string_view bytes);

}  // namespace foretrace
