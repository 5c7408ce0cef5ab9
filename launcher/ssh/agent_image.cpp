// See agent_image.hpp.
#include "launcher/ssh/agent_image.hpp"

#include <fmt/format.h>

#include <utility>

#include "launcher/bundle/content_hash.hpp"

namespace elasticrun::launcher::ssh {
namespace {

// The machine's name from e_machine of an ELF header, which is in the file's own byte order
// (little-endian on all of these).
const char* machine_of(const std::string& bytes) {
  if (bytes.size() < 64 || !bytes.starts_with("\x7f"
                                              "ELF"))
    return nullptr;
  const int number = static_cast<unsigned char>(bytes[18]) | static_cast<unsigned char>(bytes[19])
                                                                 << 8;
  switch (number) {
    case 21:
      return "ppc64le";
    case 62:
      return "x86_64";
    case 183:
      return "aarch64";
    case 243:
      return "riscv64";
    default:
      return nullptr;
  }
}

}  // namespace

Result<AgentImage> agent_image(std::string bytes, const std::string& path) {
  const char* machine = machine_of(bytes);
  if (!machine)
    return Error{
        fmt::format("{}: not a program that can be copied to other hosts; install "
                    "elasticrun again",
                    path)};
  bundle::ContentHash hash;
  hash.add(bytes);
  return AgentImage{std::move(bytes), hash.text(), fmt::format("Linux {}", machine)};
}

}  // namespace elasticrun::launcher::ssh
