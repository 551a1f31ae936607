#include "base/sha256.h"

#include <openssl/evp.h>

#include "foretrace/error.h"

namespace foretrace {

namespace {

void require(bool done) {
  if (!done) throw Error("libcrypto must be able to compute SHA-256, but cannot");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::digest() {
  std::string bytes(32, '\0');
  require(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                             nullptr) == 1);
  return bytes;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.digest();
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

}  // namespace foretrace
