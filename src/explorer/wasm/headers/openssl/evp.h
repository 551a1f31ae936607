#pragma once

// The part of libcrypto that Foretrace uses: SHA-256 (FIPS 180-4).

#include <cstddef>

struct evp_md_ctx_st;
using EVP_MD_CTX = evp_md_ctx_st;

EVP_MD_CTX* EVP_MD_CTX_new();
void EVP_MD_CTX_free(EVP_MD_CTX* context);
inline std::nullptr_t EVP_sha256() { return nullptr; }
int EVP_DigestInit_ex(EVP_MD_CTX* context, std::nullptr_t, std::nullptr_t);
int EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, std::size_t size);
/// Writes 32 bytes.
int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* digest, unsigned* size);
