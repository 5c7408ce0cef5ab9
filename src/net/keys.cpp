// See keys.hpp.
#include "net/keys.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <charconv>
#include <memory>

#include "base/check.hpp"

namespace elasticrun::net {
namespace {

constexpr char sha256[] = "SHA256";

OSSL_PARAM text(const char* name, const char* value) {
  return OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(value), 0);
}
OSSL_PARAM bytes(const char* name, const void* data, std::size_t size) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(data), size);
}

}  // namespace

Secret random_secret() {
  Secret secret;
  ER_CHECK(::getrandom(secret.data(), secret.size(), 0) == std::ssize(secret));
  return secret;
}

Secret derive(const Secret& master, std::string_view purpose) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  const OSSL_PARAM parameters[] = {
      text(OSSL_KDF_PARAM_DIGEST, sha256),
      bytes(OSSL_KDF_PARAM_KEY, master.data(), master.size()),
      bytes(OSSL_KDF_PARAM_INFO, purpose.data(), purpose.size()),
      OSSL_PARAM_construct_end(),
  };
  Secret derived;
  ER_CHECK(EVP_KDF_derive(context.get(), derived.data(), derived.size(), parameters) == 1);
  return derived;
}

Secret tag(const Secret& key, std::string_view message) {
  Secret result;
  std::size_t size = 0;
  ER_CHECK(EVP_Q_mac(nullptr, "HMAC", nullptr, sha256, nullptr, key.data(), key.size(),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                     result.data(), result.size(), &size) != nullptr);
  return result;
}

std::string to_hex(const Secret& secret) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : secret) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

std::optional<Secret> from_hex(std::string_view digits) {
  Secret secret;
  if (digits.size() != 2 * secret.size()) return std::nullopt;
  if (digits.find_first_not_of("0123456789abcdef") != digits.npos) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i)
    std::from_chars(&digits[2 * i], &digits[2 * i] + 2, secret[i], 16);
  return secret;
}

}  // namespace elasticrun::net
