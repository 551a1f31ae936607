#pragma once

// SHA-256 identifies the file that a result came from, and the scripts that a page may run.
// Computed by libcrypto, which uses the processor's instructions for it.

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // EVP_MD_CTX of OpenSSL.

namespace foretrace {

/// Hashes bytes that come in pieces. Throws Error if libcrypto fails (no memory, or a configuration
/// that forbids it).
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// Returns the hash as 32 bytes. Call it once, after the last add().
  std::string digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// Returns the hash as 32 bytes.
std::string sha256_of(std::string_view bytes);

/// Returns lower-case hex, two digits per byte.
std::string hex_of(std::string_view bytes);

}  // namespace foretrace
