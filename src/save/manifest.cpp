// See manifest.hpp. Two lines: JSON, and the hash of the first line.
#include "save/manifest.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <span>
#include <sstream>

#include "net/sockets.hpp"
#include "save/file.hpp"
#include "wire/codec.hpp"

namespace elasticrun::save {
namespace {

std::string hash_of(std::string_view text) {
  FileHash hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.text();
}

}  // namespace

std::string encode(const wire::saved::Manifest& manifest) {
  const std::string line = wire::encode(manifest);
  return fmt::format("{}\n{}\n", line, hash_of(line));
}

Result<wire::saved::Manifest> decode(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == text.npos) return Error{"it is torn: it has no second line"};
  const std::string_view line = text.substr(0, end);
  if (text.substr(end + 1) != hash_of(line) + "\n")
    return Error{"it is damaged: its hash does not fit"};
  auto manifest = wire::decode<wire::saved::Manifest>(line);
  if (!manifest) return manifest.error();
  if (manifest->version > format_version)
    return Error{fmt::format("it is of format {}, and this version of elasticrun reads up to {}",
                             manifest->version, format_version)};
  return manifest;
}

Result<wire::saved::Manifest> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + manifest_name;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int number = errno ? errno : EIO;
    return Error{fmt::format("cannot read {}: {}", path, net::error_text(number)), number};
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto manifest = decode(std::move(text).str());
  if (!manifest) return Error{fmt::format("{}: {}", path, manifest.error().text)};
  return manifest;
}

Result<wire::saved::Contents> read_contents(const std::string& folder,
                                            const wire::saved::Manifest& manifest) {
  if (manifest.files.empty() || manifest.files.front().name != contents_name)
    return Error{fmt::format("{}: its manifest names no {}", folder, contents_name)};
  const auto text = read_text(folder, manifest.files.front());
  if (!text) return text.error();
  auto contents = wire::decode<wire::saved::Contents>(*text);
  if (!contents) return Error{fmt::format("{}: {}", folder, contents.error().text)};
  return contents;
}

}  // namespace elasticrun::save
